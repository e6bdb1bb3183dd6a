//! The `kafka` format: options on one side, Kafka on the other.

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use baton_core::{
    Admission, BatchStream, Claimant, Clock, ErrorKind, Fault, Offset, OpenContext, OptionMap,
    PartitionOffsets, PartitionRange, Source, SourceContext, SourceFormat, SourcePlan, TokioClock,
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::control::{Control, Found, PATIENCE};
use crate::fetch::{Fetcher, Librdkafka};
use crate::options::{Options, Start, fit};
use crate::plan::{Facts, Rules, decide};
use crate::{Error, Result, group, rows};

/// While nothing comes in, a broker is asked this often: it may be away, and partitions may be new.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often something that seems to be gone is looked for again, and how long between; Spark's
/// `fetchOffset.numRetries` and `fetchOffset.retryIntervalMs`.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How long between attempts to reach a broker at the start.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(250);

/// The format `kafka`.
///
/// ```
/// use baton_core::SourceFormat;
/// assert_eq!(baton_source_kafka::format().name(), "kafka");
/// ```
#[must_use]
pub fn format() -> impl SourceFormat {
    Format
}

struct Format;

impl SourceFormat for Format {
    fn name(&self) -> &'static str {
        "kafka"
    }

    fn source(&self, context: &SourceContext, options: OptionMap) -> Result<Box<dyn Source>, Fault> {
        let options = Options::read(context, options)?;
        let schema = rows::schema(options.headers);
        let clock = Arc::new(TokioClock::start());
        Ok(Box::new(Kafka {
            options,
            schema,
            clock,
            open: OnceLock::new(),
            idle: Mutex::default(),
        }))
    }
}

struct Kafka {
    options: Options,
    schema: SchemaRef,
    clock: Arc<dyn Clock>,
    open: OnceLock<Open>,
    idle: Mutex<Option<Idle>>,
}

/// What is there once a broker has answered.
struct Open {
    control: Arc<Control>,
    fetcher: Box<dyn Fetcher>,
}

/// A look that found nothing new.
struct Idle {
    at: PartitionOffsets,
    since: Duration,
}

impl Kafka {
    fn opened(&self) -> Result<&Open> {
        self.open
            .get()
            .ok_or_else(|| Error::bug("the source is used before it is open"))
    }

    /// Which partitions exist.
    async fn find(&self, control: &Arc<Control>, patience: Duration) -> Result<Found> {
        let strategy = self.options.strategy.clone();
        control
            .blocking(move |control, _| control.find(&strategy, patience))
            .await
    }

