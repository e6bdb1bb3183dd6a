//! Where builds go: outside the clone, so that a fresh clone finds what an earlier one has compiled.

use std::path::{Path, PathBuf};

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// A directory of this user's cache.
pub(crate) fn cache(name: &str) -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache");
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|dir| !dir.is_empty())
        .map_or_else(home, PathBuf::from);
    base.join("baton").join(name)
}

/// The target directory: `CARGO_TARGET_DIR`, or one for this toolchain and these dependencies.
pub(crate) fn dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| cache(&format!("target-{:016x}", key())), PathBuf::from)
}

/// FNV-1a over what decides whether compiled dependencies can be used again.
fn key() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in ["rust-toolchain.toml", "Cargo.lock"] {
        for byte in std::fs::read(root().join(file)).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
