//! `baton checkpoint show`.

use crate::args::{OutputForm, ShowArgs};
use crate::failure::Result;
use crate::{render, wire};

pub(super) async fn run(args: ShowArgs) -> Result<u8> {
    let location = super::checkpoint(&args.checkpoint)?;
    let show = baton_checkpoint::show(&location, &wire::deps())
        .await
        .map_err(|error| wire::of_checkpoint(&error))?;
    if show.checkpoint_id.is_none() && show.records.is_empty() {
        return Err(super::checkpoint::none_at(&location));
    }
    let json = super::status::to_json(&show)?;
    let text = match args.output {
        OutputForm::Json => format!("{json}\n"),
        OutputForm::Text => render::records(&json),
    };
    super::print(text.as_bytes())?;
    Ok(0)
}
