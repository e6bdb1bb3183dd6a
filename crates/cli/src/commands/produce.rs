//! `baton produce`.

use baton_source_kafka::Producer;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::args::ProduceArgs;
use crate::failure::{Failure, Result};
use crate::render;
use crate::signals::Signals;
use crate::talk::{say, warn};

/// More than any broker takes by default; keeps input without line ends from filling memory.
const MAX_LINE: u64 = 16 << 20;

pub(super) async fn run(args: ProduceArgs) -> Result<u8> {
    let mut signals = Signals::listen()?;
    let failed = |error: baton_source_kafka::Error| Failure::of(error.kind(), error.code(), &error);
    let producer = Producer::connect(&args.bootstrap_server).map_err(failed)?;
    let mut input = BufReader::new(tokio::io::stdin());
    let (mut line, mut sent) = (Vec::new(), 0_u64);
    let interrupted = loop {
        line.clear();
        let read = tokio::select! {
            read = read_line(&mut input, &mut line) => read?,
            caught = signals.next() => break Some(caught),
        };
        if !read {
            break None;
        }
        // Waits while too much is under way: the broker sets the pace.
        producer
            .send(&args.topic, None, Some(&line))
            .await
            .map_err(failed)?;
        sent += 1;
    };
    producer.flush().await.map_err(failed)?;
    match interrupted {
        Some(caught) => {
            warn!(
                sent,
                "{}: {} sent to {}",
                caught.name,
                render::plural(sent, "message"),
                args.topic
            );
            Ok(caught.exit_code())
        }
        None => {
            say!(sent, "{} sent to {}", render::plural(sent, "message"), args.topic);
            Ok(0)
        }
    }
}

/// One line without its end; false at the end of the input.
async fn read_line(input: &mut BufReader<tokio::io::Stdin>, line: &mut Vec<u8>) -> Result<bool> {
    let unreadable = |text: String| Failure::new(baton_core::ErrorKind::Failed, "E0513", text);
    let read = (&mut *input).take(MAX_LINE + 1).read_until(b'\n', line).await;
    let read = read.map_err(|error| unreadable(format!("cannot read stdin: {error}")))?;
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    } else if read as u64 > MAX_LINE {
        return Err(unreadable(
            "a line of stdin is longer than 16 MiB; every line is one message".to_owned(),
        ));
    }
    Ok(read > 0)
}
