//! Storage, network and sink, as adverse as they may be.

use baton_core::{BatchId, Epoch, Marker, WriteId};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::instance::Instance;
use baton_checkpoint::Planned;
use baton_checkpoint::protocol::{Body, Fact, Log, Record};

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The checkpoint, and the copy that somebody may make of it.
    pub(crate) stores: Vec<Store>,
    pub(crate) sink: Sink,
    /// Sent and not applied; kept in a fixed order. A message may stay here for ever, which is how it is lost.
    pub(crate) network: Vec<Message>,
    pub(crate) instances: Vec<Instance>,
    /// What went wrong that is no fact of the log.
    pub(crate) wrong: Option<&'static str>,
    /// An instance stopped because sink and log contradict each other.
    pub(crate) halted: bool,
}

/// A start of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Life {
    pub(crate) instance: usize,
    pub(crate) number: u8,
}

/// Something that was sent to a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) by: Life,
    pub(crate) store: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// Create a slot, if it does not exist.
    Append {
        records: Arc<Vec<Record>>,
        retired: Vec<u64>,
        floor: u64,
    },
    /// Commit the transaction, or create the manifest.
    Publish {
        token: u8,
        epoch: Epoch,
        planned: Planned,
    },
}

impl World {
    pub(crate) fn send(&mut self, message: Message) {
        let key = |message: &Message| {
            let seq = match &message.what {
                What::Append { records, .. } => records[0].seq,
                What::Publish { .. } => u64::MAX,
            };
            (message.by, seq)
        };
        match self.network.binary_search_by_key(&key(&message), key) {
            // The same request once more is the same request.
            Ok(at) if self.network[at] == message => {}
            Ok(at) | Err(at) => self.network.insert(at, message),
        }
    }
}

/// Slots that are created once, and the history of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) slots: BTreeMap<u64, Arc<Vec<Record>>>,
    /// Below it only fences are kept.
    pub(crate) floor: u64,
    pub(crate) facts: Vec<Fact>,
}

impl Store {
    /// The log as a reader finds it: up to the first hole above the floor.
    pub(crate) fn log(&self) -> Log {
        let below = self.slots.range(..self.floor).map(|(_, records)| records);
        let above = (self.floor..).map_while(|seq| self.slots.get(&seq));
        Log::replay(below.chain(above).flat_map(|records| records.iter()))
    }

    /// Creates a slot; false if it exists.
    pub(crate) fn create(&mut self, records: &Arc<Vec<Record>>, retired: &[u64], floor: u64) -> bool {
        let seq = records[0].seq;
        if self.slots.contains_key(&seq) {
            return false;
        }
        if seq < self.floor && !is_collected_fence(&self.facts, seq) {
            // A doubled request that comes after its slot was retired: nobody reads what it creates.
            return true;
        }
        for slot in retired {
            self.slots.remove(slot);
        }
        self.floor = self.floor.max(floor);
        self.slots.insert(seq, Arc::clone(records));
        let facts = records
            .iter()
            .cloned()
            .map(|record| Fact::Appended(Arc::new(record)));
        self.facts.extend(facts);
        true
    }

    pub(crate) fn holds(&self, seq: u64, id: WriteId) -> Option<bool> {
        self.slots.get(&seq).map(|records| records[0].write_id == id)
    }
}

/// Whether a slot below the floor was a fence's: then its absence lets an old owner write, which must be seen.
fn is_collected_fence(facts: &[Fact], seq: u64) -> bool {
    facts.iter().any(|fact| {
        matches!(fact, Fact::Appended(record) if record.seq == seq && matches!(record.body, Body::Fence { .. }))
    })
}

/// How a sink refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SinkKind {
    /// One transactional id: whoever initialises last may commit.
    Transactional,
    /// One manifest for each batch, created if absent.
    Manifest,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sink {
    pub(crate) kind: SinkKind,
    /// Producers so far.
    tokens: u8,
    /// The producer that may commit, by transactional id.
    current: BTreeMap<u64, u8>,
    pub(crate) visible: Vec<(BatchId, Epoch, WriteId)>,
}

impl Sink {
    pub(crate) const fn new(kind: SinkKind) -> Self {
        Self {
            kind,
            tokens: 0,
            current: BTreeMap::new(),
            visible: Vec::new(),
        }
    }

    /// `initTransactions`: what an older producer of this id has under way can never become visible. Manifests know no
    /// producers.
    pub(crate) fn init(&mut self, id: u64) -> u8 {
        if self.kind == SinkKind::Manifest {
            return 0;
        }
        self.tokens += 1;
        self.current.insert(id, self.tokens);
        self.tokens
    }

    pub(crate) fn marker(&self) -> Marker {
        match self.visible.last() {
            None => Marker::Nothing,
            Some(&(batch, epoch, plan)) => Marker::At { batch, epoch, plan },
        }
    }

    pub(crate) fn publish(&mut self, id: u64, token: u8, epoch: Epoch, planned: &Planned) -> bool {
        let accepts = match self.kind {
            SinkKind::Transactional => self.current.get(&id) == Some(&token),
            SinkKind::Manifest => self.visible.iter().all(|(batch, ..)| *batch != planned.batch),
        };
        if accepts {
            self.visible.push((planned.batch, epoch, planned.write_id));
        }
        accepts
    }
}
