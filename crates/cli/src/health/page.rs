//! The metrics as Prometheus reads them, text format 0.0.4.

use baton_core::{Position, SourceName};
use std::fmt::{Display, Write as _};
use std::time::Duration;

use super::counts::{Counts, Histogram, OfSource};
use super::metrics::{self as m, BUCKETS, Kind, Metric};
use super::verdict::Role;

/// The content type of [`render`].
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a page shows.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) job: &'a str,
    pub(super) version: &'a str,
    pub(super) sink: &'a str,
    pub(super) counts: &'a Counts,
    /// Whether the log has refused it as an older owner.
    pub(super) is_fenced: bool,
    pub(super) still: Duration,
    /// The source that is away.
    pub(super) away: Option<&'a SourceName>,
    pub(super) lag: Option<&'a Position>,
}

/// The whole page.
pub(super) fn render(scene: &Scene<'_>) -> String {
    let mut page = Page::default();
    let counts = scene.counts;
    page.family(&m::INFO).sample(
        &[
            ("name", scene.job),
            ("version", scene.version),
            ("baton", env!("CARGO_PKG_VERSION")),
        ],
        1,
    );
    of_checkpoint(&mut page, scene);
    of_batches(&mut page, counts);
    if counts.epoch().is_some() {
        page.family(&m::STILL).sample(&[], scene.still.as_secs_f64());
    }
    page.family(&m::OVERRUNS).sample(&[], counts.overruns);
    page.family(&m::MISSED).sample(&[], counts.missed);
    page.family(&m::REPLACED).sample(&[], counts.replaced);
    of_sources(&mut page, scene);
    let sink = [("sink", scene.sink)];
    page.family(&m::ROWS_OUT).sample(&sink, counts.rows_out);
    page.family(&m::RETRIES).sample(&sink, counts.retries);
    page.0
}

fn of_checkpoint(page: &mut Page, scene: &Scene<'_>) {
    let counts = scene.counts;
    let mut role = page.family(&m::ROLE);
    for (word, is_it) in [
        ("preparing", counts.role == Role::Preparing),
        ("standby", matches!(counts.role, Role::Standby { .. })),
        ("owner", matches!(counts.role, Role::Owner(_))),
    ] {
        role.sample(&[("role", word)], u8::from(is_it));
    }
    if let Some(epoch) = counts.epoch() {
        page.family(&m::EPOCH).sample(&[], epoch);
    }
    if let Some(batch) = counts.last_batch {
        page.family(&m::LAST_BATCH).sample(&[], batch);
    }
    if let Some(at) = counts.last_commit {
        let (seconds, ms) = (at.0.div_euclid(1_000), at.0.rem_euclid(1_000));
        page.family(&m::LAST_COMMIT)
            .sample(&[], format_args!("{seconds}.{ms:03}"));
    }
    page.family(&m::FENCED)
        .sample(&[], counts.fenced + u64::from(scene.is_fenced));
    page.family(&m::ADOPTED).sample(&[], counts.adopted);
    page.family(&m::REPLAYED).sample(&[], counts.replayed);
    if let Some(cost) = &counts.hand_over {
        let mut family = page.family(&m::HAND_OVER);
        family.sample(&[("measure", "commit_gap")], Seconds(cost.commit_gap));
        family.sample(&[("measure", "excess_gap")], Seconds(cost.excess_gap));
        if let Some(delay) = cost.max_delay {
            family.sample(&[("measure", "max_delay")], Seconds(delay));
        }
    }
}

fn of_batches(page: &mut Page, counts: &Counts) {
    let mut family = page.family(&m::DURATION);
    for (phase, histogram) in &counts.durations {
        family.histogram(phase, histogram);
    }
}

