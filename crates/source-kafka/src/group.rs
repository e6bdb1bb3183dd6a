//! `kafka.group.id` as the name of one owner.
//!
//! The reader is no member of the group. It stores its position there, so that Kafka's tools see it, and with each
//! offset a mark that names the checkpoint; by that mark a second job on the same group is told from the first.

use baton_core::{CheckpointId, Claimant, Offset, PartitionOffsets, TopicPartition};
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::describe;
use crate::control::{Control, PATIENCE};
use crate::{Error, Result};

/// How often a coordinator that is not ready yet is asked again: it takes a broker that just started a second or two.
const ATTEMPTS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(250);

/// The mark beside each offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The form of this mark; also what makes it recognisable.
    baton: u32,
    checkpoint: CheckpointId,
    job: String,
}

impl Mark {
    fn of(claimant: &Claimant) -> Self {
        Self {
            baton: 1,
            checkpoint: claimant.checkpoint,
            job: claimant.job.clone(),
        }
    }

    fn read(metadata: &str) -> Option<Self> {
        serde_json::from_str(metadata).ok()
    }

    fn write(&self) -> String {
        serde_json::to_string(self).expect("a number and two texts always serialise")
    }
}

/// What a group holds for some partitions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    offsets: PartitionOffsets,
    marks: BTreeMap<TopicPartition, Mark>,
    /// Partitions with an offset that nobody here stored.
    strange: bool,
}

/// What a claim finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the claimant's already, or nobody's.
    Free,
    /// Somebody else's tool stored offsets: taken over, and said.
    Strange,
    /// Another checkpoint's.
    Other(Mark),
}

/// Judges what a group holds. Pure.
pub(crate) fn judge(held: &Held, claimant: &Claimant) -> Verdict {
    match held
        .marks
        .values()
        .find(|mark| mark.checkpoint != claimant.checkpoint)
    {
        Some(other) => Verdict::Other(other.clone()),
        None if held.strange => Verdict::Strange,
        None => Verdict::Free,
    }
}

/// Claims the group, which is a look and, where the mark is not ours, a new mark at the same offsets. Blocks.
pub(crate) fn claim(
    control: &Control,
    group: &str,
    partitions: &BTreeSet<TopicPartition>,
    claimant: &Claimant,
    given_up: &AtomicBool,
) -> Result<()> {
    let held = patiently(control, group, given_up, || committed(control, partitions))?;
    let verdict = judge(&held, claimant);
    match &verdict {
        Verdict::Free => {
            if held.offsets.is_empty() {
                refuse_members(control, group)?;
            }
            return Ok(());
        }
        Verdict::Other(mark) if !claimant.overrule => return Err(held_by(group, mark)),
        Verdict::Other(mark) => {
            tracing::warn!(group, checkpoint = %mark.checkpoint, "group taken from another checkpoint")
        }
        Verdict::Strange => tracing::warn!(
            group,
            "the group has offsets that another program stored; they are replaced"
        ),
    }
    refuse_members(control, group)?;
    patiently(control, group, given_up, || {
        commit(control, &held.offsets, claimant)
    })
}

/// Stores a position in the group, unless another checkpoint has claimed the group since. Blocks.
pub(crate) fn publish(
    control: &Control,
    group: &str,
    until: &PartitionOffsets,
    claimant: &Claimant,
    given_up: &AtomicBool,
) -> Result<()> {
    let partitions = until.iter().map(|(partition, _)| partition).collect();
    let held = patiently(control, group, given_up, || committed(control, &partitions))?;
    if let Verdict::Other(mark) = judge(&held, claimant) {
        return Err(held_by(group, &mark));
    }
    patiently(control, group, given_up, || commit(control, until, claimant))?;
    if held.marks.len() == until.len() {
        return Ok(());
    }
    // The first mark. Of two that came in the same instant the last one stays, and the other sees it here or at its
    // next batch.
    let held = patiently(control, group, given_up, || committed(control, &partitions))?;
    match judge(&held, claimant) {
        Verdict::Other(mark) => Err(held_by(group, &mark)),
        _ => Ok(()),
    }
}

fn held_by(group: &str, mark: &Mark) -> Error {
    Error::GroupHeld {
        group: group.to_owned(),
        holder: format!("checkpoint {} of job `{}`", mark.checkpoint, mark.job),
        next: "a group id neither shares nor protects records: both jobs would read all of them; to share ownership, \
               give both the same checkpointLocation; for an independent copy, use another kafka.group.id; to move the \
               group to this checkpoint, pass --claim-group"
            .to_owned(),
    }
}

fn committed(control: &Control, partitions: &BTreeSet<TopicPartition>) -> Result<Held, KafkaError> {
    let mut held = Held::default();
    if partitions.is_empty() {
        return Ok(held);
    }
    let mut list = TopicPartitionList::new();
    for partition in partitions {
        list.add_partition(&partition.topic, partition.partition);
    }
    let list = control.client().committed_offsets(list, PATIENCE)?;
    for one in list.elements() {
        one.error()?;
        let KafkaOffset::Offset(offset) = one.offset() else {
            continue;
        };
        let partition = TopicPartition::new(one.topic(), one.partition());
        held.offsets.set(partition.clone(), Offset(offset));
        match Mark::read(one.metadata()) {
            Some(mark) => drop(held.marks.insert(partition, mark)),
            None => held.strange = true,
        }
    }
    Ok(held)
}

