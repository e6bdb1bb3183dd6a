//! A directory for the files of one story.

use std::path::{Path, PathBuf};

use crate::Result;

/// A new directory. It stays, for people to look at, unless it is removed.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes `parent/baton-NAME-PID`.
    pub(crate) fn new(parent: &Path, name: &str) -> Result<Self> {
        let dir = parent.join(format!("baton-{name}-{}", std::process::id()));
        match std::fs::create_dir_all(&dir) {
            Ok(()) => Ok(Self(dir)),
            Err(error) => Err(format!("cannot make {}: {error}", dir.display())),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in it.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        match std::fs::write(&path, content) {
            Ok(()) => Ok(path),
            Err(error) => Err(format!("cannot write {}: {error}", path.display())),
        }
    }

    /// Everything went well: nobody needs the files.
    pub(crate) fn remove(self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("xtask: {} could not be removed: {error}", self.0.display());
        }
    }
}
