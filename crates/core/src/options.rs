//! Options as users write them: case-insensitive, refused when unknown.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{Error, Result, Secret};

/// The options of one source or sink.
///
/// Keys are case-insensitive as in Spark and keep the user's spelling for messages. A reader takes what it knows and
/// ends with [`OptionMap::finish`], which refuses what is left. Values of secret keys are never printed.
///
/// ```
/// # use baton_core::OptionMap;
/// let mut options = OptionMap::from_iter([("subscribe", "t"), ("startingOfsets", "latest")]);
/// assert_eq!(options.take("SUBSCRIBE").as_deref(), Some("t"));
/// let refused = options.finish(&["subscribe", "startingOffsets"]).unwrap_err();
/// assert_eq!(refused.to_string(), "unknown option `startingOfsets`; did you mean `startingOffsets`?");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OptionMap(BTreeMap<String, (String, String)>);

impl OptionMap {
    /// No options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an option; a later value replaces an earlier one.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let key = key.into();
        self.0.insert(key.to_ascii_lowercase(), (key, value.into()));
    }

    /// Looks without taking.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .get(&key.to_ascii_lowercase())
            .map(|(_, value)| value.as_str())
    }

    /// Takes an option out.
    pub fn take(&mut self, key: &str) -> Option<String> {
        self.0.remove(&key.to_ascii_lowercase()).map(|(_, value)| value)
    }

    /// Takes an option out and parses it; `wanted` says what it should be ("a whole number").
    ///
    /// # Errors
    /// [`Error::InvalidOption`] naming the key, the value unless it is secret, and `wanted`.
    pub fn take_parsed<T: FromStr>(&mut self, key: &str, wanted: &str) -> Result<Option<T>> {
        let Some((spelled, value)) = self.0.remove(&key.to_ascii_lowercase()) else {
            return Ok(None);
        };
        match value.trim().parse() {
            Ok(parsed) => Ok(Some(parsed)),
            Err(_) => {
                let shown = if Secret::is_secret_key(key) {
                    "***"
                } else {
                    value.as_str()
                };
                Err(Error::InvalidOption {
                    key: spelled,
                    reason: format!("must be {wanted}, not `{shown}`"),
                })
            }
        }
    }

    /// Takes a boolean: `true` or `false` in any case.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] for any other value.
    pub fn take_bool(&mut self, key: &str) -> Result<Option<bool>> {
        if let Some((_, value)) = self.0.get_mut(&key.to_ascii_lowercase()) {
            value.make_ascii_lowercase();
        }
        self.take_parsed(key, "true or false")
    }

    /// Takes all options whose key starts with `prefix`, the prefix cut off, the rest as the user spelled it.
    pub fn take_prefixed(&mut self, prefix: &str) -> Vec<(String, String)> {
        let prefix = prefix.to_ascii_lowercase();
        let keys: Vec<String> = self
            .0
            .keys()
            .filter(|key| key.starts_with(&prefix))
            .cloned()
            .collect();
        keys.into_iter()
            .filter_map(|key| self.0.remove(&key))
            .map(|(spelled, value)| (spelled[prefix.len()..].to_owned(), value))
            .collect()
    }

    /// Refuses what nobody took, suggesting the nearest of `known`.
    ///
    /// # Errors
    /// [`Error::UnknownOption`] for the first one left.
    pub fn finish(self, known: &[&str]) -> Result<()> {
        match self.0.into_values().next() {
            None => Ok(()),
            Some((key, _)) => {
                let hint = nearest(&key, known.iter().copied())
                    .map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
                Err(Error::UnknownOption { key, hint })
            }
        }
    }

    /// All options in order of key, as the user spelled them; secrets as `***`.
    pub fn printable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.values().map(|(key, value)| {
            (
                key.as_str(),
                if Secret::is_secret_key(key) {
                    "***"
                } else {
                    value.as_str()
                },
            )
        })
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for OptionMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        let mut options = Self::new();
        for (key, value) in iter {
            options.set(key, value);
        }
        options
    }
}

impl fmt::Debug for OptionMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.printable()).finish()
    }
}

/// The known name nearest to what was typed, if one is near enough to be meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&typed, &name.to_ascii_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_debug_or_errors() {
        let mut options = OptionMap::from_iter([("kafka.sasl.password", "hunter2"), ("topic", "t")]);
        assert!(!format!("{options:?}").contains("hunter2"));
        let error = options
            .take_parsed::<u32>("kafka.sasl.password", "a number")
            .unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn booleans_are_read_in_any_case_and_nothing_else_is() {
        let mut options = OptionMap::from_iter([("a", "TRUE"), ("b", "yes")]);
        assert_eq!(options.take_bool("A").expect("valid"), Some(true));
        assert!(options.take_bool("b").is_err());
    }

    #[test]
    fn a_prefix_is_cut_off_whatever_its_case() {
        let mut options = OptionMap::from_iter([("Kafka.client.id", "x"), ("other", "y")]);
        assert_eq!(
            options.take_prefixed("kafka."),
            [("client.id".to_owned(), "x".to_owned())]
        );
        assert!(options.finish(&["kafka.client.id"]).is_err());
    }
}
