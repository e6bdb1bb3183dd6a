//! Checking a checkpoint from outside: every record, the chain, and what stands beside the log.
//!
//! It is never laxer than a start: whatever a start would refuse is among what is found. It goes on behind the first
//! flaw, so that all of them are named, and each with the command that repairs it.

use baton_core::{BatchId, CheckpointId, Epoch, Position};
use serde::Serialize;
use std::path::Path;

use super::quiet::quiet;
use super::slots::{Flaw, Slots};
use crate::layout::{FORMAT_VERSION, LOG, MARKER, OWNER};
use crate::lease::{Marker, found, read_hint};
use crate::protocol::invariants;
use crate::status::Hint;
use crate::{Deps, Error, Location, Result, State, store};

/// More flaws than this are summed up.
const MOST: usize = 20;

/// What was found; serialises to the JSON of `baton checkpoint verify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verified {
    /// The location.
    pub checkpoint: String,
    /// Its id, by the marker or else by the log.
    pub checkpoint_id: Option<CheckpointId>,
    /// The format.
    pub format_version: u32,
    /// Whether nothing is damaged.
    pub whole: bool,
    /// How many records can be read.
    pub records: usize,
    /// The first slot from which all are kept.
    pub first_seq: Option<u64>,
    /// The last slot.
    pub last_seq: Option<u64>,
    /// The last slot that was acknowledged to an owner, as far as that left a word.
    pub acknowledged_seq: Option<u64>,
    /// The last owner's epoch.
    pub epoch: Option<Epoch>,
    /// The last committed batch.
    pub last_committed_batch: Option<BatchId>,
    /// The batch that was interrupted.
    pub pending_batch: Option<BatchId>,
    /// Whether its last owner has released it.
    pub state: Option<State>,
    /// What was looked at, and how it stands.
    pub checks: Vec<Check>,
    /// What is damaged.
    pub damage: Vec<Damage>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// `marker`, `files`, `records`, `chain` or `end`.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub found: String,
}

/// Something that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Damage {
    /// Its error code, the one that a start would end with.
    pub code: &'static str,
    /// The record, by its slot.
    pub seq: Option<u64>,
    /// The file, where it is not a record.
    pub file: Option<String>,
    /// What is wrong with it.
    pub what: String,
    /// The command that repairs it.
    pub repair: String,
}

/// Checks a checkpoint that nobody owns; `None` if there is none. It holds the lock for as long as it reads, and changes
/// nothing.
///
/// # Errors
/// [`RepairError::Owned`](crate::RepairError::Owned) while somebody owns it, of kind `Invalid` if the directory is
/// something else or was written by a newer version. Damage is no error, it is what is asked for.
///
/// # Cancel safety
/// It changes nothing.
pub async fn verify(location: &Location, deps: &Deps) -> Result<Option<Verified>> {
    let Some(directory) = quiet(location, deps, "verify").await? else {
        return Ok(None);
    };
    let home = directory.home();
    let path = home.as_path();
    let mut report = Report::new(location);
    let marker = match Marker::read(&directory) {
        Ok(Some(marker)) if !marker.creating => Ok(marker),
        Ok(_) => return Ok(None),
        Err(Error::DamagedMarker { reason, .. }) => Err(reason),
        Err(other) => return Err(other),
    };
    let mut id = marker.as_ref().ok().map(|marker| marker.checkpoint_id);
    // Before the log, as every reader does.
    let mut hint = id.and_then(|id| read_hint(&directory, id));
    let found = match found(&directory).await.map_err(|failure| failure.about(path)) {
        Ok(found) => found,
        Err(Error::DamagedFile { file, reason, .. }) => {
            report.marker(path, marker.map(|marker| marker.checkpoint_id), None);
            report.check("files", Err(format!("`{file}` cannot be read")));
            let offsets = hint.and_then(|hint| hint.status.offsets);
            let anew = offsets.map(|next| start_anew(&next, &format!("as `{OWNER}` last said")));
            report.damaged(Damage {
                code: "E0117",
                seq: None,
                file: Some(file),
                what: reason,
                repair: either(&restore(path), anew),
            });
            return Ok(Some(report.done(id)));
        }
        Err(other) => return Err(other),
    };
    let slots = Slots::of(&found);
    let newer = |flaw: &Flaw| Some((flaw.from, flaw.newer?));
    if let Some((seq, version)) = slots.flaws.iter().find_map(newer) {
        return Err(Error::NewerFormat {
            path: path.to_owned(),
            what: format!("record {seq}"),
            found: version.into(),
            known: crate::codec::FORMAT.into(),
        });
    }
    report.marker(path, marker.map(|marker| marker.checkpoint_id), slots.checkpoint);
    id = id.or(slots.checkpoint);
    hint = hint.or_else(|| id.and_then(|id| read_hint(&directory, id)));
    report.check("files", Ok("RocksDB reads all of it, checksums match".to_owned()));
    report.log(path, &slots, hint.as_ref());
    let acknowledged = hint.as_ref().and_then(|hint| hint.seq);
    if report.found.damage.is_empty()
        && let Some(id) = id
        && let Err(error) = store::verify(path, id, found, acknowledged)
    {
        report.as_a_start_says(path, error)?;
    }
    drop(directory);
    Ok(Some(report.done(id)))
}

