//! `baton stop`.

use baton_checkpoint::{State, StopOutcome};

use crate::args::StopArgs;
use crate::failure::Result;
use crate::talk::say;
use crate::wire;

pub(super) async fn run(args: StopArgs) -> Result<u8> {
    let location = super::checkpoint(&args.checkpoint)?;
    let deps = wire::deps();
    // A mistyped place must not look like a job that has stopped.
    let status = baton_checkpoint::inspect(&location, &deps).await;
    if status.map_err(|error| wire::of_checkpoint(&error))?.state == State::Empty {
        say!("there is no checkpoint at {location}; nothing to stop");
        return Ok(0);
    }
    let stopped = baton_checkpoint::stop(&location, args.now, args.timeout, &deps).await;
    match stopped.map_err(|error| wire::of_checkpoint(&error))? {
        StopOutcome::Released => say!("the owner of {location} has stopped and released it"),
        StopOutcome::Told => {
            say!(
                "the owner of {location} was told to stop now; a batch that it was in runs again at the next start"
            )
        }
        StopOutcome::NotRunning => say!("nobody owns {location}; nothing to stop"),
        _ => say!("the owner of {location} was told to stop"),
    }
    Ok(0)
}
