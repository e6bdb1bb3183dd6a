//! `baton.json`: this directory is a checkpoint.

use baton_core::CheckpointId;
use serde::{Deserialize, Serialize};

use super::directory::{Content, Directory, trouble};
use crate::layout::{FORMAT_VERSION, MARKER, OWNER};
use crate::status::Hint;
use crate::{Error, Result};

/// What [`MARKER`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Marker {
    /// The version of everything beside it.
    pub(crate) format_version: u32,
    /// Names the checkpoint for its whole life.
    pub(crate) checkpoint_id: CheckpointId,
    /// The log was not complete yet when this was written: nobody ever owned anything here, and what is there may be
    /// thrown away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) creating: bool,
}

impl Marker {
    pub(crate) const fn new(checkpoint_id: CheckpointId) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            checkpoint_id,
            creating: true,
        }
    }

    /// Reads it; `None` in an empty directory.
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>> {
        if directory.content()? == Content::Nothing {
            return Ok(None);
        }
        let path = &directory.home();
        let damaged = |reason: String| Error::DamagedMarker {
            path: path.to_owned(),
            reason,
        };
        let read = directory
            .read(MARKER)
            .map_err(|error| trouble(path, "read checkpoint", error))?;
        let Some(bytes) = read else { return Ok(None) };
        // The version first: a newer one may say the rest in another way.
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| damaged(format!("damaged ({error})")))?;
        match value["formatVersion"].as_u64() {
            Some(version) if version > u64::from(FORMAT_VERSION) => Err(Error::NewerFormat {
                path: path.to_owned(),
                what: format!("`{MARKER}`"),
                found: u32::try_from(version).unwrap_or(u32::MAX),
                known: FORMAT_VERSION,
            }),
            Some(1..) => {
                let marker = serde_json::from_value(value);
                marker
                    .map(Some)
                    .map_err(|error| damaged(format!("damaged ({error})")))
            }
            _ => Err(damaged("damaged (it has no formatVersion)".to_owned())),
        }
    }

    /// Writes it durably.
    pub(crate) fn write(self, directory: &Directory) -> Result<()> {
        let mut bytes = serde_json::to_vec(&self).expect("a marker always serialises");
        bytes.push(b'\n');
        directory
            .replace(MARKER, &bytes, true)
            .map_err(|error| trouble(directory.path(), "write to checkpoint", error))
    }
}

/// What the last owner said of itself, if it can be read and is about this checkpoint. Never more than a hint.
pub(crate) fn read_hint(directory: &Directory, id: CheckpointId) -> Option<Hint> {
    let bytes = directory.read(OWNER).ok()??;
    let hint: Hint = serde_json::from_slice(&bytes).ok()?;
    (hint.status.checkpoint_id == Some(id)).then_some(hint)
}
