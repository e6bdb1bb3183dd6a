//! Every name in a checkpoint's directory.

/// Says that the directory is a checkpoint: format version and id. Written before anything else.
pub(crate) const MARKER: &str = "baton.json";

/// The log: a RocksDB with the column families below.
pub(crate) const LOG: &str = "log";

/// What the owner last said of itself; a hint, written by temporary file and rename, never synced.
pub(crate) const OWNER: &str = "owner.json";

/// Where the owner can be spoken to.
pub(crate) const SOCKET: &str = "owner.sock";

/// Where the files above are when the directory belongs to another program, which a guard runs: out of that program's
/// way, and moved with the directory.
pub(crate) const GUARD: &str = ".baton";

/// Entries that do not make a directory anything else than empty.
pub(crate) const IGNORED: [&str; 3] = ["lost+found", "baton.json.tmp", "owner.json.tmp"];

/// The version of this layout.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Slots: number, u64 big-endian → records (`codec`).
pub(crate) const SLOTS: &str = "slots";

/// What is known of the slots as a whole.
pub(crate) const META: &str = "meta";

/// In [`META`]: the id that stands in [`MARKER`].
pub(crate) const META_CHECKPOINT: &[u8] = b"checkpoint";

/// In [`META`]: the first slot from which all are kept, u64 big-endian. Below it there are only fences.
pub(crate) const META_FLOOR: &[u8] = b"floor";

/// In [`META`]: the last slot, u64 big-endian; written with it.
pub(crate) const META_LAST: &[u8] = b"last";
