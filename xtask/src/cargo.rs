//! Calling cargo.

use std::process::Command;

use crate::target;

/// `cargo ARGS`, in the workspace, building into the shared directory.
pub(crate) fn command(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(args)
        .current_dir(target::root())
        .env("CARGO_TARGET_DIR", target::dir());
    // Set by the outer `cargo run`; a build script that sees them would be run again.
    for name in [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_PKG_NAME",
        "CARGO_PKG_VERSION",
    ] {
        command.env_remove(name);
    }
    command
}
