//! Processes that cannot outlive their story, and what they say.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Result;
use crate::guard::Guard;

/// How long a process may take to end when asked, before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A running process. Dropped, it is asked to end, then killed; it is also asked when this program is killed.
pub(crate) struct Process {
    /// What people call it.
    pub(crate) name: String,
    /// Its lines on stdout.
    pub(crate) out: Lines,
    /// Its lines on stderr.
    pub(crate) err: Lines,
    child: Child,
    readers: Vec<JoinHandle<()>>,
    /// Until the process has ended.
    guard: Option<Guard>,
}

/// Something done with each line as it comes.
pub(crate) type Each = Box<dyn FnMut(&str) + Send>;

/// Lines that somebody else is still writing.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<(Mutex<Said>, Condvar)>);

#[derive(Default)]
struct Said {
    lines: Vec<String>,
    ended: bool,
}

impl Process {
    /// Starts `command`. Its output is kept, written to `dir/NAME.out` and `.err`, and each line given to `out` and `err`.
    pub(crate) fn spawn(name: &str, mut command: Command, dir: &Path, out: Each, err: Each) -> Result<Self> {
        let tee = |suffix: &str| {
            let path = dir.join(format!("{name}.{suffix}"));
            File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let files = (tee("out")?, tee("err")?);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut process = Self {
            name: name.to_owned(),
            out: Lines::default(),
            err: Lines::default(),
            child,
            readers: Vec::new(),
            guard: None,
        };
        process.readers = vec![
            process.out.read(stdout.expect("it is piped"), files.0, out),
            process.err.read(stderr.expect("it is piped"), files.1, err),
        ];
        let pid = process.pid().to_string();
        process.guard = Some(Guard::new("kill -TERM \"$1\"", &[OsStr::new(&pid)])?);
        Ok(process)
    }

    /// The same, nothing done with its lines.
    pub(crate) fn quiet(name: &str, command: Command, dir: &Path) -> Result<Self> {
        Self::spawn(name, command, dir, Box::new(|_| ()), Box::new(|_| ()))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its stdin, if that was piped and nobody has it yet.
    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        // A process that has just ended is no failure.
        drop(
            Command::new("kill")
                .args(["-TERM", &self.pid().to_string()])
                .stderr(Stdio::null())
                .status(),
        );
    }

    /// Waits until it has ended and all it said is there; its exit code, -1 after a signal.
    pub(crate) fn wait(&mut self, bound: Duration) -> Result<i32> {
        self.wait_while(bound, || ())
    }

    /// The same, calling `look` every few milliseconds.
    pub(crate) fn wait_while(&mut self, bound: Duration, mut look: impl FnMut()) -> Result<i32> {
        let start = Instant::now();
        loop {
            let ended = self.child.try_wait();
            if let Some(status) = ended.map_err(|error| format!("cannot wait for {}: {error}", self.name))? {
                self.guard = None;
                for reader in self.readers.drain(..) {
                    drop(reader.join());
                }
                return Ok(status.code().unwrap_or(-1));
            }
            if start.elapsed() > bound {
                return Err(format!("{} has not ended after {} s", self.name, bound.as_secs()));
            }
            look();
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for something in its stderr.
    pub(crate) fn says<T>(&self, what: &str, bound: Duration, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        self.found(&self.err, what, bound, find)
    }

    /// Waits for something in its stdout.
    pub(crate) fn prints<T>(
        &self,
        what: &str,
        bound: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        self.found(&self.out, what, bound, find)
    }

    fn found<T>(
        &self,
        lines: &Lines,
        what: &str,
        bound: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        lines.wait_for(bound, find).ok_or_else(|| {
            let last = self.err.last().unwrap_or_else(|| "nothing".to_owned());
            format!("no {what} from {}; the last it said: {last}", self.name)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.terminate();
        if self.wait(PATIENCE).is_err() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

impl Lines {
    fn read(&self, pipe: impl Read + Send + 'static, mut file: File, mut each: Each) -> JoinHandle<()> {
        let lines = self.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // The copy is for people who look into a failure.
                drop(writeln!(file, "{line}"));
                each(&line);
                lines.change(|said| said.lines.push(line));
            }
            lines.change(|said| said.ended = true);
        })
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        let (said, changed) = &*self.0;
        change(&mut said.lock().expect("no holder of this lock panics"));
        changed.notify_all();
    }

    /// All lines so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0
            .0
            .lock()
            .expect("no holder of this lock panics")
            .lines
            .clone()
    }

    /// The last line so far.
    pub(crate) fn last(&self) -> Option<String> {
        self.all().pop()
    }

    /// The first thing that `find` finds in a line, now or until `bound` has passed or no more lines can come.
    pub(crate) fn wait_for<T>(&self, bound: Duration, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (start, mut seen) = (Instant::now(), 0);
        let (said, changed) = &*self.0;
        let mut said = said.lock().expect("no holder of this lock panics");
        loop {
            if let Some(found) = said.lines[seen..].iter().find_map(|line| find(line)) {
                return Some(found);
            }
            seen = said.lines.len();
            let left = bound.checked_sub(start.elapsed())?;
            if said.ended {
                return None;
            }
            said = changed
                .wait_timeout(said, left)
                .expect("no holder of this lock panics")
                .0;
        }
    }
}

/// The number behind `word`.
pub(crate) fn after(line: &str, word: &str) -> Option<u64> {
    let rest = line.split_once(word)?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const BOUND: Duration = Duration::from_secs(30);

    fn shell(name: &str, script: &str, test: impl FnOnce(Process)) {
        let scratch = Scratch::new(&std::env::temp_dir(), name).expect("a directory can be made");
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        test(Process::quiet("sh", command, scratch.path()).expect("a shell can be started"));
        scratch.remove();
    }

    fn is_there(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}/stat")).exists()
    }

    #[test]
    fn a_dropped_process_is_gone() {
        shell("dropped", "echo up; exec sleep 60", |process| {
            process
                .prints("line", BOUND, |line| (line == "up").then_some(()))
                .expect("it speaks");
            let pid = process.pid();
            drop(process);
            assert!(!is_there(pid));
        });
    }

    #[test]
    fn who_ends_without_the_line_is_not_waited_for() {
        shell("ended", "echo this; echo that >&2; exit 7", |mut process| {
            let start = Instant::now();
            let missing = process.prints("word", BOUND, |line| (line == "other").then_some(()));
            assert!(missing.is_err() && start.elapsed() < BOUND);
            assert_eq!(process.wait(BOUND), Ok(7));
            let last = (process.out.last(), process.err.last());
            assert_eq!(last, (Some("this".into()), Some("that".into())));
        });
    }

    #[test]
    fn numbers_are_read_from_the_hand_over_line() {
        let line = "baton: handed over from v1 to v2: last batch 5, first batch 6, commit_gap 244 ms, excess_gap 0 ms";
        let numbers =
            ["first batch ", "commit_gap ", "excess_gap ", "nothing "].map(|word| after(line, word));
        assert_eq!(numbers, [Some(6), Some(244), Some(0), None]);
    }
}
