//! The slots in RocksDB: one synced write batch for each.

use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode, IteratorMode, LogLevel,
    Options, ReadOptions, WriteBatch, WriteOptions,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::layout::{META, META_CHECKPOINT, META_FLOOR, META_LAST, SLOTS};

/// What RocksDB said went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Damaged,
    Full,
    Other,
}

/// The bytes of a store as they were found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) slots: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) checkpoint: Option<Vec<u8>>,
    pub(crate) floor: Option<Vec<u8>>,
    pub(crate) last: Option<Vec<u8>>,
}

/// An open store.
pub(crate) struct Rocks {
    db: DB,
    sync: WriteOptions,
    /// Where a reader keeps what it must; removed with it.
    scratch: Option<PathBuf>,
}

impl Rocks {
    /// Opens the store for its owner. `create` says that nothing can be there yet: a store whose files are missing is
    /// never replaced by an empty one.
    pub(crate) fn open(log: &Path, create: bool) -> Result<Self, Failure> {
        let mut options = options();
        options.create_if_missing(create);
        options.create_missing_column_families(create);
        // Only a write that was cut off by a crash may be dropped from the end; the default silently ends at any record
        // that it cannot read.
        options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
        options.set_track_and_verify_wals_in_manifest(true);
        let db = DB::open_cf_descriptors(&options, log, families())?;
        Ok(Self::of(db, None))
    }

    /// Opens the store for reading, beside its owner or without one. Locks nothing, changes nothing.
    pub(crate) fn read(log: &Path) -> Result<Self, Failure> {
        static READERS: AtomicU64 = AtomicU64::new(0);
        let reader = READERS.fetch_add(1, Ordering::Relaxed);
        let scratch = std::env::temp_dir().join(format!("baton-reader-{}-{reader}", std::process::id()));
        let mut options = options();
        options.set_max_open_files(-1);
        let opened = DB::open_cf_descriptors_as_secondary(&options, log, &scratch, families());
        match opened {
            Ok(db) => Ok(Self::of(db, Some(scratch))),
            Err(error) => {
                drop(fs::remove_dir_all(&scratch));
                Err(error.into())
            }
        }
    }

    fn of(db: DB, scratch: Option<PathBuf>) -> Self {
        let mut sync = WriteOptions::default();
        sync.set_sync(true);
        Self { db, sync, scratch }
    }

    fn family(&self, name: &str) -> Result<&ColumnFamily, Failure> {
        self.db.cf_handle(name).ok_or_else(|| Failure {
            kind: Kind::Damaged,
            text: format!("column family {name} is missing"),
        })
    }

    /// Says whose store this is.
    pub(crate) fn name(&self, checkpoint: &[u8]) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        let meta = self.family(META)?;
        batch.put_cf(meta, META_CHECKPOINT, checkpoint);
        batch.put_cf(meta, META_FLOOR, 0_u64.to_be_bytes());
        Ok(self.db.write_opt(batch, &self.sync)?)
    }

    /// Writes one slot and retires others, in one synced write.
    pub(crate) fn append(&self, seq: u64, slot: &[u8], retired: &[u64], floor: u64) -> Result<(), Failure> {
        let (slots, meta) = (self.family(SLOTS)?, self.family(META)?);
        let mut batch = WriteBatch::default();
        batch.put_cf(slots, seq.to_be_bytes(), slot);
        batch.put_cf(meta, META_LAST, seq.to_be_bytes());
        if !retired.is_empty() {
            batch.put_cf(meta, META_FLOOR, floor.to_be_bytes());
            for seq in retired {
                batch.delete_cf(slots, seq.to_be_bytes());
            }
        }
        Ok(self.db.write_opt(batch, &self.sync)?)
    }

    /// Reads everything there is, checksums verified.
    pub(crate) fn found(&self) -> Result<Found, Failure> {
        if self.scratch.is_some() {
            self.db.try_catch_up_with_primary()?;
        }
        let (slots, meta) = (self.family(SLOTS)?, self.family(META)?);
        // One view for both: an owner may write meanwhile.
        let mut read = ReadOptions::default();
        read.set_verify_checksums(true);
        let mut found = Found::default();
        for item in self.db.iterator_cf_opt(slots, read, IteratorMode::Start) {
            let (key, value) = item?;
            found.slots.push((key.into_vec(), value.into_vec()));
        }
        found.checkpoint = self.db.get_cf(meta, META_CHECKPOINT)?;
        found.floor = self.db.get_cf(meta, META_FLOOR)?;
        found.last = self.db.get_cf(meta, META_LAST)?;
        Ok(found)
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            drop(fs::remove_dir_all(scratch));
        }
    }
}