fn of_sources(page: &mut Page, scene: &Scene<'_>) {
    let counts = scene.counts;
    if counts.epoch().is_some() {
        let mut up = page.family(&m::SOURCE_UP);
        for (name, _) in &counts.sources {
            let is_up = scene.away != Some(name);
            up.sample(&[("source", name.as_str())], u8::from(is_up));
        }
    }
    let mut lag = page.family(&m::LAG);
    for (source, partitions) in scene.lag.iter().flat_map(|lag| &lag.0) {
        for (at, behind) in partitions.iter() {
            let partition = at.partition.to_string();
            let labels = [
                ("source", source.as_str()),
                ("topic", &at.topic),
                ("partition", &partition),
            ];
            lag.sample(&labels, behind.0.max(0));
        }
    }
    let mut each = |metric: &Metric, of: fn(&OfSource) -> u64| {
        let mut family = page.family(metric);
        for (name, source) in &counts.sources {
            family.sample(&[("source", name.as_str())], of(source));
        }
    };
    each(&m::ROWS_IN, |source| source.rows);
    each(&m::GAPS, |source| source.gaps);
    each(&m::LOST, |source| source.lost);
    each(&m::PUBLISH_FAILURES, |source| source.publish_failures);
}

/// Milliseconds, written as seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    /// Starts a metric: its samples follow one another.
    fn family<'a>(&'a mut self, metric: &'a Metric) -> Family<'a> {
        let Metric { name, kind, help, .. } = metric;
        self.line(format_args!(
            "# HELP {name} {help}\n# TYPE {name} {}",
            kind.word()
        ));
        Family { page: self, metric }
    }

    fn line(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        let _infallible = writeln!(self.0, "{line}");
    }
}

