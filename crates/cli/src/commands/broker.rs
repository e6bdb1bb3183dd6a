//! `baton broker`.

use baton_source_kafka::EmbeddedBroker;

use crate::args::BrokerArgs;
use crate::failure::{Failure, Result};
use crate::signals::Signals;
use crate::talk::say;

pub(super) async fn run(args: BrokerArgs) -> Result<u8> {
    let mut signals = Signals::listen()?;
    let topics: Vec<(&str, i32)> = args
        .topics
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    let broker =
        EmbeddedBroker::start(&topics).map_err(|error| Failure::of(error.kind(), error.code(), &error))?;
    super::print(format!("{}\nready\n", broker.bootstrap_servers()).as_bytes())?;
    let caught = signals.next().await;
    say!("{}: the broker and its messages are gone", caught.name);
    Ok(0)
}