    /// The same, waiting for a broker at most this long.
    async fn reach(&self, control: &Arc<Control>, bound: Duration) -> Result<Found> {
        let start = self.clock.elapsed();
        loop {
            let left = bound.saturating_sub(self.clock.elapsed().saturating_sub(start));
            let failed = match self.find(control, PATIENCE.min(left)).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => error,
                done => return done,
            };
            if self.clock.elapsed().saturating_sub(start) + BETWEEN_ATTEMPTS >= bound {
                return Err(failed.after(bound));
            }
            tracing::info!(error = %failed, "waiting for Kafka");
            self.clock.sleep(BETWEEN_ATTEMPTS).await;
        }
    }

    /// Asks Kafka where things are, seen from `from`.
    async fn look(&self, control: &Arc<Control>, from: &PartitionOffsets) -> Result<Facts> {
        let mut looks = 1;
        loop {
            let (strategy, from_here) = (self.options.strategy.clone(), from.clone());
            let facts = control
                .blocking(move |control, given_up| {
                    let found = control.find(&strategy, PATIENCE)?;
                    let latest = control.all_at(found.partitions, Offset::LATEST, given_up)?;
                    let mut facts = Facts {
                        latest,
                        ..Facts::default()
                    };
                    let starts: Vec<_> = facts.open_starts(&from_here).collect();
                    facts.earliest = control.all_at(starts, Offset::EARLIEST, given_up)?;
                    Ok(facts)
                })
                .await?;
            if looks == LOOKS || !facts.look_wrong(from) {
                return Ok(facts);
            }
            looks += 1;
            self.clock.sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Whether a look at `from` found nothing a moment ago, and nothing has come in since.
    fn is_idle_at(&self, from: &PartitionOffsets, open: &Open) -> bool {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = idle.as_ref().is_some_and(|idle| {
            idle.at == *from && self.clock.elapsed().saturating_sub(idle.since) < LOOK_EVERY
        });
        recent && open.fetcher.is_quiet(from)
    }

    fn set_idle_at(&self, at: Option<PartitionOffsets>) {
        let since = self.clock.elapsed();
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = at.map(|at| Idle { at, since });
    }
}

#[async_trait]
impl Source for Kafka {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn description(&self) -> String {
        self.options.strategy.to_string()
    }

    fn notices(&self) -> Vec<String> {
        self.options.notices.clone()
    }

    async fn open(&self, context: &OpenContext) -> Result<(), Fault> {
        let control = Arc::new(Control::connect(&self.options.properties)?);
        let found = self.reach(&control, context.start_timeout).await?;
        found.complain(control.address())?;
        if found.partitions.is_empty() {
            tracing::warn!(
                source = self.description(),
                "no topic matches yet; topics that come are read"
            );
        }
        let fetcher = Librdkafka::new(
            Arc::clone(&control),
            self.options.properties.clone(),
            self.options.fail_on_data_loss,
            Arc::clone(&self.clock),
        );
        let open = Open {
            control,
            fetcher: Box::new(fetcher),
        };
        // Opened before: what is there serves as well.
        drop(self.open.set(open));
        Ok(())
    }

    async fn start(&self) -> Result<PartitionOffsets, Fault> {
        let control = &self.opened()?.control;
        let found = self.find(control, PATIENCE).await?;
        found.complain(control.address())?;
        let (start, strict) = (self.options.start.clone(), self.options.fail_on_data_loss);
        let resolved = control.blocking(move |control, given_up| match start {
            Start::Earliest => control.all_at(found.partitions, Offset::EARLIEST, given_up),
            Start::Latest => control.all_at(found.partitions, Offset::LATEST, given_up),
            Start::At(offsets) => {
                fit(&offsets, &found.partitions)?;
                let resolved = control.resolve(&offsets, PATIENCE, given_up)?;
                // Without failOnDataLoss the first plan goes on where it can, and names the gap.
                if strict {
                    let first = control.all_at(found.partitions.clone(), Offset::EARLIEST, given_up)?;
                    let end = control.all_at(found.partitions, Offset::LATEST, given_up)?;
                    check_range(&resolved, &first, &end)?;
                }
                Ok(resolved)
            }
        });
        Ok(resolved.await?)
    }

    async fn claim(&self, claimant: &Claimant) -> Result<(), Fault> {
        let open = self.opened()?;
        let Some(group) = self.options.properties.group().map(str::to_owned) else {
            return Ok(());
        };
        let found = self.find(&open.control, PATIENCE).await?;
        let claimant = claimant.clone();
        let claimed = open.control.blocking(move |control, given_up| {
            group::claim(control, &group, &found.partitions, &claimant, given_up)
        });
        Ok(claimed.await?)
    }

    async fn plan(&self, from: &PartitionOffsets, admission: &Admission) -> Result<SourcePlan, Fault> {
        let open = self.opened()?;
        if self.is_idle_at(from, open) {
            let mut nothing = SourcePlan::default();
            (nothing.from, nothing.until, nothing.latest) = (from.clone(), from.clone(), from.clone());
            return Ok(nothing);
        }
        self.set_idle_at(None);
        let facts = self.look(&open.control, from).await?;
        let rules = Rules {
            limit: self.options.limit,
            fail_on_data_loss: self.options.fail_on_data_loss,
        };
        let plan = decide(from, &facts, admission, rules)?;
        if plan.latest == *from {
            // With the fetch under way, news tells itself.
            if !open.fetcher.is_quiet(from) {
                open.fetcher.warm(from).await?;
            }
            self.set_idle_at(Some(plan.latest.clone()));
        }
        Ok(plan)
    }

    async fn warm(&self, at: &PartitionOffsets) {
        let warmed = match self.opened() {
            Ok(open) => open.fetcher.warm(at).await,
            Err(error) => Err(error),
        };
        if let Err(error) = warmed {
            tracing::debug!(%error, "not warmed up");
        }
    }

    fn read(&self, ranges: &[PartitionRange], streams: usize) -> Result<Vec<BatchStream>, Fault> {
        Ok(self.opened()?.fetcher.read(ranges, streams, &self.schema)?)
    }

    async fn publish(&self, claimant: &Claimant, until: &PartitionOffsets) -> Result<(), Fault> {
        let open = self.opened()?;
        let Some(group) = self.options.properties.group().map(str::to_owned) else {
            return Ok(());
        };
        let (claimant, until) = (claimant.clone(), until.clone());
        let published = open
            .control
            .blocking(move |control, given_up| group::publish(control, &group, &until, &claimant, given_up));
        Ok(published.await?)
    }
}

/// Refuses a start where a partition has no records.
fn check_range(start: &PartitionOffsets, first: &PartitionOffsets, end: &PartitionOffsets) -> Result<()> {
    const GO_ON: &str = "or set failOnDataLoss = false to start at the nearest offset there is";
    for (partition, at) in start.iter() {
        let (first, end) = (
            first.of(&partition).unwrap_or_default(),
            end.of(&partition).unwrap_or_default(),
        );
        let wrong = if at > end {
            format!("gives {at} for {partition}, which ends at {end}; give {end} at most (-1 means latest)")
        } else if at < first {
            format!(
                "gives {at} for {partition}, whose first record left is {first}; give {first} or more (-2 means earliest)"
            )
        } else {
            continue;
        };
        return Err(Error::StartingOffsets {
            reason: format!("{wrong}, {GO_ON}"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::TopicPartition;

    #[test]
    fn starts_outside_of_what_is_there_are_refused_with_the_bound() {
        let at = |offset| PartitionOffsets::from_iter([(TopicPartition::new("t", 0), Offset(offset))]);
        let check = |start| check_range(&at(start), &at(10), &at(20)).map_err(|error| error.to_string());
        assert!(check(10).is_ok() && check(20).is_ok());
        assert!(check(21).expect_err("beyond").contains("ends at 20"));
        assert!(check(9).expect_err("before").contains("first record left is 10"));
    }
}
