//! `baton checkpoint rewind`.

use baton_checkpoint::{Rewind, RewindTo};
use baton_core::{BatchId, PartitionOffsets, Position, TopicPartition};
use serde_json::json;

use crate::args::{OutputForm, RewindArgs};
use crate::commands::{checkpoint, print, status};
use crate::failure::Result;
use crate::talk::say;
use crate::{render, wire};

pub(super) async fn run(args: RewindArgs) -> Result<u8> {
    let location = checkpoint(&args.checkpoint)?;
    let deps = wire::deps();
    let to = match (args.target.to_batch, &args.target.to) {
        (Some(batch), _) => RewindTo::AfterBatch(BatchId(batch)),
        (None, text) => RewindTo::offsets(text.as_deref().unwrap_or_default())
            .map_err(|refused| wire::of_checkpoint(&refused.into()))?,
    };
    let seen = baton_checkpoint::rewind(&location, &to, &deps)
        .await
        .map_err(|error| wire::of_checkpoint(&error))?
        .ok_or_else(|| super::none_at(&location))?;
    let json = status::to_json(&seen)?;
    if args.output == OutputForm::Text {
        // Before anything is done.
        print(render::repair::moves(&json).as_bytes())?;
    }
    let done = match args.dry_run {
        true => Ok(None),
        false => seen.perform(args.yes, &deps).await,
    };
    if args.output == OutputForm::Json {
        let epoch = done.as_ref().ok().copied().flatten();
        let more = [
            ("dryRun", args.dry_run.into()),
            ("changed", epoch.is_some().into()),
            ("epoch", json!(epoch)),
        ];
        print(super::with(json, more).as_bytes())?;
    }
    let epoch = done.map_err(|error| wire::of_checkpoint(&error))?;
    match epoch {
        Some(epoch) => say!(
            epoch = epoch.0,
            "moved, in epoch {epoch}: batch {} starts there. To undo it before the next start: {}",
            seen.next_batch,
            undo(&args.checkpoint, &seen)
        ),
        None if seen.partitions.is_empty() => say!("it stands there already; nothing was changed"),
        None if seen.skipped > 0 && !args.yes => {
            say!("dry run, nothing was changed; skipping records will want --yes");
        }
        None => say!("dry run, nothing was changed"),
    }
    Ok(0)
}

/// The command that brings the position back.
fn undo(checkpoint: &str, seen: &Rewind) -> String {
    let mut back = Position::default();
    for moved in &seen.partitions {
        let offsets = back
            .0
            .entry(moved.source.clone())
            .or_insert_with(PartitionOffsets::new);
        offsets.set(
            TopicPartition::new(moved.topic.as_str(), moved.partition),
            moved.from,
        );
    }
    let yes = if seen.again > 0 { " --yes" } else { "" };
    format!("baton checkpoint rewind {checkpoint} --to '{back}'{yes}")
}
