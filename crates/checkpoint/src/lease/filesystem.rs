//! File systems whose locks do not keep out an owner on another machine.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::directory::trouble;
use crate::{Error, Result};

const FUSE: u64 = 0x6573_5546;

/// From `statfs(2)`. Locks on these are another machine's business, if anybody's.
const REMOTE: [(u64, &str); 9] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x1983_0326, "BeeGFS"),
    (0x0116_1970, "GFS2"),
];

/// Refuses a file system that is shared by machines.
pub(crate) fn check(path: &Path, directory: &OwnedFd) -> Result<()> {
    let stat =
        rustix::fs::fstatfs(directory).map_err(|errno| trouble(path, "look at checkpoint", errno.into()))?;
    // A magic number, of a type that differs by machine.
    let magic = stat.f_type as u64 & 0xffff_ffff;
    let found = match REMOTE.iter().find(|(remote, _)| *remote == magic) {
        Some((_, name)) => Some((*name).to_owned()),
        None if magic == FUSE => fuse_kind(path).filter(|kind| is_remote_fuse(kind)),
        None => None,
    };
    match found {
        None => Ok(()),
        Some(filesystem) => Err(Error::Filesystem {
            path: path.to_owned(),
            filesystem,
        }),
    }
}

/// A local FUSE file system keeps its locks in this kernel; these do not know of other machines.
fn is_remote_fuse(kind: &str) -> bool {
    const LOCAL: [&str; 6] = [
        "fuse-overlayfs",
        "ntfs",
        "exfat",
        "fuseblk",
        "unionfs",
        "mergerfs",
    ];
    !LOCAL.iter().any(|local| kind.contains(local)) && kind.starts_with("fuse.")
}

/// The type of the mount that `path` is on: `fuse.sshfs`.
fn fuse_kind(path: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let path = fs::canonicalize(path).ok()?;
    kind_in(&mounts, &path)
}

fn kind_in(mounts: &str, path: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        Some((
            place.split(' ').nth(4)?.replace("\\040", " "),
            kind.split(' ').next()?,
        ))
    });
    mounts
        .filter(|(place, _)| path.starts_with(place))
        .max_by_key(|(place, _)| Path::new(place).as_os_str().as_bytes().len())
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                          40 22 0:40 / /data/my\\040remote rw - fuse.sshfs h:/x rw\n\
                          41 22 0:41 / /data rw - fuse.fuse-overlayfs none rw\n";

    #[test]
    fn the_longest_mount_point_counts() {
        let kind = |path: &str| kind_in(MOUNTS, Path::new(path)).expect("a mount");
        assert_eq!(kind("/data/my remote/c"), "fuse.sshfs");
        assert_eq!(kind("/data/c"), "fuse.fuse-overlayfs");
        assert_eq!(kind("/other"), "ext4");
    }

    #[test]
    fn only_fuse_mounts_of_other_machines_are_refused() {
        for kind in [
            "fuse.sshfs",
            "fuse.s3fs",
            "fuse.gcsfuse",
            "fuse.rclone",
            "fuse.glusterfs",
        ] {
            assert!(is_remote_fuse(kind), "{kind}");
        }
        for kind in ["fuse.fuse-overlayfs", "fuseblk", "fuse.ntfs-3g", "ext4"] {
            assert!(!is_remote_fuse(kind), "{kind}");
        }
    }
}
