//! Who holds the lock of a directory, as the kernel tells everybody.

use std::fs;

use super::directory::is_alive;

/// The process that holds the `flock` on a file; `None` when there is none, or none that we see.
///
/// The kernel remembers who took a lock. Where a guard was killed, that is a dead process: the lock lives on in the
/// children that inherited the descriptor, and these are found by looking through the descriptors of all processes. A dead
/// process's number may be another's by now, so nobody is named without that look, unless the system forbids it.
pub(crate) fn of(inode: (u64, u64)) -> Option<u32> {
    let file = name(inode);
    if let Some(pid) = taker(inode)
        && is_alive(pid)
        && holds(pid, &file).unwrap_or(true)
    {
        return Some(pid);
    }
    let mut pids: Vec<u32> = fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids.into_iter().find(|&pid| holds(pid, &file).unwrap_or(false))
}

/// The process that took the `flock` on a file, dead or alive, where the system still has its number.
pub(crate) fn taker(inode: (u64, u64)) -> Option<u32> {
    let file = name(inode);
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| taken_by(line, &file))
}

/// A file as `/proc/locks` names it.
fn name((device, inode): (u64, u64)) -> String {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    format!("{major:02x}:{minor:02x}:{inode}")
}

/// Who took the lock that a line is about: `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF`. Who waits has `->` in front and
/// is not meant.
fn taken_by(line: &str, file: &str) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let is_flock = words.next() == Some("FLOCK");
    let (pid, on) = (words.nth(2)?, words.next()?);
    (is_flock && on == file).then(|| pid.parse().ok())?
}

/// Whether a process has a descriptor that carries the lock; `None` if we may not know.
fn holds(pid: u32, file: &str) -> Option<bool> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    Some(descriptors.flatten().any(|descriptor| {
        // Where it leads, without going there: it may be a file system that hangs. A socket leads nowhere.
        if !fs::read_link(descriptor.path()).is_ok_and(|leads| leads.is_absolute()) {
            return false;
        }
        let number = descriptor.file_name();
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy()));
        info.is_ok_and(|info| info.lines().any(|line| carries(line, file)))
    }))
}

/// `lock:  1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF`, whoever took it.
fn carries(line: &str, file: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("lock:") && words.nth(1) == Some("FLOCK") && words.nth(3) == Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_taker_of_a_flock_is_read_from_the_kernels_list() {
        let check = |line: &str, expected| assert_eq!(taken_by(line, "fe:00:123"), expected, "{line}");
        check("1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF", Some(4711));
        check("1: -> FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF", None);
        check("1: FLOCK  ADVISORY  WRITE 4711 fe:00:124 0 EOF", None);
        check("1: POSIX  ADVISORY  WRITE 4711 fe:00:123 0 EOF", None);
    }

    #[test]
    fn a_descriptor_carries_a_lock_whoever_took_it() {
        let check = |line: &str, expected| assert_eq!(carries(line, "fe:00:123"), expected, "{line}");
        check("lock:\t1: FLOCK  ADVISORY  WRITE 0 fe:00:123 0 EOF", true);
        check("lock:\t1: FLOCK  ADVISORY  WRITE 4711 fe:00:12 0 EOF", false);
        check("lock:\t1: POSIX  ADVISORY  WRITE 4711 fe:00:123 0 EOF", false);
        check("ino:\t123", false);
    }
}
