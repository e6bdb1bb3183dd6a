//! What must hold in every state, and what must be possible for that to mean anything.

use baton_core::{BatchId, Epoch, WriteId};
use stateright::Property;

use crate::Bounds;
use crate::world::{SinkKind, Store, World};
use baton_checkpoint::protocol::invariants::{LOG, SINK};
use baton_checkpoint::protocol::{Body, Fact, Record};

pub(crate) fn of(bounds: &Bounds) -> Vec<Property<Bounds>> {
    let mut properties = vec![
        Property::always("I1", |_, world: &World| log_rule(world, 0)),
        Property::always("I2", |_, world: &World| log_rule(world, 1)),
        Property::always("I3", |_, world: &World| log_rule(world, 2)),
        Property::always("I4", |_, world: &World| log_rule(world, 3)),
        Property::always("I9", |_, world: &World| log_rule(world, 4)),
        Property::always("I10", |_, world: &World| log_rule(world, 5)),
        Property::always("each batch is visible once", |_, world: &World| {
            is_visible_once(world)
        }),
        Property::always(
            "what is committed is visible under its plan",
            |_, world: &World| world.stores.iter().all(|store| is_visible(world, store)),
        ),
        Property::always("nobody is told what is not so", |_, world: &World| {
            world.wrong.is_none()
        }),
        Property::sometimes("all batches are committed", |bounds: &Bounds, world: &World| {
            commits(&world.stores[0]).count() as u64 == bounds.batches
        }),
        Property::sometimes("an owner drains and hands over", |_, world: &World| {
            is_handed_over(&world.stores[0])
        }),
        Property::sometimes("a batch is adopted", |_, world: &World| {
            adopted(&world.stores[0]).next().is_some()
        }),
        Property::sometimes("a zombie's commit is adopted", |_, world: &World| {
            is_zombies_adopted(&world.stores[0])
        }),
        Property::sometimes("a successor never comes", |_, world: &World| {
            is_left_waiting(&world.stores[0])
        }),
    ];
    if bounds.rival {
        properties.push(Property::sometimes(
            "a rival on a copy is halted",
            |_, world: &World| world.halted,
        ));
        return properties;
    }
    properties.push(Property::always(
        "sink and log never contradict each other",
        |_, world: &World| !world.halted,
    ));
    properties.push(Property::always("I5", |_, world: &World| sink_rule(world, 0)));
    properties.push(Property::always("I6", |_, world: &World| sink_rule(world, 1)));
    // A manifest has no producer epoch: who comes too late fails when it creates, not before.
    if bounds.sink == SinkKind::Transactional {
        properties.push(Property::always("I7", |_, world: &World| sink_rule(world, 2)));
        properties.push(Property::sometimes(
            "an owner that a zombie fenced recovers",
            |_, world: &World| has_recovered(&world.stores[0]),
        ));
    }
    properties
}

fn log_rule(world: &World, rule: usize) -> bool {
    world.stores.iter().all(|store| LOG[rule].1(&store.facts).is_ok())
}

fn sink_rule(world: &World, rule: usize) -> bool {
    SINK[rule].1(&world.stores[0].facts).is_ok()
}

fn is_visible_once(world: &World) -> bool {
    (0..)
        .zip(&world.sink.visible)
        .all(|(number, (batch, ..))| batch.0 == number)
}

fn is_visible(world: &World, store: &Store) -> bool {
    commits(store).all(|(batch, _, plan)| {
        world
            .sink
            .visible
            .iter()
            .any(|(visible, _, under)| *visible == batch && *under == plan)
    })
}

fn records(store: &Store) -> impl Iterator<Item = &Record> {
    store.facts.iter().filter_map(|fact| match fact {
        Fact::Appended(record) => Some(&**record),
        _ => None,
    })
}

fn commits(store: &Store) -> impl Iterator<Item = (BatchId, Epoch, WriteId)> {
    records(store).filter_map(|record| match &record.body {
        Body::Commit { batch, plan, .. } => Some((*batch, record.epoch, *plan)),
        _ => None,
    })
}

/// Batches that one epoch published and a later one committed; with the publisher's epoch.
fn adopted(store: &Store) -> impl Iterator<Item = (BatchId, Epoch)> {
    commits(store).filter_map(|(batch, by, plan)| {
        store.facts.iter().find_map(|fact| match fact {
            Fact::Published {
                batch: published,
                epoch,
                plan: under,
            } if *published == batch && *under == plan && *epoch < by => Some((batch, *epoch)),
            _ => None,
        })
    })
}

fn is_zombies_adopted(store: &Store) -> bool {
    adopted(store).any(|(batch, epoch)| {
        let mut is_zombie = false;
        store.facts.iter().any(|fact| match fact {
            Fact::Appended(record) => {
                is_zombie |= record.epoch > epoch;
                false
            }
            Fact::Published { batch: published, .. } => is_zombie && *published == batch,
            _ => false,
        })
    })
}

fn is_handed_over(store: &Store) -> bool {
    let mut named = None;
    let mut came = false;
    records(store).any(|record| {
        match &record.body {
            Body::Release { successor, .. } => named = *successor,
            Body::Fence { .. } => came = named == Some(record.owner),
            _ => {}
        }
        came && matches!(record.body, Body::Commit { .. })
    })
}

fn is_left_waiting(store: &Store) -> bool {
    let mut named = None;
    records(store).any(|record| match &record.body {
        Body::Release { successor, .. } => {
            named = *successor;
            false
        }
        Body::Fence { .. } => named.take().is_some_and(|named| named != record.owner),
        _ => false,
    })
}

/// An older epoch shuts out the owner, who shuts it out in turn and commits.
fn has_recovered(store: &Store) -> bool {
    let (mut newest, mut was_fenced, mut again) = (Epoch(0), false, false);
    store.facts.iter().any(|fact| match fact {
        Fact::SinkFenced(epoch) => {
            again |= was_fenced && *epoch == newest;
            was_fenced |= *epoch < newest;
            newest = newest.max(*epoch);
            false
        }
        Fact::Appended(record) => {
            again && record.epoch == newest && matches!(record.body, Body::Commit { .. })
        }
        _ => false,
    })
}
