//! Every name below a checkpoint's prefix.
//!
//! ```text
//! log/00000000000000000007        slot 7, created once           snapshot/00000000000000000005   what slots 0 to 5 mean
//! owner                           the renewal counter, a hint    probe/<id>                      for a moment, at start
//! mail/<candidate>                a request, a hint              mail/<candidate>.answer         its answer, a hint
//! ```

use baton_core::OwnerId;
use object_store::path::Path;
use uuid::Uuid;

pub(super) const ANSWER: &str = ".answer";

/// A number that sorts as text.
fn numbered(prefix: &Path, folder: &str, seq: u64) -> Path {
    prefix.clone().join(folder).join(format!("{seq:020}"))
}

pub(super) fn log(prefix: &Path) -> Path {
    prefix.clone().join("log")
}

pub(super) fn slot(prefix: &Path, seq: u64) -> Path {
    numbered(prefix, "log", seq)
}

pub(super) fn snapshots(prefix: &Path) -> Path {
    prefix.clone().join("snapshot")
}

pub(super) fn snapshot(prefix: &Path, seq: u64) -> Path {
    numbered(prefix, "snapshot", seq)
}

/// The number in such a name; none for what is not ours.
pub(super) fn number(path: &Path) -> Option<u64> {
    let name = path.filename()?;
    (name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| name.parse().ok())
        .flatten()
}

pub(super) fn owner(prefix: &Path) -> Path {
    prefix.clone().join("owner")
}

pub(super) fn probe(prefix: &Path, id: Uuid) -> Path {
    prefix.clone().join("probe").join(id.to_string())
}

pub(super) fn mail(prefix: &Path) -> Path {
    prefix.clone().join("mail")
}

pub(super) fn letter(prefix: &Path, candidate: OwnerId) -> Path {
    mail(prefix).join(candidate.0.to_string())
}

pub(super) fn answer(prefix: &Path, candidate: OwnerId) -> Path {
    mail(prefix).join(format!("{}{ANSWER}", candidate.0))
}
