//! `baton stop`.

use baton_checkpoint::StopOutcome;

use crate::args::StopArgs;
use crate::failure::Result;
use crate::talk::say;
use crate::wire;

pub(super) async fn run(args: StopArgs) -> Result<u8> {
    let location = super::checkpoint(&args.checkpoint)?;
    let stopped = baton_checkpoint::stop(&location, args.now, args.timeout, &wire::deps()).await;
    match stopped.map_err(|error| wire::of_checkpoint(&error))? {
        StopOutcome::Released => say!("the owner of {location} has stopped and released it"),
        StopOutcome::Told => {
            say!("the owner of {location} was told to stop now; the next start runs its batch again")
        }
        StopOutcome::NotRunning => say!("nobody owns {location}; nothing to stop"),
        _ => say!("the owner of {location} was told to stop"),
    }
    Ok(0)
}