struct Family<'a> {
    page: &'a mut Page,
    metric: &'a Metric,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.named("", labels, value);
    }

    fn named(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        let name = self.metric.name;
        self.page.line(format_args!("{name}{suffix}{labels} {value}"));
    }

    fn histogram(&mut self, phase: &str, histogram: &Histogram) {
        debug_assert_eq!(self.metric.kind, Kind::Histogram);
        let mut below = 0;
        for ((_, bound), count) in BUCKETS.iter().zip(histogram.buckets) {
            below += count;
            self.named("_bucket", &[("phase", phase), ("le", bound)], below);
        }
        self.named("_bucket", &[("phase", phase), ("le", "+Inf")], histogram.count);
        self.named("_sum", &[("phase", phase)], Seconds(histogram.sum_ms));
        self.named("_count", &[("phase", phase)], histogram.count);
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::{BatchId, Epoch, PartitionOffsets, Timestamp};
    use std::collections::BTreeSet;

    fn messages() -> SourceName {
        SourceName::new("messages").expect("a name")
    }

    fn owner() -> Counts {
        let mut counts = Counts::new([messages()]);
        counts.role = Role::Owner(Epoch(3));
        counts.last_batch = Some(BatchId(17));
        counts.last_commit = Some(Timestamp(1_796_092_891_023));
        counts.hand_over = Some(baton_engine::HandOver {
            from: "v1".to_owned(),
            to: "v2".to_owned(),
            last_batch: Some(16),
            first_batch: 17,
            commit_gap: 1_041,
            excess_gap: 41,
            max_delay: None,
        });
        let histogram = counts.durations.entry("walCommit").or_default();
        histogram.add(2);
        histogram.add(400_000);
        counts
    }

    fn lag() -> Position {
        let offsets = PartitionOffsets::from_json(r#"{"t":{"0":0,"1":30}}"#).expect("offsets");
        [(messages(), offsets)].into_iter().collect()
    }

    fn scene<'a>(counts: &'a Counts, lag: Option<&'a Position>) -> Scene<'a> {
        Scene {
            job: "char-count",
            version: "v2 \"blue\"\\",
            sink: "console",
            counts,
            is_fenced: false,
            still: Duration::from_millis(1_500),
            away: None,
            lag,
        }
    }

    fn check(page: &str, line: &str) {
        assert!(
            page.lines().any(|found| found == line),
            "`{line}` is not in\n{page}"
        );
    }

    #[test]
    fn an_owner_shows_epoch_role_lag_commit_and_durations() {
        let page = render(&scene(&owner(), Some(&lag())));
        for line in [
            r#"baton_job_info{name="char-count",version="v2 \"blue\"\\",baton="0.1.0"} 1"#,
            r#"baton_checkpoint_role{role="owner"} 1"#,
            r#"baton_checkpoint_role{role="standby"} 0"#,
            "baton_checkpoint_epoch 3",
            "baton_checkpoint_last_committed_batch 17",
            "baton_checkpoint_last_commit_timestamp_seconds 1796092891.023",
            r#"baton_checkpoint_hand_over_seconds{measure="commit_gap"} 1.041"#,
            "baton_engine_still_seconds 1.5",
            r#"baton_source_up{source="messages"} 1"#,
            r#"baton_source_lag_records{source="messages",topic="t",partition="0"} 0"#,
            r#"baton_source_lag_records{source="messages",topic="t",partition="1"} 30"#,
            r#"baton_sink_rows_total{sink="console"} 0"#,
            "# TYPE baton_checkpoint_fenced_total counter",
            "baton_checkpoint_fenced_total 0",
        ] {
            check(&page, line);
        }
    }

    #[test]
    fn buckets_are_cumulative_and_the_last_holds_all() {
        let page = render(&scene(&owner(), Some(&lag())));
        for line in [
            r#"baton_engine_batch_duration_seconds_bucket{phase="walCommit",le="0.001"} 0"#,
            r#"baton_engine_batch_duration_seconds_bucket{phase="walCommit",le="0.005"} 1"#,
            r#"baton_engine_batch_duration_seconds_bucket{phase="walCommit",le="300"} 1"#,
            r#"baton_engine_batch_duration_seconds_bucket{phase="walCommit",le="+Inf"} 2"#,
            r#"baton_engine_batch_duration_seconds_sum{phase="walCommit"} 400.002"#,
            r#"baton_engine_batch_duration_seconds_count{phase="walCommit"} 2"#,
        ] {
            check(&page, line);
        }
    }

    #[test]
    fn a_standby_shows_what_it_knows_and_claims_nothing_else() {
        let mut counts = Counts::new([messages()]);
        counts.role = Role::Standby {
            holder: "v1".to_owned(),
        };
        let page = render(&scene(&counts, None));
        check(&page, r#"baton_checkpoint_role{role="standby"} 1"#);
        check(&page, r#"baton_source_rows_total{source="messages"} 0"#);
        for absent in [
            "baton_checkpoint_epoch ",
            "baton_checkpoint_last_committed_batch ",
            "baton_checkpoint_last_commit_timestamp_seconds ",
            "baton_engine_still_seconds ",
            "baton_source_up{",
            "baton_source_lag_records{",
        ] {
            assert!(
                !page.lines().any(|line| line.starts_with(absent)),
                "{absent} in\n{page}"
            );
        }
    }

    #[test]
    fn an_outage_and_a_lost_ownership_are_seen() {
        let messages = messages();
        let page = render(&Scene {
            away: Some(&messages),
            is_fenced: true,
            ..scene(&owner(), None)
        });
        check(&page, r#"baton_source_up{source="messages"} 0"#);
        check(&page, "baton_checkpoint_fenced_total 1");
    }

    #[test]
    fn every_sample_follows_its_own_help_and_type_and_no_family_comes_twice() {
        let page = render(&scene(&owner(), Some(&lag())));
        let (mut current, mut seen) = (String::new(), BTreeSet::new());
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap_or_default().to_owned();
                assert!(seen.insert(current.clone()), "{current} twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(rest.starts_with(&format!("{current} ")), "{line}");
            } else {
                let name = line.split(['{', ' ']).next().unwrap_or_default();
                assert!(
                    name.strip_prefix(&current)
                        .is_some_and(|suffix| ["", "_bucket", "_sum", "_count"].contains(&suffix)),
                    "{line} under {current}"
                );
                let value = line.rsplit(' ').next().unwrap_or_default();
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        let all: BTreeSet<String> = m::ALL.iter().map(|metric| metric.name.to_owned()).collect();
        assert_eq!(seen, all, "every metric is on the page of an owner");
    }
}