fn commit(control: &Control, until: &PartitionOffsets, claimant: &Claimant) -> Result<(), KafkaError> {
    if until.is_empty() {
        return Ok(());
    }
    let mark = Mark::of(claimant).write();
    let mut list = TopicPartitionList::new();
    for (partition, offset) in until.iter() {
        let mut one = list.add_partition(&partition.topic, partition.partition);
        one.set_offset(KafkaOffset::Offset(offset.0))?;
        one.set_metadata(mark.as_str());
    }
    control.client().commit(&list, CommitMode::Sync)
}

/// A group with members gives its partitions to them, and refuses offsets from outside.
fn refuse_members(control: &Control, group: &str) -> Result<()> {
    let Ok(list) = control.client().client().fetch_group_list(Some(group), PATIENCE) else {
        return Ok(());
    };
    let members = list.groups().iter().flat_map(|group| group.members());
    let names: Vec<String> = members
        .map(|member| format!("{} on {}", member.client_id(), member.client_host()))
        .collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(refused(
            group,
            format!("it has live members ({})", names.join(", ")),
        ))
    }
}

fn refused(group: &str, cause: String) -> Error {
    Error::GroupRefused {
        group: group.to_owned(),
        cause,
        next: "stop the consumers that subscribe with it, or use another kafka.group.id",
    }
}

/// Tries again while the group's coordinator is on its way.
#[expect(
    clippy::disallowed_methods,
    reason = "runs on a thread for blocking work, between calls that block"
)]
fn patiently<T>(
    control: &Control,
    group: &str,
    given_up: &AtomicBool,
    mut attempt: impl FnMut() -> Result<T, KafkaError>,
) -> Result<T> {
    use RDKafkaErrorCode as Code;
    let mut left = ATTEMPTS;
    loop {
        let error = match attempt() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let code = error.rdkafka_error_code();
        let passing = matches!(
            code,
            Some(
                Code::NotCoordinator
                    | Code::CoordinatorLoadInProgress
                    | Code::CoordinatorNotAvailable
                    | Code::WaitingForCoordinator
                    | Code::WaitCache
            )
        );
        left -= 1;
        if passing && left > 0 && !given_up.load(Ordering::Relaxed) {
            std::thread::sleep(BETWEEN);
            continue;
        }
        return Err(match code {
            Some(
                Code::UnknownMemberId
                | Code::IllegalGeneration
                | Code::RebalanceInProgress
                | Code::FencedInstanceId,
            ) => refused(group, "it has live members".to_owned()),
            Some(Code::GroupAuthorizationFailed) => refused(group, describe(&error)),
            code => control.failed("hold the group's offsets", code, &describe(&error), PATIENCE),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(of: u128) -> Claimant {
        // An id from a number, without this crate knowing the id's library.
        let id = format!("\"{of:032x}\"");
        Claimant::new(
            serde_json::from_str(&id).expect("32 digits are an id"),
            "job".to_owned(),
            false,
        )
    }

    fn held(marks: &[Option<u128>]) -> Held {
        let mut held = Held::default();
        for (number, mark) in (0..).zip(marks) {
            let partition = TopicPartition::new("t", number);
            held.offsets.set(partition.clone(), Offset(1));
            match mark {
                Some(of) => drop(held.marks.insert(partition, Mark::of(&claimant(*of)))),
                None => held.strange = true,
            }
        }
        held
    }

    #[test]
    fn a_mark_reads_back_and_foreign_metadata_is_none() {
        let mark = Mark::of(&claimant(7));
        assert_eq!(Mark::read(&mark.write()), Some(mark));
        assert_eq!(Mark::read(""), None);
        assert_eq!(Mark::read("{\"other\":1}"), None);
    }

    #[test]
    fn one_mark_of_another_checkpoint_is_enough_to_refuse() {
        assert_eq!(judge(&held(&[]), &claimant(1)), Verdict::Free);
        assert_eq!(judge(&held(&[Some(1), Some(1)]), &claimant(1)), Verdict::Free);
        assert_eq!(judge(&held(&[Some(1), None]), &claimant(1)), Verdict::Strange);
        assert!(matches!(
            judge(&held(&[Some(1), Some(2)]), &claimant(1)),
            Verdict::Other(_)
        ));
        assert!(matches!(
            judge(&held(&[None, Some(2)]), &claimant(1)),
            Verdict::Other(_)
        ));
    }

    #[test]
    fn the_refusal_says_why_and_what_to_do() {
        let text = held_by("g", &Mark::of(&claimant(2))).to_string();
        for part in [
            "kafka.group.id `g`",
            "job `job`",
            "both jobs would read all",
            "--claim-group",
            "checkpointLocation",
        ] {
            assert!(text.contains(part), "`{text}` lacks `{part}`");
        }
    }
}
