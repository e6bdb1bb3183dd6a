//! `kafka.*` options: Java's names on the outside, librdkafka's inside.

use baton_core::{Secret, nearest};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use std::collections::BTreeMap;
use std::fmt;

use crate::{Error, Result, ffi};

/// Set by this source; what the user would want instead.
const FORBIDDEN: [(&str, &str); 10] = [
    (
        "auto.offset.reset",
        "cannot be set: startingOffsets says where a new checkpoint starts, the checkpoint where an old one goes on",
    ),
    (
        "key.deserializer",
        "cannot be set: keys are bytes; use CAST(key AS STRING) in the SQL",
    ),
    (
        "value.deserializer",
        "cannot be set: values are bytes; use CAST(value AS STRING) in the SQL",
    ),
    (
        "enable.auto.commit",
        "cannot be set: the checkpoint holds the position, and goes to kafka.group.id after each batch",
    ),
    (
        "interceptor.classes",
        "cannot be set: Java classes cannot be loaded",
    ),
    (
        "enable.auto.offset.store",
        "cannot be set: the checkpoint holds the position",
    ),
    (
        "enable.partition.eof",
        "cannot be set: the reader needs it to find the end of a range",
    ),
    (
        "allow.auto.create.topics",
        "cannot be set: a source creates no topics",
    ),
    ("plugin.library.paths", "cannot be set: no foreign code is loaded"),
    (
        "test.mock.num.brokers",
        "cannot be set; start an embedded broker with `baton broker`",
    ),
];

/// Java's properties that mean nothing here: taken, so that a Spark job's options can stay as they are, and said.
const IGNORED: [&str; 11] = [
    "max.poll.records",
    "default.api.timeout.ms",
    "partition.assignment.strategy",
    "auto.commit.interval.ms",
    "exclude.internal.topics",
    "group.instance.id",
    "group.protocol",
    "client.rack.enable",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.sample.window.ms",
];

/// Java's name, librdkafka's name.
const RENAMED: [(&str, &str); 9] = [
    ("fetch.max.wait.ms", "fetch.wait.max.ms"),
    ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
    ("request.timeout.ms", "socket.timeout.ms"),
    ("receive.buffer.bytes", "socket.receive.buffer.bytes"),
    ("send.buffer.bytes", "socket.send.buffer.bytes"),
    (
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    ),
    ("ssl.truststore.certificates", "ssl.ca.pem"),
    ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
    ("ssl.keystore.key", "ssl.key.pem"),
];

/// How the clients are set up. Values of secret keys are never printed.
#[derive(Clone)]
pub(crate) struct Properties {
    /// By librdkafka's names; without `group.id`.
    settings: BTreeMap<String, String>,
    group: Option<String>,
    committed_only: bool,
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |key: &str, value: &str| {
            if Secret::is_secret_key(key) {
                "***".to_owned()
            } else {
                value.to_owned()
            }
        };
        f.debug_map()
            .entries(self.settings.iter().map(|(key, value)| (key, shown(key, value))))
            .finish()
    }
}

impl Properties {
    /// Where to ask first.
    pub(crate) fn bootstrap_servers(&self) -> &str {
        self.settings.get("bootstrap.servers").map_or("", String::as_str)
    }

    pub(crate) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Whether aborted and open transactions are hidden.
    pub(crate) const fn committed_only(&self) -> bool {
        self.committed_only
    }

    /// A client's configuration: `defaults`, overruled by the user, overruled by `fixed`.
    pub(crate) fn config(&self, defaults: &[(&str, String)], fixed: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (key, value) in defaults {
            config.set(*key, value.as_str());
        }
        for (key, value) in &self.settings {
            config.set(key.as_str(), value.as_str());
        }
        for (key, value) in fixed {
            config.set(*key, *value);
        }
        config
    }
}