struct Report {
    found: Verified,
}

impl Report {
    fn new(location: &Location) -> Self {
        Self {
            found: Verified {
                checkpoint: location.to_string(),
                checkpoint_id: None,
                format_version: FORMAT_VERSION,
                whole: false,
                records: 0,
                first_seq: None,
                last_seq: None,
                acknowledged_seq: None,
                epoch: None,
                last_committed_batch: None,
                pending_batch: None,
                state: None,
                checks: Vec::new(),
                damage: Vec::new(),
            },
        }
    }

    fn check(&mut self, name: &'static str, found: std::result::Result<String, String>) {
        self.found.checks.push(Check {
            name,
            ok: found.is_ok(),
            found: found.unwrap_or_else(|wrong| wrong),
        });
    }

    fn damaged(&mut self, damage: Damage) {
        self.found.damage.push(damage);
    }

    fn done(mut self, id: Option<CheckpointId>) -> Verified {
        self.found.checkpoint_id = id;
        self.found.whole = self.found.damage.is_empty();
        self.found
    }

    /// The marker, and whether the log is of the same checkpoint.
    fn marker(
        &mut self,
        path: &Path,
        marker: std::result::Result<CheckpointId, String>,
        log: Option<CheckpointId>,
    ) {
        let write = |id: CheckpointId| {
            format!(
                "echo '{{\"formatVersion\":{FORMAT_VERSION},\"checkpointId\":\"{id}\"}}' > {}",
                path.join(MARKER).display()
            )
        };
        let wrong = match (marker, log) {
            (Ok(id), None) => return self.check("marker", Ok(format!("`{MARKER}` names checkpoint {id}"))),
            (Ok(id), Some(log)) if id == log => {
                return self.check(
                    "marker",
                    Ok(format!("`{MARKER}` and the log name checkpoint {id}")),
                );
            }
            (Ok(id), Some(log)) => format!("`{MARKER}` names checkpoint {id}, but the log is of {log}"),
            (Err(reason), _) => format!("`{MARKER}` is {reason}"),
        };
        self.check("marker", Err(wrong.clone()));
        let by_log = log.map(|id| format!("write what the log says: {}", write(id)));
        self.damaged(Damage {
            code: "E0119",
            seq: None,
            file: Some(path.join(MARKER).display().to_string()),
            what: wrong,
            repair: match by_log {
                Some(write) => format!("restore `{MARKER}` from a backup, or {write}"),
                None => format!("restore `{MARKER}` from a backup"),
            },
        });
    }

    /// Records, chain and end.
    fn log(&mut self, path: &Path, slots: &Slots, hint: Option<&Hint>) {
        let found = &mut self.found;
        found.records = slots.records().count();
        (found.first_seq, found.last_seq) = (slots.floor, slots.last);
        found.acknowledged_seq = hint.and_then(|hint| hint.seq);
        if let Some(log) = slots.tail() {
            found.state = log.owner().map(|_| match log.released() {
                Some(_) => State::Released,
                None => State::Interrupted,
            });
            found.epoch = Some(log.epoch());
            found.last_committed_batch = log.committed().map(|committed| committed.batch);
            found.pending_batch = log.pending().map(|pending| pending.batch);
        }
        let repair = repair_of_records(path, slots, hint);

        let (count, wrong) = (slots.flaws.len(), slots.flaws.first());
        let all = format!(
            "{} records, each with its checksum, in slots {}",
            found.records,
            span(slots)
        );
        self.check(
            "records",
            match wrong {
                None => Ok(all),
                Some(_) => Err(format!("{count} flaws among {all}")),
            },
        );
        for flaw in slots.flaws.iter().take(MOST) {
            let more = match flaw.to - flaw.from {
                0 => String::new(),
                more => format!(", and so are the {more} behind it"),
            };
            self.damaged(Damage {
                code: "E0116",
                seq: Some(flaw.from),
                file: None,
                what: format!("{}{more}", flaw.what),
                repair: repair.clone(),
            });
        }
        if count > MOST {
            self.damaged(Damage {
                code: "E0116",
                seq: None,
                file: Some(path.join(LOG).display().to_string()),
                what: format!("{} more flaws", count - MOST),
                repair: repair.clone(),
            });
        }

        match slots.chain() {
            Ok(()) => {
                let rules: Vec<&str> = invariants::LOG.iter().map(|(id, _)| *id).collect();
                self.check(
                    "chain",
                    Ok(format!(
                        "each record may follow the one before it ({})",
                        rules.join(" ")
                    )),
                );
            }
            Err((seq, what)) => {
                self.check("chain", Err(format!("record {seq}: {what}")));
                self.damaged(Damage {
                    code: "E0116",
                    seq: Some(seq),
                    file: None,
                    what,
                    repair,
                });
            }
        }
        self.end(path, slots, hint);
    }

