//! Whether a job lives, and whether it is ready: facts in, verdict out.
//!
//! ```text
//!                                /healthz   /readyz
//! preparing                      200        503   until --start-timeout is well over, then 503
//! standby, warm                  200        200   for however long
//! going on from the log          200        503
//! owner: a batch, idle, resting  200        200   until nothing has moved for STILL, then 503
//! a source is away               200        200   until it has been away for AWAY, then 503
//! asked to hand over, or to stop 200        503
//! failed                         503        503   for the moment until the process ends
//! ```
//! Whoever asks `/healthz` restarts the process on a 503. A restart is always safe here: the next start goes on from the
//! log. It is not always of use, so the verdict turns only where it may be:
//!
//! - A standby that is restarted loses its place and its warmth, and cannot make its owner leave: it is never ill.
//! - An outage of the broker is not healed by a restart. It even gets longer: a process that waits notices the broker's
//!   return within a second, one that cannot start ends after `--start-timeout` and is started again after its
//!   orchestrator's back-off, minutes later. But a restart does heal what only looks like an outage from within:
//!   resolved names and certificates that have changed, a client in a state that it does not leave. Hence [`AWAY`].
//! - A batch in which nothing moves may never move again. Hence [`STILL`].

use baton_core::Epoch;
use std::time::Duration;

use crate::render;
use Verdict::{Fine, Wrong};

/// How long nothing may move before the job counts as stuck. No wait of ours is that long: a look at a broker gives up
/// after seconds, a transaction after one minute. It is also what Kafka grants a consumer between two polls
/// (`max.poll.interval.ms`) before it gives its partitions away.
pub(super) const STILL: Duration = Duration::from_secs(5 * 60);

/// How long a source may be away before a restart is worth trying. Longer than a rolling restart or a failover of a
/// cluster takes; and three times the longest usual back-off (5 minutes), so that the time which the restarts may add to
/// a real outage is small beside the outage.
pub(super) const AWAY: Duration = Duration::from_secs(15 * 60);

/// What the process is to its checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It checks everything that can fail, and has asked nobody for anything.
    Preparing,
    /// It is prepared, and somebody else owns the checkpoint.
    Standby {
        /// Who, in words.
        holder: String,
    },
    /// It owns the checkpoint.
    Owner(Epoch),
}

/// What is known of a job.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) role: Role,
    /// Whether it has gone on from the log, and batches run.
    pub(super) has_started: bool,
    /// Whether it was asked to end.
    pub(super) is_stopping: bool,
    /// Who has asked for the checkpoint.
    pub(super) successor: Option<String>,
    /// How it ended, once it has; a failure in words.
    pub(super) end: Option<Result<(), String>>,
    /// What it is doing, in words.
    pub(super) doing: String,
    /// The batch that runs next, or now.
    pub(super) batch: u64,
    /// How long nothing has moved.
    pub(super) still: Duration,
    /// The source that is away, for how long, and why.
    pub(super) away: Option<(String, Duration, String)>,
    /// How long the process has been there.
    pub(super) age: Duration,
    /// How long an unreachable broker is waited for at the start.
    pub(super) start_timeout: Duration,
}

/// An answer, with the line that explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine(String),
    Wrong(String),
}

/// Whether the process should be left alone.
pub(super) fn lives(facts: &Facts) -> Verdict {
    match &facts.end {
        Some(Err(why)) => return Wrong(format!("failed: {why}")),
        Some(Ok(())) => return Fine("ended".to_owned()),
        None => {}
    }
    match &facts.role {
        Role::Standby { holder } => Fine(format!("standby, waiting for {holder}")),
        Role::Preparing if facts.age >= facts.start_timeout + STILL => Wrong(format!(
            "stuck: preparing for {}, with a --start-timeout of {}: {}",
            render::age(facts.age),
            render::age(facts.start_timeout),
            facts.doing
        )),
        Role::Preparing => Fine(format!("preparing: {}", facts.doing)),
        Role::Owner(epoch) => owner_lives(*epoch, facts),
    }
}

fn owner_lives(epoch: Epoch, facts: &Facts) -> Verdict {
    if let Some((source, lasting, error)) = &facts.away {
        let text = format!(
            "source {source} has not answered for {}: {error}",
            render::age(*lasting)
        );
        return if *lasting >= AWAY {
            Wrong(text)
        } else {
            Fine(format!("waiting: {text}"))
        };
    }
    if facts.still >= STILL {
        return Wrong(format!(
            "stuck: nothing has moved for {}, at batch {}: {}",
            render::age(facts.still),
            facts.batch,
            facts.doing
        ));
    }
    Fine(format!("owner, epoch {epoch}: {}", facts.doing))
}