/// Reads the `kafka.*` options, prefix cut off.
///
/// # Errors
/// [`Error::Option`] for a forbidden one, or with librdkafka's own answer to one that it does not know or take.
pub(crate) fn read(
    given: Vec<(String, String)>,
    client_id: &str,
    notices: &mut Vec<String>,
) -> Result<Properties> {
    let mut settings = BTreeMap::from([("client.id".to_owned(), client_id.to_owned())]);
    // librdkafka's name back to what the user typed, for messages.
    let mut typed = BTreeMap::new();
    let mut group = None;
    for (key, value) in given {
        let shown = format!("kafka.{key}");
        let key = key.to_ascii_lowercase();
        if let Some((_, reason)) = FORBIDDEN.iter().find(|(name, _)| *name == key) {
            return Err(Error::option(shown, *reason));
        }
        if IGNORED.contains(&key.as_str()) {
            notices.push(format!(
                "option {shown} has no effect: the reader is no member of a group and takes whole ranges"
            ));
            continue;
        }
        if key == "group.id" {
            if value.trim().is_empty() {
                return Err(Error::option(shown, "is empty; leave it out to use no group"));
            }
            group = Some(value);
            continue;
        }
        for (name, value) in translate(&shown, &key, value)? {
            if let Some(other) = typed.insert(name.clone(), shown.clone()) {
                return Err(Error::option(
                    shown,
                    format!("sets the same as `{other}`; keep one of them"),
                ));
            }
            settings.insert(name, value);
        }
    }
    if settings
        .get("bootstrap.servers")
        .is_none_or(|servers| servers.trim().is_empty())
    {
        return Err(Error::option(
            "kafka.bootstrap.servers",
            "must be specified: host:port, several parted by commas",
        ));
    }
    let committed_only = match settings.get("isolation.level").map(String::as_str) {
        None => {
            settings.insert("isolation.level".to_owned(), "read_committed".to_owned());
            notices.push(
                "isolation.level is read_committed: records of aborted transactions are not read (Spark's default \
                 shows them; set kafka.isolation.level = read_uncommitted for that)"
                    .to_owned(),
            );
            true
        }
        Some(level) => level == "read_committed",
    };
    check(&settings, &typed)?;
    Ok(Properties {
        settings,
        group,
        committed_only,
    })
}

/// Java's property as librdkafka's; a few become two.
fn translate(shown: &str, key: &str, value: String) -> Result<Vec<(String, String)>> {
    let pem = |value: &str| {
        value.to_ascii_lowercase().ends_with(".pem") || value.to_ascii_lowercase().ends_with(".crt")
    };
    let one = |name: &str, value: String| Ok(vec![(name.to_owned(), value)]);
    if let Some((_, name)) = RENAMED.iter().find(|(java, _)| *java == key) {
        return one(name, value);
    }
    match key {
        "sasl.jaas.config" => jaas(shown, &value),
        "ssl.truststore.location" if pem(&value) => one("ssl.ca.location", value),
        "ssl.truststore.location" | "ssl.truststore.password" => Err(Error::option(
            shown,
            "must be a PEM file: a Java key store cannot be read; \
             `keytool -exportcert -rfc -keystore FILE -alias NAME > ca.pem` exports it",
        )),
        "ssl.truststore.type" | "ssl.keystore.type" => match value.to_ascii_uppercase().as_str() {
            "PEM" | "PKCS12" => Ok(Vec::new()),
            _ => Err(Error::option(
                shown,
                "must be PEM or PKCS12: a Java key store cannot be read",
            )),
        },
        "ssl.keystore.location" if pem(&value) => Ok(vec![
            ("ssl.certificate.location".to_owned(), value.clone()),
            ("ssl.key.location".to_owned(), value),
        ]),
        "ssl.endpoint.identification.algorithm" if value.is_empty() => one(key, "none".to_owned()),
        _ => one(key, value),
    }
}

/// User and password out of Java's login module line.
fn jaas(shown: &str, value: &str) -> Result<Vec<(String, String)>> {
    let of = |name: &str| {
        let rest = &value[value.find(&format!("{name}="))? + name.len() + 1..];
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let rest = &rest[1..];
        Some(rest[..rest.find(quote)?].to_owned())
    };
    match (of("username"), of("password")) {
        (Some(user), Some(password))
            if value.contains("PlainLoginModule") || value.contains("ScramLoginModule") =>
        {
            Ok(vec![
                ("sasl.username".to_owned(), user),
                ("sasl.password".to_owned(), password),
            ])
        }
        _ => Err(Error::option(
            shown,
            "must be a PlainLoginModule or ScramLoginModule with username=\"…\" password=\"…\"; or set \
             kafka.sasl.username and kafka.sasl.password",
        )),
    }
}

