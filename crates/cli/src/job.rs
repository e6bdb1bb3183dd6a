//! From what was written in a job file to what is meant by it.
//!
//! Everything here is offline. What is wrong is said with file, line and column, and with the nearest name that would
//! have been right.

mod conf;
mod read;
pub(crate) mod schema;
mod tree;

use baton_core::{OptionMap, OutputMode, SourceName};
use baton_engine::Trigger;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::failure::{Failure, Result};
pub(crate) use conf::Conf;
pub(crate) use read::{fingerprint, missing_checkpoint};
pub(crate) use tree::Place;

/// More than any job file needs; keeps a mistaken path to a large file from filling memory.
const MAX_BYTES: u64 = 4 << 20;

/// A job, as meant.
#[derive(Debug)]
pub(crate) struct JobSpec {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) sources: Vec<SourceSpec>,
    pub(crate) sql: String,
    /// Where the SQL was written.
    pub(crate) sql_place: Place,
    pub(crate) sink: SinkSpec,
    pub(crate) trigger: Trigger,
    pub(crate) ownership: OwnershipSpec,
    pub(crate) conf: Conf,
    /// What is odd but allowed.
    pub(crate) warnings: Vec<String>,
}

/// One `[source.NAME]`.
#[derive(Debug)]
pub(crate) struct SourceSpec {
    pub(crate) name: SourceName,
    pub(crate) options: Options,
}

/// The `[sink]`.
#[derive(Debug)]
pub(crate) struct SinkSpec {
    pub(crate) format: String,
    pub(crate) output_mode: OutputMode,
    /// `checkpointLocation`, taken out of the options.
    pub(crate) checkpoint: Option<String>,
    pub(crate) options: Options,
}

/// Options, and where each was written.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) map: OptionMap,
    pub(crate) places: BTreeMap<String, Place>,
    pub(crate) table: Place,
}

impl Options {
    /// Where the option that a message names was written; the table when it names none of them.
    pub(crate) fn place_of(&self, message: &str) -> &Place {
        let message = message.to_ascii_lowercase();
        let named = self
            .places
            .iter()
            .find(|(key, _)| message.contains(&format!("`{key}`")));
        named.map_or(&self.table, |(_, place)| place)
    }
}

/// The `[ownership]`.
#[derive(Debug)]
pub(crate) struct OwnershipSpec {
    pub(crate) if_owned: Option<String>,
    pub(crate) handover: bool,
    pub(crate) stop_timeout: Duration,
}

/// What reading a job needs of the outside.
pub(crate) struct Outside<'a> {
    /// The environment.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads `query.file`.
    pub(crate) read: &'a dyn Fn(&Path) -> Result<String>,
}

/// Reads a job file (`-` is stdin), with the process's environment, and applies `--set`.
pub(crate) fn load(path: &Path, sets: &[String]) -> Result<JobSpec> {
    let (file, text) = source_text(path)?;
    let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let outside = Outside {
        env: &env,
        read: &|file| read_file(&directory.join(file)),
    };
    read::job(&file, &text, sets, &outside)
}

/// The checkpoint that a job file names. Nothing else in the file needs to be right: this is asked by those who look
/// after a job, who need not have its environment.
pub(crate) fn checkpoint_of(path: &Path) -> Result<String> {
    let (file, text) = source_text(path)?;
    read::checkpoint(&file, &text, &env)
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn source_text(path: &Path) -> Result<(Rc<str>, String)> {
    if path == Path::new("-") {
        return Ok((
            "<stdin>".into(),
            text_of(&mut std::io::stdin().lock(), "<stdin>")?,
        ));
    }
    Ok((path.display().to_string().into(), read_file(path)?))
}

fn read_file(path: &Path) -> Result<String> {
    let shown = path.display().to_string();
    let refused = |why: &str| Failure::invalid("E0501", format!("cannot read `{shown}`: {why}"));
    if path.is_dir() {
        return Err(refused("it is a directory; name the job file"));
    }
    let mut file = std::fs::File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => refused("there is no such file"),
        std::io::ErrorKind::PermissionDenied => refused("permission denied"),
        _ => refused(&error.to_string()),
    })?;
    text_of(&mut file, &shown)
}

fn text_of(reader: &mut dyn Read, shown: &str) -> Result<String> {
    let refused = |why: &str| Failure::invalid("E0501", format!("cannot read `{shown}`: {why}"));
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refused(&error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 4 MiB, which no job file is"));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text"))?;
    // What some editors put in front.
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}

/// Whether an argument means a job file rather than a checkpoint's location.
pub(crate) fn is_job_file(argument: &str) -> Option<PathBuf> {
    let path = PathBuf::from(argument);
    let is = argument == "-" || path.is_file() || (argument.ends_with(".toml") && !path.is_dir());
    is.then_some(path)
}
