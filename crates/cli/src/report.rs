//! What happens to a query, as lines on stderr.

use baton_core::{BatchId, Position, Timestamp};
use baton_engine::checkpoint::AcquireEvent;
use baton_engine::{AbandonReason, HandOver, QueryEvent, StreamingQueryProgress};
use std::time::Duration;

use crate::failure::chain;
use crate::render;
use crate::talk::{say, warn};

/// Says one event.
pub(crate) fn event(event: &QueryEvent) {
    match event {
        QueryEvent::Notice { about, text } => say!(about, "{about}: {text}"),
        QueryEvent::Acquire(step) => acquire(step),
        QueryEvent::Acquired {
            checkpoint,
            epoch,
            run,
            last_committed,
            ..
        } => {
            let last = last_committed.map_or_else(
                || "no batch yet".to_owned(),
                |batch| format!("last batch {batch}"),
            );
            say!(%checkpoint, epoch = epoch.0, %run, "owner of checkpoint {checkpoint} since epoch {epoch}, {last}");
        }
        QueryEvent::StartsAt(position) => {
            say!(offsets = %position, "fresh checkpoint, starts at {}", offsets(position))
        }
        QueryEvent::Replaying { batch, from, until } => say!(
            batch = batch.0,
            "batch {batch} was planned and not committed: it runs again, {} records of the same range",
            from.offsets_until(until)
                .map_or_else(|_| "all".to_owned(), render::count)
        ),
        QueryEvent::Adopted { batch } => {
            say!(
                batch = batch.0,
                "batch {batch} was published and not committed: it counts as done, nothing is repeated"
            );
        }
        QueryEvent::Gap { source, gap } => {
            let (range, at) = (gap.lost.range, &gap.lost.partition);
            warn!(%source, partition = %at, from = range.from().0, until = range.until().0,
                "source {source}: offsets {}..{} of {at} are lost ({}); going on behind them", range.from(), range.until(), gap.reason);
        }
        QueryEvent::BatchDone(progress) => batch(progress),
        QueryEvent::ReplacedCharacters { batch, count } => {
            warn!(
                batch = batch.0,
                count,
                "batch {batch}: {count} bytes or sequences were no UTF-8 and became replacement characters"
            );
        }
        QueryEvent::Idle { since } => say!(
            seconds = since.as_secs(),
            "no new data for {}",
            render::age(*since)
        ),
        QueryEvent::Overrun(overrun) => warn!(
            missed = overrun.missed,
            "a batch took {}, longer than the trigger's {}; {} missed",
            render::millis(overrun.took),
            render::millis(overrun.interval),
            render::plural(overrun.missed, "tick")
        ),
        QueryEvent::SourceWaiting { source, error, since } => {
            let error = chain(error);
            warn!(%source, error, "source {source} does not answer for {}, waiting: {error}", render::age(*since));
        }
        QueryEvent::SourceBack { source, after } => {
            say!(%source, "source {source} answers again after {}", render::age(*after))
        }
        QueryEvent::SinkRetry {
            batch,
            error,
            attempt,
        } => {
            let error = chain(error);
            warn!(
                batch = batch.0,
                attempt, error, "batch {batch} did not get through, attempt {attempt} follows: {error}"
            );
        }
        QueryEvent::PublishFailed { source, error } => {
            let error = chain(error);
            warn!(%source, error, "source {source}: the position could not be published, only outside tools are behind: {error}");
        }
        QueryEvent::HandedOver(hand_over) => handed_over(hand_over),
        QueryEvent::HandOverRequested { by } => say!(by, "{by} asks for the checkpoint; finishing the batch"),
        QueryEvent::HandOverWithdrawn => say!("the request for the checkpoint was withdrawn; going on"),
        QueryEvent::Stopping => say!("stopping; finishing the batch"),
        QueryEvent::Abandoned { batch, why } => abandoned(*batch, *why),
        _ => tracing::debug!(?event, "event"),
    }
}

/// Says what happens on the way to a checkpoint.
pub(crate) fn acquire(step: &AcquireEvent) {
    match step {
        AcquireEvent::Difference { notes, refusals } => {
            for difference in notes.iter().chain(refusals) {
                say!(difference, "differs from the job in the checkpoint: {difference}");
            }
        }
        AcquireEvent::Waiting { holder, why } => {
            let who = holder
                .as_ref()
                .map_or_else(|| "the owner".to_owned(), ToString::to_string);
            say!(holder = who, "waiting for {who}: {why}");
        }
        AcquireEvent::Degraded { reason } => warn!(reason, "waiting instead of taking over: {reason}"),
        AcquireEvent::Asked { holder } => say!(holder = %holder, "asked {holder} to hand over"),
        AcquireEvent::Accepted { batch, .. } => {
            let first = batch.map_or_else(String::new, |batch| format!(", after batch {batch}"));
            say!(
                batch = batch.map(|batch| batch.0),
                "the owner will hand over{first}"
            );
        }
        AcquireEvent::Forced { holder } => warn!(holder = %holder, "ended {holder}"),
        _ => tracing::debug!(?step, "acquire"),
    }
}

fn batch(progress: &StreamingQueryProgress) {
    let behind: i64 = progress.sources.iter().filter_map(behind).sum();
    let lag = if progress
        .sources
        .iter()
        .all(|source| source.latest_offset.is_none())
    {
        String::new()
    } else {
        format!(", {} behind", render::count(behind.unsigned_abs()))
    };
    say!(
        batch = progress.batch_id,
        rows = progress.num_input_rows,
        ms = progress.batch_duration,
        epoch = progress.epoch,
        "batch {} at {}: {} in {} ms{lag}",
        progress.batch_id,
        progress.timestamp,
        render::plural(progress.num_input_rows, "row"),
        progress.batch_duration
    );
}

fn behind(source: &baton_engine::SourceProgress) -> Option<i64> {
    let (end, latest) = (source.end_offset.as_ref()?, source.latest_offset.as_ref()?);
    Some(
        latest
            .iter()
            .map(|(at, last)| (last.0 - end.of(&at).map_or(0, |offset| offset.0)).max(0))
            .sum(),
    )
}

fn handed_over(hand_over: &HandOver) {
    let HandOver {
        from,
        to,
        last_batch,
        first_batch,
        commit_gap,
        excess_gap,
        max_delay,
    } = hand_over;
    let last = last_batch.map_or_else(|| "none".to_owned(), |batch| batch.to_string());
    let delay = max_delay.map_or_else(|| "unknown".to_owned(), |ms| format!("{ms} ms"));
    say!(
        from,
        to,
        last_batch,
        first_batch,
        commit_gap,
        excess_gap,
        max_delay,
        "handed over from {from} to {to}: last batch {last}, first batch {first_batch}, commit_gap {commit_gap} ms, \
         excess_gap {excess_gap} ms, max_delay {delay}"
    );
}

fn abandoned(batch: Option<BatchId>, why: AbandonReason) {
    let what = batch.map_or_else(|| "the batch".to_owned(), |batch| format!("batch {batch}"));
    let why = match why {
        AbandonReason::StopTimeout => "stopTimeout has passed",
        _ => "as asked",
    };
    warn!(
        batch = batch.map(|batch| batch.0),
        "abandoned {what}, {why}; the next start runs it again"
    );
}

fn offsets(position: &Position) -> String {
    render::offsets(&serde_json::to_value(position).unwrap_or_default()).join("; ")
}

/// The age of a stamp.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_millis((now.0 - then.0).max(0).unsigned_abs())
}
