//! What the user asked for, checked without a connection.

use baton_core::{Offset, OptionMap, PartitionOffsets, SourceContext, TopicPartition};
use regex::Regex;
use std::collections::BTreeSet;
use std::fmt;

use crate::properties::{self, Properties};
use crate::{Error, Result};

/// The options of this source, in Spark's spelling; `kafka.*` besides.
const KNOWN: [&str; 10] = [
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "maxOffsetsPerTrigger",
    "includeHeaders",
    "failOnDataLoss",
    "groupIdPrefix",
    "kafka.bootstrap.servers",
    "kafka.group.id",
];

/// Spark's options that are not there yet, and what does the job meanwhile.
const LATER: [(&str, &str); 10] = [
    ("startingTimestamp", "use startingOffsets"),
    ("startingOffsetsByTimestamp", "use startingOffsets"),
    ("startingOffsetsByTimestampStrategy", "use startingOffsets"),
    ("minOffsetsPerTrigger", "use a processingTime trigger"),
    ("maxTriggerDelay", "use a processingTime trigger"),
    ("minPartitions", "a partition is read by one stream"),
    ("maxRecordsPerPartition", "use maxOffsetsPerTrigger"),
    ("kafkaConsumer.pollTimeoutMs", "waits are bounded without it"),
    ("fetchOffset.numRetries", "waits are bounded without it"),
    ("fetchOffset.retryIntervalMs", "waits are bounded without it"),
];

/// Spark's options of a batch read.
const BATCH_ONLY: [&str; 3] = ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"];

/// Kafka's own topics are never read.
pub(crate) fn is_internal(topic: &str) -> bool {
    matches!(
        topic,
        "__consumer_offsets" | "__transaction_state" | "__share_group_state"
    )
}

/// Which partitions.
#[derive(Clone, Debug)]
pub(crate) enum Strategy {
    /// All partitions of these topics.
    Subscribe(BTreeSet<String>),
    /// All partitions of the topics in whose name the pattern is found.
    Pattern(Regex),
    /// These partitions.
    Assign(BTreeSet<TopicPartition>),
}

impl Strategy {
    /// The topics it names; none for a pattern.
    pub(crate) fn topics(&self) -> BTreeSet<&str> {
        match self {
            Self::Subscribe(topics) => topics.iter().map(String::as_str).collect(),
            Self::Pattern(_) => BTreeSet::new(),
            Self::Assign(partitions) => partitions
                .iter()
                .map(|partition| partition.topic.as_str())
                .collect(),
        }
    }
}

/// As Spark's progress describes a source.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(", ");
        match self {
            Self::Subscribe(topics) => {
                write!(
                    f,
                    "KafkaV2[Subscribe[{}]]",
                    list(topics.iter().cloned().collect())
                )
            }
            Self::Pattern(pattern) => write!(f, "KafkaV2[SubscribePattern[{pattern}]]"),
            Self::Assign(partitions) => {
                write!(
                    f,
                    "KafkaV2[Assign[{}]]",
                    list(partitions.iter().map(ToString::to_string).collect())
                )
            }
        }
    }
}

/// Where a checkpoint without a position starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Earliest,
    Latest,
    /// One offset for each partition; -1 and -2 stand for latest and earliest.
    At(PartitionOffsets),
}

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) strategy: Strategy,
    pub(crate) start: Start,
    pub(crate) limit: Option<u64>,
    pub(crate) headers: bool,
    pub(crate) fail_on_data_loss: bool,
    pub(crate) properties: Properties,
    pub(crate) notices: Vec<String>,
}

impl Options {
    /// Reads the options. Pure and offline.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::StartingOffsets`] or the vocabulary's own, each naming the option.
    pub(crate) fn read(context: &SourceContext, mut options: OptionMap) -> Result<Self> {
        refuse_unsupported(&options)?;
        refuse_unknown(options.clone())?;
        let mut notices = Vec::new();
        let strategy = strategy(&mut options, &mut notices)?;
        let start = start(options.take("startingOffsets"), &strategy)?;
        let limit: Option<i64> = options.take_parsed("maxOffsetsPerTrigger", "a whole number above 0")?;
        let limit = match limit {
            Some(limit) if limit <= 0 => {
                let reason =
                    format!("must be a whole number above 0, not `{limit}`; leave it out for no limit");
                return Err(Error::option("maxOffsetsPerTrigger", reason));
            }
            limit => limit.map(i64::unsigned_abs),
        };
        let headers = options.take_bool("includeHeaders")?.unwrap_or(false);
        let fail_on_data_loss = options.take_bool("failOnDataLoss")?.unwrap_or(true);
        if options.take("groupIdPrefix").is_some() {
            notices.push(
                "option groupIdPrefix has no effect: no group id is made up, none is needed".to_owned(),
            );
        }
        let client_id = format!("baton-{}-{}", context.job, context.name);
        let properties = properties::read(options.take_prefixed("kafka."), &client_id, &mut notices)?;
        Ok(Self {
            strategy,
            start,
            limit,
            headers,
            fail_on_data_loss,
            properties,
            notices,
        })
    }
}

fn refuse_unsupported(options: &OptionMap) -> Result<()> {
    if let Some((key, instead)) = LATER.iter().find(|(key, _)| options.get(key).is_some()) {
        return Err(Error::option(*key, format!("is not supported yet; {instead}")));
    }
    match BATCH_ONLY.iter().find(|key| options.get(key).is_some()) {
        Some(key) => {
            let reason =
                "belongs to a batch read; a stream has no end, `availableNow` stops at the present one";
            Err(Error::option(*key, reason))
        }
        None => Ok(()),
    }
}

