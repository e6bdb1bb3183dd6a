//! Reading a checkpoint without owning it.

use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::directory::{Directory, Tenant};
use super::marker::{Marker, read_hint};
use crate::codec::decode_slot;
use crate::layout::{FORMAT_VERSION, LOG};
use crate::protocol::{Body, Record};
use crate::store::{Contents, Failure, Found, Rocks, verify};
use crate::{Deps, Error, Location, Recovery, Result};

/// A reader may meet an owner that replaces the very files it opens.
const ATTEMPTS: u32 = 5;

/// What a look at a checkpoint found.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) marker: Marker,
    pub(crate) contents: Contents,
}

/// Looks at a checkpoint; `None` if there is none yet.
pub(crate) async fn look(directory: &Arc<Directory>) -> Result<Option<Look>> {
    let Some(marker) = Marker::read(directory)?.filter(|marker| !marker.creating) else {
        return Ok(None);
    };
    let mut attempt = 1;
    loop {
        // Before the log: what was acknowledged then must be there now.
        let hint = read_hint(directory, marker.checkpoint_id);
        let acknowledged = hint.as_ref().and_then(|hint| hint.seq);
        let looked = match found(directory).await {
            Ok(found) => verify(&directory.home(), marker.checkpoint_id, found, acknowledged),
            Err(failure) => Err(failure.about(&directory.home())),
        };
        match looked {
            Ok(contents) => return Ok(Some(Look { marker, contents })),
            Err(_) if attempt < ATTEMPTS && directory.lock_holder().is_some() => attempt += 1,
            Err(error) => return Err(error),
        }
        tokio::task::yield_now().await;
    }
}

/// The bytes of its log, as they are.
pub(crate) async fn found(directory: &Arc<Directory>) -> Result<Found, Failure> {
    let log = directory.home().join(LOG);
    let reading = tokio::task::spawn_blocking(move || Rocks::read(&log)?.found());
    reading
        .await
        .map_err(|_| Failure::other("its reader ended".to_owned()))?
}

/// What a start would find, without owning anything; `None` if it would be the first. The check of what is there is the
/// same as a start's, so that a candidate which could not run finds out before it asks.
///
/// # Errors
/// Of kind `Corrupt`, naming the record or file, or `Invalid` if the directory is something else.
///
/// # Cancel safety
/// It changes nothing.
pub async fn preview(location: &Location, deps: &Deps) -> Result<Option<Recovery>> {
    #[cfg(feature = "object-store")]
    if let Some(place) = location.place() {
        return Box::pin(super::remote::preview(place, deps)).await;
    }
    let _ = deps;
    let Some(directory) = Directory::open(location.path(), Tenant::Job)?.map(Arc::new) else {
        return Ok(None);
    };
    Ok(look(&directory).await?.map(|look| {
        let mut recovery = look.contents.log().recovery(look.marker.checkpoint_id);
        // Who handed over to the present owner is not for us.
        recovery.handed_over_by = None;
        recovery
    }))
}

/// The log of a checkpoint; serialises to the JSON of `baton checkpoint show`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Show {
    /// Its id; absent while it is empty.
    pub checkpoint_id: Option<baton_core::CheckpointId>,
    /// The format.
    pub format_version: u32,
    /// The records, in the order of the log; several may have one `seq`.
    pub records: Vec<Value>,
    /// What is wrong with those that are missing, where something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Reads the whole log, whoever owns the checkpoint. Of a damaged log it shows what can be read.
///
/// # Errors
/// When nothing can be read.
///
/// # Cancel safety
/// It changes nothing.
pub async fn show(location: &Location, deps: &Deps) -> Result<Show> {
    let mut shown = Show {
        checkpoint_id: None,
        format_version: FORMAT_VERSION,
        records: Vec::new(),
        damage: None,
    };
    #[cfg(feature = "object-store")]
    if let Some(place) = location.place() {
        return Box::pin(super::remote::show(place, deps, shown)).await;
    }
    let _ = deps;
    let Some(directory) = Directory::find(location.path())?.map(Arc::new) else {
        return Ok(shown);
    };
    let records = match look(&directory).await {
        Ok(None) => return Ok(shown),
        Ok(Some(look)) => look.contents.records,
        Err(error @ (Error::DamagedRecord { .. } | Error::LostRecords { .. })) => {
            shown.damage = Some(error.to_string());
            let found = found(&directory)
                .await
                .map_err(|failure| failure.about(&directory.home()))?;
            let slots = found.slots.into_iter().filter_map(|(key, value)| {
                let seq = key.try_into().map(u64::from_be_bytes).ok()?;
                decode_slot(seq, &value).ok()
            });
            slots.flatten().collect()
        }
        Err(error) => return Err(error),
    };
    shown.checkpoint_id = Marker::read(&directory)?.map(|marker| marker.checkpoint_id);
    shown.records = records.iter().map(json_of).collect();
    Ok(shown)
}

pub(super) fn json_of(record: &Record) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
    put("seq", record.seq.into());
    put("kind", record.body.kind().into());
    put("epoch", record.epoch.0.into());
    match &record.body {
        Body::Plan { batch, .. } | Body::Commit { batch, .. } => put("batchId", batch.0.into()),
        _ => {}
    }
    put("at", crate::stamp::format(record.at).into());
    put("version", record.version.as_str().into());
    match &record.body {
        Body::Fence {
            reason,
            host,
            pid,
            replaces,
            shape,
        } => {
            put("reason", reason.as_str().into());
            put("owner", record.owner.to_string().into());
            put("host", host.as_str().into());
            put("pid", (*pid).into());
            put("replaces", json!(replaces));
            put("job", shape.job.as_str().into());
        }
        Body::Position { next, reason } => {
            put("next", json!(next));
            put("reason", reason.to_string().into());
        }
        Body::Plan {
            from, until, sink, ..
        } => {
            put("start", json!(from));
            put("end", json!(until));
            if !sink.0.is_empty() {
                put("sink", json!(sink));
            }
            put("writeId", record.write_id.to_string().into());
        }
        Body::Commit { plan, receipt, .. } => {
            put("plan", plan.to_string().into());
            put("rows", receipt.rows.into());
            if !receipt.note.is_empty() {
                put("note", receipt.note.as_str().into());
            }
        }
        Body::Release {
            after,
            next,
            successor,
        } => {
            put("after", json!(after));
            put("next", json!(next));
            put("successor", json!(successor));
        }
    }
    if let Some(handover) = &record.handover {
        put("handover", json!(handover));
    }
    Value::Object(object)
}
