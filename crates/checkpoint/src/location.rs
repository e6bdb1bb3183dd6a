//! Where a checkpoint lies.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

#[cfg(feature = "object-store")]
use crate::object::Place;
use crate::{Error, Result};

/// The place of a checkpoint: a directory of this machine, or a prefix on shared storage.
///
/// ```
/// use baton_checkpoint::Location;
/// assert_eq!(Location::parse("file:///tmp/c")?, Location::parse("/tmp/./c/")?);
/// assert!(Location::parse("hdfs://node/c").is_err());
/// # Ok::<(), baton_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Local(PathBuf),
    #[cfg(feature = "object-store")]
    Shared(Place),
}

impl Location {
    /// Reads a path, a `file://` URL, or with the feature `object-store` one of `s3://`, `gs://` and `az://`, whose
    /// credentials and endpoint are taken from the environment (see [`crate::object::Place::open`]). A relative path starts
    /// in the current directory. Nothing is connected.
    ///
    /// # Errors
    /// [`Error::Location`] for an empty path, another machine's `file://` URL, or storage that is not supported.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |reason: String| Error::Location {
            text: text.to_owned(),
            reason,
        };
        let path = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
                "file" => local_part(rest)
                    .ok_or_else(|| refuse("is not on this machine; write file:///path".into()))?,
                #[cfg(feature = "object-store")]
                "s3" | "s3a" | "gs" | "az" => {
                    return Place::open(text, std::env::vars()).map(Self::from);
                }
                #[cfg(not(feature = "object-store"))]
                "s3" | "s3a" | "gs" | "az" => {
                    let reason = format!("is on {scheme}, which is not built in; give {KNOWN}");
                    return Err(refuse(reason));
                }
                "abfss" | "hdfs" | "wasbs" => {
                    let reason = format!("is on {scheme}, which cannot be used; give {KNOWN}");
                    return Err(refuse(reason));
                }
                _ => {
                    return Err(refuse(format!("has the unknown scheme {scheme}; give {KNOWN}")));
                }
            },
        };
        // Spark's one-slash form.
        let path = path
            .strip_prefix("file:")
            .filter(|rest| rest.starts_with('/'))
            .unwrap_or(path);
        if path.is_empty() || path.contains('\0') {
            return Err(refuse("is no path; give a directory".into()));
        }
        let absolute =
            std::path::absolute(path).map_err(|error| refuse(format!("cannot be made absolute: {error}")))?;
        Ok(Self(Kind::Local(
            absolute
                .components()
                .filter(|part| *part != Component::CurDir)
                .collect(),
        )))
    }

    /// The directory, or what messages call the place on shared storage.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.0 {
            Kind::Local(path) => path,
            #[cfg(feature = "object-store")]
            Kind::Shared(place) => place.path(),
        }
    }

    /// The place on shared storage, if it is on one.
    #[cfg(feature = "object-store")]
    #[must_use]
    pub const fn place(&self) -> Option<&Place> {
        match &self.0 {
            Kind::Local(_) => None,
            Kind::Shared(place) => Some(place),
        }
    }

    /// The directory of this machine.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn local(&self) -> Result<&Path> {
        match &self.0 {
            Kind::Local(path) => Ok(path),
            #[cfg(feature = "object-store")]
            Kind::Shared(place) => Err(Error::Location {
                text: place.to_string(),
                reason: "is on shared storage, where this command does not work yet; run, status, stop and checkpoint show do"
                    .to_owned(),
            }),
        }
    }
}

/// What can be given.
const KNOWN: &str = if cfg!(feature = "object-store") {
    "a local path, file:///path, s3://bucket/prefix, gs:// or az://"
} else {
    "a local path or file:///path"
};

/// A store that is there already.
#[cfg(feature = "object-store")]
impl From<Place> for Location {
    fn from(place: Place) -> Self {
        Self(Kind::Shared(place))
    }
}

/// The path of a `file://` URL whose host is this machine.
fn local_part(rest: &str) -> Option<&str> {
    let rest = rest
        .strip_prefix("localhost")
        .filter(|path| path.starts_with('/'))
        .unwrap_or(rest);
    rest.starts_with('/').then_some(rest)
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: Option<&str>) {
        let found = Location::parse(text).ok();
        assert_eq!(found.as_ref().map(Location::path), path.map(Path::new), "{text}");
    }

    #[test]
    fn paths_and_file_urls_are_local() {
        check("/a/b", Some("/a/b"));
        check("/a//b/./c/", Some("/a/b/c"));
        check("file:///a/b", Some("/a/b"));
        check("file:/a/b", Some("/a/b"));
        check("file://localhost/a/b", Some("/a/b"));
        assert!(Location::parse("a").expect("relative").path().is_absolute());
    }

    #[test]
    fn other_machines_and_stores_are_refused_by_name() {
        for text in ["", "abfss://c/p", "hdfs://n/p", "file://host/p", "ftp://h/p"] {
            check(text, None);
        }
        let error = Location::parse("hdfs://b/p").expect_err("never").to_string();
        assert!(
            error.contains("hdfs://b/p") && error.contains("local path"),
            "{error}"
        );
    }

    #[test]
    #[cfg(feature = "object-store")]
    fn shared_storage_is_named_as_it_was_given() {
        let found = Location::parse("s3://bucket/jobs/one/").expect("a bucket and a prefix");
        assert_eq!(found.to_string(), "s3://bucket/jobs/one");
        assert!(found.place().is_some());
        assert!(Location::parse("s3://bucket").is_err(), "no prefix");
    }
}