/// Before anything is missed: what is missing may be what was misspelt.
fn refuse_unknown(mut options: OptionMap) -> Result<()> {
    drop(options.take_prefixed("kafka."));
    for known in KNOWN {
        drop(options.take(known));
    }
    Ok(options.finish(&KNOWN)?)
}

fn strategy(options: &mut OptionMap, notices: &mut Vec<String>) -> Result<Strategy> {
    const ONE: &str = "one of subscribe, subscribePattern and assign says what to read";
    let given = [
        options.take("subscribe"),
        options.take("subscribePattern"),
        options.take("assign"),
    ];
    match given {
        [Some(list), None, None] => {
            let topics = names(list.split(','));
            if topics.is_empty() {
                return Err(Error::option(
                    "subscribe",
                    "names no topic; write subscribe = \"topic1,topic2\"",
                ));
            }
            refuse_internal("subscribe", topics.iter().map(String::as_str))?;
            Ok(Strategy::Subscribe(topics))
        }
        [None, Some(pattern), None] => {
            let pattern = pattern.trim();
            if pattern.is_empty() {
                return Err(Error::option(
                    "subscribePattern",
                    "is empty; write a regular expression",
                ));
            }
            let regex = Regex::new(pattern).map_err(|error| {
                Error::option(
                    "subscribePattern",
                    format!("is not a regular expression: {}", one_line(&error)),
                )
            })?;
            if !(pattern.starts_with('^') && pattern.ends_with('$')) {
                notices.push(format!(
                    "subscribePattern is searched for anywhere in a topic's name, as in Spark: `{pattern}` also takes \
                     `x-{pattern}-y`; anchor it with ^…$ for whole names"
                ));
            }
            Ok(Strategy::Pattern(regex))
        }
        [None, None, Some(json)] => Ok(Strategy::Assign(assigned(&json)?)),
        [None, None, None] => Err(Error::option("subscribe", format!("must be specified: {ONE}"))),
        _ => Err(Error::option(
            "subscribe",
            format!("stands beside another: only {ONE}"),
        )),
    }
}

fn names<'a>(list: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    list.map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn refuse_internal<'a>(key: &str, mut topics: impl Iterator<Item = &'a str>) -> Result<()> {
    match topics.find(|topic| is_internal(topic)) {
        Some(topic) => Err(Error::option(
            key,
            format!("names `{topic}`, which is Kafka's own and is never read"),
        )),
        None => Ok(()),
    }
}

fn assigned(json: &str) -> Result<BTreeSet<TopicPartition>> {
    let refuse = |reason: String| {
        Error::option(
            "assign",
            format!("must be JSON like {{\"topic\":[0,1]}}: {reason}"),
        )
    };
    let topics: std::collections::BTreeMap<String, Vec<i32>> =
        serde_json::from_str(json).map_err(|error| refuse(error.to_string()))?;
    refuse_internal("assign", topics.keys().map(String::as_str))?;
    let mut partitions = BTreeSet::new();
    for (topic, numbers) in topics {
        for number in numbers {
            if number < 0 {
                return Err(refuse(format!("partition {number} of `{topic}` is negative")));
            }
            partitions.insert(TopicPartition::new(topic.as_str(), number));
        }
    }
    if partitions.is_empty() {
        return Err(refuse("it names no partition".to_owned()));
    }
    Ok(partitions)
}

fn start(text: Option<String>, strategy: &Strategy) -> Result<Start> {
    let Some(text) = text else {
        return Ok(Start::Latest);
    };
    match text.trim().to_ascii_lowercase().as_str() {
        "earliest" => return Ok(Start::Earliest),
        "latest" => return Ok(Start::Latest),
        _ => {}
    }
    let refuse = |reason: String| Error::StartingOffsets { reason };
    let offsets = PartitionOffsets::from_json(&text)
        .map_err(|error| refuse(format!("must be earliest, latest or JSON; {error}")))?;
    // A pattern's partitions, and the number of a topic's, are only known to the broker.
    match strategy {
        Strategy::Assign(partitions) => fit(&offsets, partitions)?,
        Strategy::Subscribe(topics) => {
            let named: BTreeSet<String> = offsets.iter().map(|(partition, _)| partition.topic).collect();
            if let Some(topic) = named.symmetric_difference(topics).next() {
                let way = if named.contains(topic) {
                    "names topic `{}`, which subscribe does not"
                } else {
                    "lacks topic `{}`"
                };
                return Err(refuse(way.replace("{}", topic)));
            }
        }
        Strategy::Pattern(_) => {}
    }
    Ok(Start::At(offsets))
}

/// Refuses starting offsets that do not name exactly these partitions.
pub(crate) fn fit(offsets: &PartitionOffsets, partitions: &BTreeSet<TopicPartition>) -> Result<()> {
    let refuse = |reason| Err(Error::StartingOffsets { reason });
    if let Some(lacking) = partitions
        .iter()
        .find(|partition| offsets.of(partition).is_none())
    {
        return refuse(format!(
            "must name every partition that is read; {lacking} is missing (-1 means latest, -2 earliest)"
        ));
    }
    match offsets
        .iter()
        .find(|(partition, _)| !partitions.contains(partition))
    {
        Some((stray, Offset(at))) => refuse(format!(
            "gives {at} for {stray}, which is not read or does not exist"
        )),
        None => Ok(()),
    }
}

/// An error text that was laid out in lines, as one.
fn one_line(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    text.lines()
        .last()
        .unwrap_or_default()
        .trim()
        .trim_start_matches("error: ")
        .to_owned()
}

#[cfg(test)]
mod tests;
