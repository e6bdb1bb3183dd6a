//! `baton checkpoint fork`.

use serde_json::json;

use crate::args::{ForkArgs, OutputForm};
use crate::commands::{checkpoint, print, status};
use crate::failure::Result;
use crate::talk::{say, warn};
use crate::{render, wire};

pub(super) async fn run(args: ForkArgs) -> Result<u8> {
    let location = checkpoint(&args.checkpoint)?;
    let new = checkpoint(&args.new)?;
    let deps = wire::deps();
    let seen = baton_checkpoint::fork(&location, &new, &deps)
        .await
        .map_err(|error| wire::of_checkpoint(&error))?
        .ok_or_else(|| super::none_at(&location))?;
    let json = status::to_json(&seen)?;
    if args.output == OutputForm::Text {
        // Before anything is done.
        print(render::repair::fork(&json).as_bytes())?;
    }
    let made = match args.dry_run {
        true => Ok(None),
        false => seen.perform(&deps).await.map(Some),
    };
    if args.output == OutputForm::Json {
        let id = made.as_ref().ok().copied().flatten();
        let more = [("dryRun", args.dry_run.into()), ("forkId", json!(id))];
        print(super::with(json, more).as_bytes())?;
    }
    let made = made.map_err(|error| wire::of_checkpoint(&error))?;
    if let Some(damage) = &seen.damage {
        warn!(
            damage,
            "the old checkpoint is damaged, its end is whole: {damage}"
        );
    }
    match made {
        Some(id) => say!(
            %id,
            "made checkpoint {id} at {new}; baton run JOB --set sink.options.checkpointLocation={new} goes on there, \
             with a kafka.group.id of its own if the job names one"
        ),
        None => say!("dry run, nothing was changed"),
    }
    Ok(0)
}