    /// Whether what was acknowledged is there.
    fn end(&mut self, path: &Path, slots: &Slots, hint: Option<&Hint>) {
        let last = slots
            .last
            .map_or_else(|| "no record".to_owned(), |last| format!("record {last}"));
        let Some(acknowledged) = hint.and_then(|hint| hint.seq) else {
            let found = format!("the log ends with {last}; `{OWNER}` does not say what was acknowledged");
            return self.check("end", Ok(found));
        };
        if slots.last.is_some_and(|last| acknowledged <= last) {
            let found = format!("the log ends with {last}, record {acknowledged} was acknowledged");
            return self.check("end", Ok(found));
        }
        let wrong = format!("the log ends with {last}, but record {acknowledged} was acknowledged");
        self.check("end", Err(wrong.clone()));
        let go_on = slots.end().map(|_| {
            format!(
                "accept that what came after {last} runs again: rm {}",
                path.join(OWNER).display()
            )
        });
        self.damaged(Damage {
            code: "E0118",
            seq: Some(acknowledged),
            file: None,
            what: wrong,
            repair: either(&restore(path), go_on),
        });
    }

    /// Whatever else a start would refuse.
    fn as_a_start_says(&mut self, path: &Path, error: Error) -> Result<()> {
        let (code, text) = (error.code(), error.to_string());
        let (seq, file, what) = match error {
            Error::DamagedRecord { seq, reason, .. } => (Some(seq), None, reason),
            Error::DamagedFile { file, reason, .. } => (None, Some(file), reason),
            Error::LostRecords { acknowledged, .. } => (Some(acknowledged), None, text),
            Error::DamagedMarker { reason, .. } => {
                (None, Some(path.join(MARKER).display().to_string()), reason)
            }
            other => return Err(other),
        };
        let name = match (seq, code) {
            (Some(_), "E0118") => "end",
            (Some(_), _) => "records",
            (None, "E0119") => "marker",
            (None, _) => "files",
        };
        self.found.checks.retain(|check| check.name != name);
        self.check(name, Err(what.clone()));
        self.damaged(Damage {
            code,
            seq,
            file,
            what,
            repair: restore(path),
        });
        Ok(())
    }
}

fn span(slots: &Slots) -> String {
    match (slots.floor, slots.last) {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "of which the log does not say how many there are".to_owned(),
    }
}

fn restore(path: &Path) -> String {
    format!("restore `{}` from a backup", path.join(LOG).display())
}

fn either(first: &str, second: Option<String>) -> String {
    second.map_or_else(|| first.to_owned(), |second| format!("{first}, or {second}"))
}

/// What is to be done about records that cannot be read.
fn repair_of_records(path: &Path, slots: &Slots, hint: Option<&Hint>) -> String {
    let acknowledged = hint.and_then(|hint| hint.seq);
    let has_end = slots.end().is_some() && acknowledged.is_none_or(|seq| Some(seq) <= slots.last);
    if has_end {
        let path = path.display();
        return format!(
            "baton checkpoint fork {path} NEW (a new checkpoint at the exact next offset, which the records behind the \
             damage say), or restore `{path}/{LOG}` from a backup"
        );
    }
    let said = hint.and_then(|hint| hint.status.offsets.clone());
    let anew = match (said, slots.before_the_first_flaw()) {
        (Some(next), _) => Some(start_anew(&next, &format!("as `{OWNER}` last said"))),
        (None, Some(next)) => Some(start_anew(
            &next,
            "where the log can be read last; what came after runs again",
        )),
        (None, None) => None,
    };
    either(&restore(path), anew)
}

/// The command that starts a job on a checkpoint of its own, at this position.
fn start_anew(next: &Position, by: &str) -> String {
    let starts: Vec<String> = next
        .0
        .iter()
        .map(|(name, offsets)| format!(" --set source.{name}.options.startingOffsets='{offsets}'"))
        .collect();
    format!(
        "baton run JOB --set sink.options.checkpointLocation=NEW{} (a new checkpoint, {by})",
        starts.concat()
    )
}