/// Whether a deployment may go on to its next step: the job runs here, or could from one moment to the next.
pub(super) fn is_ready(facts: &Facts) -> Verdict {
    let living = match lives(facts) {
        Fine(living) => living,
        wrong @ Wrong(_) => return wrong,
    };
    if facts.end.is_some() {
        return Wrong(living);
    }
    if facts.is_stopping {
        return Wrong(format!("stopping: {}", facts.doing));
    }
    if let Some(successor) = &facts.successor {
        return Wrong(format!("handing over to {successor}: {}", facts.doing));
    }
    match facts.role {
        Role::Preparing => Wrong(living),
        Role::Owner(_) if !facts.has_started => Wrong(format!("starting: {}", facts.doing)),
        Role::Standby { .. } | Role::Owner(_) => Fine(living),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn owner() -> Facts {
        Facts {
            role: Role::Owner(Epoch(3)),
            has_started: true,
            is_stopping: false,
            successor: None,
            end: None,
            doing: "Processing new data".to_owned(),
            batch: 17,
            still: Duration::ZERO,
            away: None,
            age: 3_600 * SECOND,
            start_timeout: 60 * SECOND,
        }
    }

    fn standby() -> Facts {
        Facts {
            role: Role::Standby {
                holder: "v1 (pid 7 on h)".to_owned(),
            },
            has_started: false,
            doing: "Initializing sources".to_owned(),
            ..owner()
        }
    }

    fn preparing(age: Duration) -> Facts {
        Facts {
            role: Role::Preparing,
            age,
            ..standby()
        }
    }

    fn away(lasting: Duration) -> Facts {
        Facts {
            away: Some(("messages".to_owned(), lasting, "refused".to_owned())),
            ..owner()
        }
    }

    /// Alive, ready, and what one of the two lines must contain.
    fn check(facts: &Facts, alive: bool, ready: bool, line: &str) {
        let (lives, is_ready) = (lives(facts), is_ready(facts));
        assert_eq!(
            (matches!(lives, Fine(_)), matches!(is_ready, Fine(_))),
            (alive, ready),
            "{lives:?} {is_ready:?}"
        );
        let said = format!("{lives:?} {is_ready:?}");
        assert!(said.contains(line), "`{line}` is not in {said}");
    }

    #[test]
    fn an_owner_at_work_is_alive_and_ready_until_nothing_has_moved_for_five_minutes() {
        check(&owner(), true, true, "owner, epoch 3: Processing new data");
        let still = |still| Facts { still, ..owner() };
        check(&still(STILL - SECOND), true, true, "");
        check(
            &still(STILL),
            false,
            false,
            "nothing has moved for 5m 0s, at batch 17: Processing new data",
        );
    }

    #[test]
    fn a_source_that_is_away_is_waited_for_and_a_restart_is_asked_for_after_a_quarter_of_an_hour() {
        check(
            &away(SECOND),
            true,
            true,
            "waiting: source messages has not answered for 1s: refused",
        );
        check(&away(AWAY - SECOND), true, true, "");
        check(
            &away(AWAY),
            false,
            false,
            "source messages has not answered for 15m 0s: refused",
        );
        // The loop asks again and again, and says so every 30 s only.
        let asks = Facts {
            still: STILL + SECOND,
            ..away(10 * 60 * SECOND)
        };
        check(&asks, true, true, "waiting");
    }

    #[test]
    fn a_warm_standby_is_ready_and_never_ill_however_long_it_waits() {
        let old = Facts {
            still: 1_000 * STILL,
            age: 1_000 * STILL,
            ..standby()
        };
        check(&old, true, true, "standby, waiting for v1 (pid 7 on h)");
    }

    #[test]
    fn preparation_is_alive_and_not_ready_and_bounded_by_what_it_was_granted() {
        check(&preparing(SECOND), true, false, "preparing: Initializing sources");
        check(&preparing(60 * SECOND + STILL - SECOND), true, false, "");
        check(
            &preparing(60 * SECOND + STILL),
            false,
            false,
            "--start-timeout of 1m 0s",
        );
        let patient = Facts {
            start_timeout: 3_600 * SECOND,
            ..preparing(60 * SECOND + STILL)
        };
        check(&patient, true, false, "");
    }

    #[test]
    fn an_owner_that_still_goes_through_the_log_is_not_ready() {
        let resuming = Facts {
            has_started: false,
            doing: "Going on from the checkpoint".to_owned(),
            ..owner()
        };
        check(&resuming, true, false, "starting: Going on from the checkpoint");
    }

    #[test]
    fn who_leaves_is_alive_and_no_longer_ready() {
        let stopping = Facts {
            is_stopping: true,
            ..owner()
        };
        check(&stopping, true, false, "stopping: Processing new data");
        check(
            &Facts {
                is_stopping: true,
                ..standby()
            },
            true,
            false,
            "stopping",
        );
        let handing_over = Facts {
            successor: Some("v2".to_owned()),
            ..owner()
        };
        check(&handing_over, true, false, "handing over to v2");
    }

    #[test]
    fn an_end_is_not_ready_and_a_failure_is_named() {
        let ended = |end| Facts {
            end: Some(end),
            ..owner()
        };
        check(&ended(Ok(())), true, false, "ended");
        check(
            &ended(Err("the sink gave up".to_owned())),
            false,
            false,
            "failed: the sink gave up",
        );
    }
}