/// Lets librdkafka look at each property, which needs no connection.
fn check(settings: &BTreeMap<String, String>, typed: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in settings {
        let mut one = ClientConfig::new();
        one.set(name.as_str(), value.as_str());
        let Err(error) = one.create_native_config() else {
            continue;
        };
        let shown = typed.get(name).map_or(name.as_str(), String::as_str);
        let KafkaError::ClientConfig(_, answer, ..) = error else {
            return Err(Error::option(shown, "cannot be used"));
        };
        // The answer to a bad value may repeat the value.
        let mut reason = if Secret::is_secret_key(name) && !value.is_empty() {
            format!("cannot be used: {}", answer.replace(value.as_str(), "***"))
        } else {
            format!("cannot be used: {answer}")
        };
        let known = ffi::property_names();
        if !known.iter().any(|known| known == name)
            && let Some(near) = nearest(name, known.iter().map(String::as_str))
        {
            reason.push_str(&format!("; did you mean `kafka.{near}`?"));
        }
        return Err(Error::option(shown, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties<const N: usize>(given: [(&str, &str); N]) -> Result<(Properties, Vec<String>)> {
        let mut notices = Vec::new();
        let servers = ("bootstrap.servers".to_owned(), "localhost:9092".to_owned());
        let given = given
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let read = read(given.chain([servers]).collect(), "client", &mut notices)?;
        Ok((read, notices))
    }

    #[track_caller]
    fn becomes(java: (&str, &str), ours: (&str, &str)) {
        let (read, _) = properties([java]).expect("valid");
        assert_eq!(
            read.settings.get(ours.0).map(String::as_str),
            Some(ours.1),
            "{java:?}"
        );
    }

    #[track_caller]
    fn refused<const N: usize>(given: [(&str, &str); N], says: &str) -> String {
        let text = properties(given).expect_err("must be refused").to_string();
        assert!(text.contains(says), "`{text}` does not say `{says}`");
        text
    }

    #[test]
    fn the_names_of_java_are_mapped() {
        becomes(("fetch.max.wait.ms", "7"), ("fetch.wait.max.ms", "7"));
        becomes(
            ("max.partition.fetch.bytes", "70000"),
            ("fetch.message.max.bytes", "70000"),
        );
        becomes(("request.timeout.ms", "5000"), ("socket.timeout.ms", "5000"));
        becomes(
            ("ssl.truststore.location", "/ca.pem"),
            ("ssl.ca.location", "/ca.pem"),
        );
        becomes(
            ("ssl.endpoint.identification.algorithm", ""),
            ("ssl.endpoint.identification.algorithm", "none"),
        );
        becomes(("Client.Id", "me"), ("client.id", "me"));
        let jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"p w\";";
        becomes(("sasl.jaas.config", jaas), ("sasl.username", "u"));
        becomes(("sasl.jaas.config", jaas), ("sasl.password", "p w"));
    }

    #[test]
    fn unknown_and_bad_properties_are_refused_in_the_words_of_the_client() {
        refused([("fetch.mn.bytes", "1")], "did you mean `kafka.fetch.min.bytes`");
        refused([("fetch.min.bytes", "none")], "kafka.fetch.min.bytes");
        refused([("ssl.truststore.location", "/ca.jks")], "keytool");
        refused(
            [("fetch.max.wait.ms", "1"), ("fetch.wait.max.ms", "2")],
            "keep one",
        );
    }

    #[test]
    fn secrets_are_in_no_message() {
        let (read, _) = properties([("sasl.password", "hunter2"), ("sasl.username", "u")]).expect("valid");
        assert!(!format!("{read:?}").contains("hunter2"));
        let text = refused([("sasl.jaas.config", "hunter2")], "LoginModule");
        assert!(!text.contains("hunter2"));
    }

    #[test]
    fn isolation_differs_from_spark_and_is_said() {
        let (read, notices) = properties([]).expect("valid");
        assert!(read.committed_only() && notices.iter().any(|notice| notice.contains("Spark")));
        let (read, notices) = properties([("isolation.level", "read_uncommitted")]).expect("valid");
        assert!(!read.committed_only() && notices.is_empty());
    }

    #[test]
    fn servers_must_be_named_and_the_group_is_kept_apart() {
        assert!(read(Vec::new(), "client", &mut Vec::new()).is_err());
        let (read, _) = properties([("group.id", "g")]).expect("valid");
        assert_eq!(read.group(), Some("g"));
        assert!(!read.settings.contains_key("group.id"));
    }
}
