//! Values that never reach any output.

use std::fmt;

/// A password, token or key. Printing it, with `{}` or `{:?}`, gives `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for handing it to the client library and nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether an option of this name holds a secret.
    ///
    /// ```
    /// assert!(baton_core::Secret::is_secret_key("kafka.sasl.jaas.config"));
    /// assert!(!baton_core::Secret::is_secret_key("kafka.bootstrap.servers"));
    /// ```
    #[must_use]
    pub fn is_secret_key(key: &str) -> bool {
        const PARTS: [&str; 9] = [
            "password",
            "secret",
            "jaas",
            "token",
            "credential",
            "passphrase",
            "ssl.key",
            "keystore.key",
            "oauthbearer.config",
        ];
        let key = key.to_ascii_lowercase();
        PARTS.iter().any(|part| key.contains(part))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_a_secret_shows_stars() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert_eq!(secret.expose(), "hunter2");
    }
}
