//! A model of everything around `step`, searched for a history that breaks a rule.
//!
//! The code under search is the code that runs: `step`, [`claim`](super::claim()), [`Log`](super::Log) and
//! the predicates of [`invariants`](super::invariants) are production's own. The model adds what may happen to them, at
//! any moment and in any order:
//!
//! - any instance claims the checkpoint, whether the lease has expired, was never held, or is held by somebody alive;
//! - a process dies, is paused (the others simply go on) and starts again under another id;
//! - a request to storage or sink is sent, applied later or never, even after its sender is dead; the answer is heard or
//!   lost; what is not known is read back, and tried once more;
//! - a candidate asks for a hand-over, dies, or comes too late; an owner is told to stop;
//! - somebody copies the checkpoint, and runs the copy as a rival on the same sink.
//!
//! The sink is one transactional producer id for all epochs, or one manifest per batch that is created if absent. The
//! local back end is a special case: its lock only takes histories away.
//!
//! Invariants I1–I7, I9 and I10 must hold in every state; I8 comes with state. Each of [`flaw`]'s mistakes, built in alone,
//! has to be found.

mod flaw;
mod instance;
mod properties;
mod search;
mod source;
mod world;

use stateright::Model;

use flaw::Flaw;
use instance::{Duty, Instance};
use world::{Life, Message, Sink, SinkKind, Store, World};

/// How large the world is.
#[derive(Clone, Debug)]
struct Bounds {
    instances: usize,
    /// How often each may start.
    lives: u8,
    batches: u64,
    sink: SinkKind,
    /// Whether the checkpoint may be copied, and the last instance run on the copy.
    rival: bool,
    /// How often an owner asks its sink again.
    troubles: u8,
    /// Whether nobody dies, nothing is lost and nobody asks for anything: only the order is open.
    calm: bool,
    flaw: Option<Flaw>,
}

/// What may happen next.
#[derive(Clone, Debug, PartialEq)]
enum Happening {
    Claim(usize),
    Apply { message: Message, heard: bool },
    TimeOut(usize),
    ReadBack(usize),
    Init(usize),
    Look(usize),
    Recheck(usize),
    Commit { instance: usize, with_next: bool },
    Ask { candidate: usize, owner: usize },
    Withdraw(usize),
    Stop(usize),
    Crash(usize),
    Restart(usize),
    Copy,
}

impl Model for Bounds {
    type State = World;
    type Action = Happening;

    fn init_states(&self) -> Vec<World> {
        let first = |instance| Instance::new(Life { instance, number: 1 }, 0);
        vec![World {
            stores: vec![Store::default()],
            sink: Sink::new(self.sink),
            network: Vec::new(),
            instances: (0..self.instances).map(first).collect(),
            wrong: None,
            halted: false,
        }]
    }

    fn actions(&self, world: &World, next: &mut Vec<Happening>) {
        for message in &world.network {
            let heard = |heard| Happening::Apply {
                message: message.clone(),
                heard,
            };
            next.push(heard(true));
            // A lost answer makes a difference to who waits for it only.
            let by = &world.instances[message.by.instance];
            if !self.calm
                && by.life == message.by
                && (by.awaits_write() || matches!(by.duty, Duty::Published(_)))
            {
                next.push(heard(false));
            }
        }
        for (i, instance) in world.instances.iter().enumerate() {
            if !self.calm {
                self.faults(world, i, next);
            }
            if instance.is_writing() {
                continue;
            }
            match &instance.duty {
                Duty::Claim => next.push(Happening::Claim(i)),
                Duty::Init => next.push(Happening::Init(i)),
                Duty::Look => next.push(Happening::Look(i)),
                Duty::Trouble => next.push(Happening::Recheck(i)),
                Duty::Commit(planned) => {
                    let commit = |with_next| Happening::Commit {
                        instance: i,
                        with_next,
                    };
                    next.push(commit(false));
                    if planned.batch.0 + 1 < self.batches {
                        next.push(commit(true));
                    }
                }
                Duty::Published(_) | Duty::Down | Duty::Nothing => {}
            }
        }
        let last = world.instances.last();
        if self.rival
            && world.stores.len() == 1
            && last.is_some_and(|last| last.duty == Duty::Claim && !last.is_writing())
        {
            next.push(Happening::Copy);
        }
    }

    fn next_state(&self, world: &World, happening: Happening) -> Option<World> {
        let mut world = world.clone();
        match happening {
            Happening::Claim(i) => world.claim(self, i),
            Happening::Apply { message, heard } => {
                world.network.retain(|other| *other != message);
                world.apply(self, message, heard);
            }
            Happening::TimeOut(i) => world.time_out(i),
            Happening::ReadBack(i) => world.read_back(self, i),
            Happening::Init(i) => world.init(self, i),
            Happening::Look(i) => world.look(self, i),
            Happening::Recheck(i) => world.recheck(self, i),
            Happening::Commit { instance, with_next } => world.commit(self, instance, with_next),
            Happening::Ask { candidate, owner } => world.ask(self, candidate, owner),
            Happening::Withdraw(i) => world.withdraw(self, i),
            Happening::Stop(i) => world.stop(self, i),
            Happening::Crash(i) => world.instances[i].crash(),
            Happening::Restart(i) => {
                let Instance { life, store, .. } = world.instances[i];
                let number = life.number + 1;
                world.instances[i] = Instance::new(Life { number, ..life }, store);
            }
            Happening::Copy => {
                let copy = world.stores[0].clone();
                world.stores.push(copy);
                let last = world.instances.len() - 1;
                world.instances[last].store = 1;
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        properties::of(self)
    }
}

impl Bounds {
    /// What may go wrong for an instance, and what others may ask of it.
    fn faults(&self, world: &World, i: usize, next: &mut Vec<Happening>) {
        let instance = &world.instances[i];
        if instance.duty != Duty::Down {
            next.push(Happening::Crash(i));
        } else if instance.life.number < self.lives {
            next.push(Happening::Restart(i));
        }
        if instance.has_unknown_write() {
            next.push(Happening::ReadBack(i));
        } else if instance.awaits_write() || matches!(instance.duty, Duty::Published(_)) {
            next.push(Happening::TimeOut(i));
        }
        if instance.is_owner() {
            requests(world, i, next);
        }
    }
}

fn requests(world: &World, owner: usize, next: &mut Vec<Happening>) {
    let instance = &world.instances[owner];
    if instance.can_stop() {
        next.push(Happening::Stop(owner));
    }
    match instance.successor() {
        None => {
            let candidates = world.instances.iter().enumerate().filter(|(_, other)| {
                other.duty == Duty::Claim
                    && !other.is_writing()
                    && !other.has_asked
                    && other.store == instance.store
            });
            next.extend(candidates.map(|(candidate, _)| Happening::Ask { candidate, owner }));
        }
        Some(id) => {
            let waits = world
                .instances
                .iter()
                .any(|other| instance::id(other.life) == id && other.duty == Duty::Claim);
            if !waits {
                next.push(Happening::Withdraw(owner));
            }
        }
    }
}
