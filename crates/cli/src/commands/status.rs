//! `baton status`.

use std::io::IsTerminal;
use std::time::Duration;

use crate::args::{OutputForm, StatusArgs};
use crate::failure::{Failure, Result};
use crate::signals::Signals;
use crate::{render, wire};

const EVERY: Duration = Duration::from_secs(1);

pub(super) async fn run(args: StatusArgs) -> Result<u8> {
    let location = super::checkpoint(&args.checkpoint)?;
    let deps = wire::deps();
    let look = async || {
        let status = baton_checkpoint::inspect(&location, &deps)
            .await
            .map_err(|error| wire::of_checkpoint(&error))?;
        let json = to_json(&status)?;
        Ok::<_, Failure>(match args.output {
            OutputForm::Json => format!("{json}\n"),
            OutputForm::Text => render::status(&json, deps.clock.now()),
        })
    };
    if !args.watch {
        super::print(look().await?.as_bytes())?;
        return Ok(0);
    }
    let mut signals = Signals::listen()?;
    let clears = args.output == OutputForm::Text && std::io::stdout().is_terminal();
    let mut first = true;
    loop {
        let mut text = look().await?;
        if clears {
            // Home, then clear what is below: no flicker.
            text.insert_str(0, "\x1b[H\x1b[J");
        } else if !first && args.output == OutputForm::Text {
            text.insert(0, '\n');
        }
        first = false;
        if !super::print_while_read(text.as_bytes())? {
            return Ok(0);
        }
        tokio::select! {
            _ = signals.next() => return Ok(0),
            () = deps.clock.sleep(EVERY) => {}
        }
    }
}

/// The form that is promised to scripts.
pub(super) fn to_json(value: &impl serde::Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(value).map_err(|error| {
        Failure::new(
            baton_core::ErrorKind::Internal,
            "E0511",
            format!("cannot be shown: {error}"),
        )
    })
}
