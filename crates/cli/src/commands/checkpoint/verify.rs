//! `baton checkpoint verify`.

use baton_checkpoint::Verified;
use baton_core::ErrorKind;

use crate::args::{OutputForm, VerifyArgs};
use crate::commands::{checkpoint, print, status};
use crate::failure::{Failure, Result};
use crate::{render, wire};

pub(super) async fn run(args: VerifyArgs) -> Result<u8> {
    let location = checkpoint(&args.checkpoint)?;
    let found = baton_checkpoint::verify(&location, &wire::deps())
        .await
        .map_err(|error| wire::of_checkpoint(&error))?
        .ok_or_else(|| super::none_at(&location))?;
    let json = status::to_json(&found)?;
    let text = match args.output {
        OutputForm::Json => format!("{json}\n"),
        OutputForm::Text => render::repair::verified(&json),
    };
    print(text.as_bytes())?;
    match failure(&found) {
        Some(failure) => Err(failure),
        None => Ok(0),
    }
}

/// The first damage in one line, under the code that a start would end with.
fn failure(found: &Verified) -> Option<Failure> {
    let first = found.damage.first()?;
    let place = match (first.seq, &first.file) {
        (Some(seq), _) => format!("record {seq} of checkpoint `{}`", found.checkpoint),
        (None, Some(file)) => format!("`{file}`"),
        (None, None) => format!("checkpoint `{}`", found.checkpoint),
    };
    let more = match found.damage.len() {
        0 | 1 => String::new(),
        count => format!(", and {} more above", count - 1),
    };
    let text = format!("{place} is damaged: {}{more}; {}", first.what, first.repair);
    Some(Failure::new(ErrorKind::Corrupt, first.code, text))
}
