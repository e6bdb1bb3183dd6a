//! Where a checkpoint lies.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::{Error, Result};

/// The place of a checkpoint: a directory of this machine.
///
/// ```
/// use baton_checkpoint::Location;
/// assert_eq!(Location::parse("file:///tmp/c")?, Location::parse("/tmp/./c/")?);
/// assert!(Location::parse("s3://bucket/c").is_err());
/// # Ok::<(), baton_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location(PathBuf);

impl Location {
    /// Reads a path or a `file://` URL. A relative path starts in the current directory.
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
                "s3" | "s3a" | "gs" | "az" | "abfss" | "hdfs" | "wasbs" => {
                    let reason = format!(
                        "is on {scheme}, which this version cannot use; give a local path or file:///path"
                    );
                    return Err(refuse(reason));
                }
                _ => {
                    return Err(refuse(format!(
                        "has the unknown scheme {scheme}; give a local path or file:///path"
                    )));
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
        Ok(Self(
            absolute
                .components()
                .filter(|part| *part != Component::CurDir)
                .collect(),
        ))
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
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
        self.0.display().fmt(f)
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
        for text in [
            "",
            "s3://b/p",
            "gs://b/p",
            "az://c/p",
            "hdfs://n/p",
            "file://host/p",
            "ftp://h/p",
        ] {
            check(text, None);
        }
        let error = Location::parse("s3://b/p").expect_err("not yet").to_string();
        assert!(
            error.contains("s3://b/p") && error.contains("local path"),
            "{error}"
        );
    }
}