fn families() -> Vec<ColumnFamilyDescriptor> {
    ["default", SLOTS, META]
        .into_iter()
        .map(|name| ColumnFamilyDescriptor::new(name, options()))
        .collect()
}

/// A few megabytes at most, few files, no thread that only writes statistics: a store that is opened in milliseconds.
fn options() -> Options {
    let mut options = Options::default();
    options.set_paranoid_checks(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(1 << 20);
    options.set_max_write_buffer_number(2);
    options.set_target_file_size_base(4 << 20);
    options.set_max_background_jobs(2);
    options.set_max_open_files(64);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_skip_stats_update_on_db_open(true);
    options.set_max_manifest_file_size(1 << 20);
    options.set_max_total_wal_size(4 << 20);
    // No info log file: it would be renamed and rewritten at each open.
    options.set_info_logger(rocksdb::InfoLogger::new_callback_logger(
        LogLevel::Warn,
        |_, text| {
            tracing::debug!(target: "rocksdb", "{}", text.trim_end());
        },
    ));
    options
}

impl From<rocksdb::Error> for Failure {
    fn from(error: rocksdb::Error) -> Self {
        use rocksdb::ErrorKind;
        let kind = error.kind();
        let text = error.into_string();
        let has = |part: &str| text.contains(part);
        let kind = if has("No space left on device") || has("Disk quota exceeded") {
            Kind::Full
        } else if matches!(
            kind,
            ErrorKind::Corruption | ErrorKind::InvalidArgument | ErrorKind::NotFound
        ) || has("No such file or directory")
            || has("does not exist")
            // Said of a MANIFEST that CURRENT does not lead to; while an owner writes, whoever reads tries again first.
            || has("switched to a new MANIFEST")
        {
            Kind::Damaged
        } else {
            Kind::Other
        };
        Self { kind, text }
    }
}

impl Failure {
    pub(crate) const fn other(text: String) -> Self {
        Self {
            kind: Kind::Other,
            text,
        }
    }

    /// The same as an error about a checkpoint.
    pub(crate) fn about(self, path: &Path) -> Error {
        let path = path.to_owned();
        let log = path.join(crate::layout::LOG);
        match self.kind {
            Kind::Full => Error::Full { path },
            Kind::Damaged => Error::DamagedFile {
                file: damaged_file(&self.text, &log),
                reason: self.text,
                path,
            },
            Kind::Other => Error::Store {
                path,
                reason: self.text,
            },
        }
    }
}

/// The file that RocksDB complains about, as far as it says.
fn damaged_file(text: &str, log: &Path) -> String {
    let words = text.split(|c: char| c.is_whitespace() || "\"'();,".contains(c));
    let name = words
        .filter_map(|word| Path::new(word.trim_end_matches([':', '.'])).file_name()?.to_str())
        .find(|name| {
            let ends_well = [".log", ".sst"].iter().any(|end| name.ends_with(end));
            ends_well || name.starts_with("MANIFEST-") || *name == "CURRENT"
        });
    match name {
        Some(name) => log.join(name).display().to_string(),
        None if text.contains("MANIFEST") || text.contains("VersionEdit") || text.contains("manifest") => {
            log.join("MANIFEST").display().to_string()
        }
        None => log.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_damaged_file_is_named_where_rocksdb_names_it() {
        let name = |text: &str| damaged_file(text, Path::new("/c/log"));
        assert_eq!(
            name("Corruption: block checksum mismatch in /c/log/000008.sst offset 0"),
            "/c/log/000008.sst"
        );
        assert_eq!(
            name("IO error: No such file: While open a file: /c/log/000012.log: No such file"),
            "/c/log/000012.log"
        );
        assert_eq!(name("Corruption: checksum mismatch"), "/c/log");
        assert_eq!(
            name("Corruption: VersionEdit: new-file4 entry"),
            "/c/log/MANIFEST"
        );
    }
}
