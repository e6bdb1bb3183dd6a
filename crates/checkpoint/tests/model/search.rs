//! The searches, and what they must find.

use baton_checkpoint::protocol::Fact;
use stateright::{Checker, Expectation, HasDiscoveries, Model, Path, UniformChooser};
use std::collections::BTreeSet;

use crate::flaw::Flaw;
use crate::world::{Life, SinkKind, What, World};
use crate::{Bounds, Happening};

/// All of it can be searched.
const SMALL: Bounds = Bounds {
    instances: 2,
    lives: 1,
    batches: 1,
    sink: SinkKind::Transactional,
    rival: false,
    troubles: 1,
    calm: false,
    flaw: None,
};

/// Nobody could search all of it.
const LARGE: Bounds = Bounds {
    instances: 3,
    lives: 2,
    batches: 3,
    ..SMALL
};

/// How many states of random histories are looked at. `cargo xtask model` gives more.
fn budget() -> usize {
    match std::env::var("BATON_MODEL_STATES") {
        Ok(text) => text.parse().expect("BATON_MODEL_STATES is a number"),
        Err(_) => 1_000_000,
    }
}

/// How many of the shortest ones; they wait in memory, half a million in a gigabyte.
fn budget_in_memory() -> usize {
    (budget() / 2).min(4_000_000)
}

/// Every history.
fn exhaust(bounds: Bounds) -> BTreeSet<&'static str> {
    let search = bounds.clone().checker().threads(2);
    let search = search.finish_when(HasDiscoveries::AnyFailures);
    judge(&bounds, &search.spawn_bfs().join())
}

/// The shortest histories.
fn nearby(bounds: Bounds) -> BTreeSet<&'static str> {
    let search = bounds.clone().checker().threads(2);
    let search = search.target_state_count(budget_in_memory());
    let search = search.finish_when(HasDiscoveries::AnyFailures);
    judge(&bounds, &search.spawn_bfs().join())
}

/// Random histories to their end; a seed repeats them.
fn faraway(bounds: Bounds) -> BTreeSet<&'static str> {
    let search = bounds.clone().checker().target_state_count(budget());
    let search = search.finish_when(HasDiscoveries::AnyFailures);
    judge(&bounds, &search.spawn_simulation(7, UniformChooser).join())
}

/// Fails on a broken rule, with the history that breaks it; otherwise says what was seen to be possible.
#[expect(clippy::print_stdout, reason = "says how much was searched")]
fn judge(bounds: &Bounds, checker: &impl Checker<Bounds>) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    for (name, path) in checker.discoveries() {
        let is_rule = bounds.property(name).expectation == Expectation::Always;
        assert!(!is_rule, "{name} is broken, in {bounds:?}:\n{}", story(path));
        seen.insert(name);
    }
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{states} states, {depth} steps deep, in {bounds:?}");
    seen
}

#[test]
fn no_history_breaks_a_rule_and_every_interesting_one_is_possible() {
    let manifest = |bounds| Bounds {
        sink: SinkKind::Manifest,
        ..bounds
    };
    let calm = |batches, rival| Bounds {
        calm: true,
        batches,
        rival,
        ..SMALL
    };
    let rival = Bounds { rival: true, ..LARGE };
    let mut seen = BTreeSet::new();
    for bounds in [
        SMALL,
        manifest(SMALL),
        calm(4, false),
        manifest(calm(4, false)),
        calm(2, true),
    ] {
        seen.extend(exhaust(bounds));
    }
    for bounds in [LARGE, manifest(LARGE), rival] {
        seen.extend(nearby(bounds.clone()));
        seen.extend(faraway(bounds));
    }
    let all = [SMALL, calm(1, true)];
    let possible = all.iter().flat_map(Model::properties);
    for property in possible.filter(|property| property.expectation == Expectation::Sometimes) {
        assert!(seen.contains(property.name), "nowhere seen: {}", property.name);
    }
}

/// A rule that no mistake breaks would say nothing.
#[test]
fn every_mistake_breaks_a_rule() {
    for flaw in Flaw::ALL {
        let bounds = Bounds {
            flaw: Some(flaw),
            batches: 2,
            lives: 2,
            ..SMALL
        };
        // Wide enough for the mistake to show, and no wider.
        let bounds = match flaw {
            Flaw::AdoptAny => Bounds {
                rival: true,
                calm: true,
                ..bounds
            },
            Flaw::CollectedFence | Flaw::NoLookAboveFence => Bounds {
                batches: 5,
                calm: true,
                ..bounds
            },
            Flaw::PrefetchPosition => Bounds {
                instances: 3,
                ..bounds
            },
            _ => bounds,
        };
        let search = bounds.clone().checker().threads(2).target_state_count(5_000_000);
        let checker = search.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let mut broken = checker.discoveries().into_iter();
        let broken = broken.find(|(name, _)| bounds.property(name).expectation == Expectation::Always);
        let states = checker.unique_state_count();
        let (rule, path) = broken.unwrap_or_else(|| panic!("{flaw:?} is not found among {states} states"));
        println!("{flaw:?} breaks `{rule}`:\n{}", story(path));
    }
}

/// A history in lines: what happened, and what became of it.
fn story(path: Path<World, Happening>) -> String {
    let stores = &path.last_state().stores;
    let facts: Vec<String> = stores
        .iter()
        .flat_map(|store| store.facts.iter().map(tell))
        .collect();
    let happened = path.into_actions();
    let lines = happened
        .iter()
        .map(describe)
        .chain(["facts:".to_owned()])
        .chain(facts);
    lines.collect::<Vec<_>>().join("\n")
}

fn describe(happening: &Happening) -> String {
    let Happening::Apply { message, heard } = happening else {
        return format!("  {happening:?}");
    };
    let what = match &message.what {
        What::Append { records, .. } => {
            let kinds: Vec<_> = records.iter().map(|record| record.body.kind()).collect();
            format!("{} into slot {}", kinds.join("+"), records[0].seq)
        }
        What::Publish { planned, epoch, .. } => format!("batch {} of epoch {epoch}", planned.batch),
    };
    let Life { instance, number } = message.by;
    let heard = if *heard { "" } else { ", answer lost" };
    format!("  {instance}.{number}: {what}{heard}")
}

fn tell(fact: &Fact) -> String {
    match fact {
        Fact::Appended(record) => format!("  {}: epoch {} {}", record.seq, record.epoch, record.body.kind()),
        other => format!("  {other:?}"),
    }
}
