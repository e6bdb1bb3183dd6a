//! What every test here needs: a broker, a directory, jobs, processes, and the verdict.

use baton_core::Rng;
use baton_testkit::oracle::{Log, Printed, Verdict, judge};
use baton_testkit::realtime::poll_until;
use baton_testkit::{Kafka, Process};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, id};
use std::time::Duration;

/// How long anything may take on a busy machine before it counts as hanging.
pub(crate) const BOUND: Duration = Duration::from_secs(40);
/// How soon a plain start has to be refused: 2 s are promised, twice that on a machine that is busy with other tests.
pub(crate) const REFUSAL: Duration = Duration::from_secs(4);
/// The query whose rows say where they belong.
pub(crate) const ROWS: &str = "SELECT partition, offset, CAST(value AS STRING) AS value FROM messages";

/// A place for one test.
pub(crate) struct Lab {
    pub(crate) kafka: Kafka,
    pub(crate) rng: Rng,
    name: String,
    seed: u64,
    dir: Option<tempfile::TempDir>,
    spawned: Cell<u32>,
    outputs: RefCell<Vec<PathBuf>>,
}

/// What a command that ended by itself left.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Lab {
    /// The place for the test `name`; nothing when there is no broker and none is required.
    pub(crate) fn open(name: &str) -> Option<Self> {
        let Ok(address) = std::env::var("BATON_TEST_KAFKA") else {
            let required = std::env::var("BATON_REQUIRE_KAFKA").is_ok_and(|value| value == "1");
            assert!(
                !required,
                "BATON_TEST_KAFKA is not set and BATON_REQUIRE_KAFKA=1 asks for a broker"
            );
            say(&format!("left out: {name} (BATON_TEST_KAFKA names no broker)"));
            return None;
        };
        Some(Self::on(name, Kafka::at(address)))
    }

    /// The place for the test `name` on a broker of its own.
    pub(crate) fn on(name: &str, kafka: Kafka) -> Self {
        let seed = std::env::var("BATON_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| Rng::from_os().next_u64());
        let dir = tempfile::Builder::new()
            .prefix("baton-process-")
            .tempdir()
            .expect("a directory can be made");
        Self {
            kafka,
            rng: Rng::seeded(seed),
            name: name.to_owned(),
            seed,
            dir: Some(dir),
            spawned: Cell::new(0),
            outputs: RefCell::new(Vec::new()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir
            .as_ref()
            .expect("the directory lives as long as the lab")
            .path()
    }

    /// A number below `limit`.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.rng.next_u64() % limit
    }

    /// A new topic.
    pub(crate) fn topic(&self, partitions: i32) -> String {
        let topic = format!("{}-{}-{:08x}", self.name, id(), self.rng.next_u64() >> 32);
        self.kafka
            .create_topic(&topic, partitions)
            .expect("the topic can be made");
        topic
    }

    /// A job that prints partition, offset and message of `topic`, from its first record, on a new checkpoint.
    pub(crate) fn job(&self, topic: &str) -> Job {
        let checkpoint = self
            .path()
            .join(format!("checkpoint-{:08x}", self.rng.next_u64() >> 32));
        Job {
            name: "rows".to_owned(),
            version: "v1".to_owned(),
            broker: self.kafka.address().to_owned(),
            source: BTreeMap::from([
                ("subscribe".to_owned(), quoted(topic)),
                ("startingOffsets".to_owned(), quoted("earliest")),
            ]),
            sql: ROWS.to_owned(),
            sink: "console".to_owned(),
            checkpoint,
            trigger: None,
            ownership: None,
        }
    }

    fn label(&self, what: &str) -> String {
        self.spawned.set(self.spawned.get() + 1);
        format!("{:04}-{what}", self.spawned.get())
    }

    fn file(&self, job: &Job, label: &str) -> PathBuf {
        let file = self.path().join(format!("{label}.toml"));
        std::fs::write(&file, job.toml()).expect("the job file can be written");
        file
    }

    /// `baton run` of a job, beside the test.
    pub(crate) fn run(&self, job: &Job, args: &[&str]) -> Process {
        let label = self.label(&format!("run-{}", job.version));
        let file = self.file(job, &label);
        let all = [&["run", text(&file)], args].concat();
        let process = Process::spawn(baton(), all, self.path(), &label).expect("baton can be started");
        self.outputs.borrow_mut().push(process.stdout_path().to_owned());
        process
    }

    /// `baton run` whose output is not read until [`Lab::drain`].
    pub(crate) fn run_unread(&self, job: &Job, args: &[&str]) -> (Process, ChildStdout) {
        let label = self.label(&format!("unread-{}", job.version));
        let file = self.file(job, &label);
        let all = [&["run", text(&file)], args].concat();
        Process::spawn_unread(baton(), all, self.path(), &label).expect("baton can be started")
    }

    /// Reads the output of [`Lab::run_unread`] to its end, in the background, for the verdict.
    pub(crate) fn drain(&self, process: &Process, mut pipe: ChildStdout) {
        let path = process.stdout_path().to_owned();
        self.outputs.borrow_mut().push(path.clone());
        let mut file = std::fs::File::create(path).expect("the output file can be made");
        drop(baton_testkit::realtime::beside(move || {
            std::io::copy(&mut pipe, &mut file)
        }));
    }

    /// Any `baton` command, beside the test.
    pub(crate) fn beside(&self, args: &[&str]) -> Process {
        let label = self.label(args.first().copied().unwrap_or("baton"));
        Process::spawn(baton(), args, self.path(), &label).expect("baton can be started")
    }

    /// Any `baton` command that ends by itself within `bound`.
    pub(crate) fn baton_within(&self, bound: Duration, args: &[&str]) -> Ended {
        let label = self.label(args.first().copied().unwrap_or("baton"));
        let mut process = Process::spawn(baton(), args, self.path(), &label).expect("baton can be started");
        let code = process.wait_exit(bound).expect("the command ends");
        Ended {
            code,
            stdout: process.stdout(),
            stderr: process.stderr(),
        }
    }

    /// Any `baton` command that ends by itself.
    pub(crate) fn baton(&self, args: &[&str]) -> Ended {
        self.baton_within(BOUND, args)
    }

    /// `baton run` of a job that ends by itself within `bound`.
    pub(crate) fn ends_within(&self, bound: Duration, job: &Job, args: &[&str]) -> Ended {
        let mut process = self.run(job, args);
        let code = process.wait_exit(bound).expect("the run ends");
        Ended {
            code,
            stdout: process.stdout(),
            stderr: process.stderr(),
        }
    }

    /// `baton run` of a job that ends by itself.
    pub(crate) fn ends(&self, job: &Job, args: &[&str]) -> Ended {
        self.ends_within(BOUND, job, args)
    }

    /// `baton status`.
    pub(crate) fn status(&self, job: &Job) -> Value {
        let ended = self.baton(&["status", text(&job.checkpoint), "--output", "json"]);
        assert_eq!(ended.code, 0, "status: {}", ended.stderr);
        serde_json::from_str(&ended.stdout).expect("status prints one JSON document")
    }

    /// Looks at the status until `found` is content with it.
    pub(crate) fn status_when(&self, job: &Job, what: &str, found: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let seen = poll_until(what, BOUND, || {
            last = self.status(job);
            found(&last).then(|| last.clone())
        });
        seen.unwrap_or_else(|error| panic!("{error}; last status: {last}"))
    }

    /// Waits until `version` owns the checkpoint.
    pub(crate) fn owned_by(&self, job: &Job, version: &str) -> Value {
        self.status_when(job, &format!("{version} owns it"), |status| {
            status["state"] == "running" && status["owner"]["version"] == version
        })
    }

    /// Waits until at least `count` offsets are committed.
    pub(crate) fn committed(&self, job: &Job, count: u64) -> Value {
        let what = format!("{count} offsets are committed");
        self.status_when(job, &what, |status| ends(status).values().sum::<u64>() >= count)
    }

    /// Waits until so many batches are committed, over the checkpoint's whole life.
    pub(crate) fn batches(&self, job: &Job, count: u64) -> Value {
        self.status_when(job, &format!("{count} batches are committed"), |status| {
            status["lastCommittedBatch"]
                .as_u64()
                .is_some_and(|last| last + 1 >= count)
        })
    }

    /// Waits until everything that was sent is committed.
    pub(crate) fn caught_up(&self, job: &Job, sent: &BTreeMap<i32, u64>) -> Value {
        self.status_when(job, &format!("{sent:?} are committed"), |status| {
            ends(status) == *sent
        })
    }

    /// The log.
    pub(crate) fn log(&self, job: &Job) -> Log {
        let ended = self.baton(&["checkpoint", "show", text(&job.checkpoint), "--output", "json"]);
        assert_eq!(ended.code, 0, "checkpoint show: {}", ended.stderr);
        Log::parse(&ended.stdout).expect("the log is as documented")
    }

    /// Everything printed by `baton run` here, in order of start.
    pub(crate) fn printed(&self) -> Vec<Printed> {
        let read = |path: &PathBuf| Printed::parse(&std::fs::read_to_string(path).unwrap_or_default());
        self.outputs.borrow().iter().map(read).collect()
    }

    /// The verdict over all runs of this job, which must be the lab's only one that prints.
    pub(crate) fn verdict(&self, job: &Job) -> Verdict {
        match judge(&self.log(job), &self.printed()) {
            Ok(verdict) => verdict,
            Err(complaints) => panic!("not exactly once:\n  {}", complaints.join("\n  ")),
        }
    }

    /// The verdict, which must cover all that was sent and nothing twice.
    pub(crate) fn exactly_once(&self, job: &Job, sent: &BTreeMap<i32, u64>) -> Verdict {
        let verdict = self.verdict(job);
        assert_eq!(
            verdict.committed,
            sent.values().sum::<u64>(),
            "committed against sent"
        );
        assert_eq!(verdict.repeated, 0, "nobody was interrupted");
        verdict
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(dir) = self.dir.take()
        {
            let kept = dir.keep();
            say(&format!(
                "{}: BATON_SEED={} repeats it; its files are in {}",
                self.name,
                self.seed,
                kept.display()
            ));
        }
    }
}

/// A job file.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) broker: String,
    /// Source options beside the broker, values as TOML.
    pub(crate) source: BTreeMap<String, String>,
    pub(crate) sql: String,
    pub(crate) sink: String,
    pub(crate) checkpoint: PathBuf,
    /// One line of `[trigger]`.
    pub(crate) trigger: Option<String>,
    /// One line of `[ownership]`.
    pub(crate) ownership: Option<String>,
}

impl Job {
    /// The same with another version.
    pub(crate) fn version(&self, version: &str) -> Self {
        Self {
            version: version.to_owned(),
            ..self.clone()
        }
    }

    /// The same with a source option, its value as TOML.
    pub(crate) fn option(mut self, key: &str, value: &str) -> Self {
        self.source.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The same with a trigger.
    pub(crate) fn trigger(self, line: &str) -> Self {
        Self {
            trigger: Some(line.to_owned()),
            ..self
        }
    }

    /// The same with a line of `[ownership]`.
    pub(crate) fn ownership(self, line: &str) -> Self {
        Self {
            ownership: Some(line.to_owned()),
            ..self
        }
    }

    /// The same with other SQL.
    pub(crate) fn sql(self, sql: &str) -> Self {
        Self {
            sql: sql.to_owned(),
            ..self
        }
    }

    /// The same from `latest`.
    pub(crate) fn latest(self) -> Self {
        self.option("startingOffsets", &quoted("latest"))
    }

    fn toml(&self) -> String {
        let mut toml = format!(
            "name = {}\nversion = {}\n\n",
            quoted(&self.name),
            quoted(&self.version)
        );
        let mut line = |line: String| writeln!(toml, "{line}").expect("a string takes everything");
        line("[source.messages]\nformat = \"kafka\"\n[source.messages.options]".to_owned());
        line(format!("\"kafka.bootstrap.servers\" = {}", quoted(&self.broker)));
        for (key, value) in &self.source {
            line(format!("{} = {value}", quoted(key)));
        }
        line(format!("\n[query]\nsql = {}\n", quoted(&self.sql)));
        line(format!(
            "[sink]\nformat = {}\noutputMode = \"append\"\n[sink.options]",
            quoted(&self.sink)
        ));
        line(format!("checkpointLocation = {}", quoted(text(&self.checkpoint))));
        if self.sink == "console" {
            line("numRows = 1000000\ntruncate = false".to_owned());
        }
        for (table, content) in [("trigger", &self.trigger), ("ownership", &self.ownership)] {
            if let Some(content) = content {
                line(format!("\n[{table}]\n{content}"));
            }
        }
        line("\n[conf]\n\"spark.sql.streaming.minBatchesToRetain\" = 1000000".to_owned());
        toml
    }
}

/// The committed offsets of the one topic, by partition; partitions at 0 left out.
pub(crate) fn ends(status: &Value) -> BTreeMap<i32, u64> {
    let topics = status["offsets"]["messages"].as_object();
    let partitions = topics
        .and_then(|topics| topics.values().next())
        .and_then(Value::as_object);
    let each = partitions.into_iter().flatten();
    each.filter_map(|(partition, offset)| Some((partition.parse().ok()?, offset.as_u64()?)))
        .filter(|(_, offset)| *offset > 0)
        .collect()
}

/// How many messages each of `partitions` has after `count` numbered ones were sent to each.
pub(crate) fn each(partitions: i32, count: u64) -> BTreeMap<i32, u64> {
    (0..partitions).map(|partition| (partition, count)).collect()
}

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The short or the long count.
pub(crate) fn rounds(test: u64, soak: u64) -> u64 {
    if is_soak() { soak } else { test }
}

pub(crate) fn is_soak() -> bool {
    std::env::var("BATON_SOAK").is_ok_and(|value| value == "1")
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

pub(crate) fn baton() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_baton"))
}

/// Says something past the test harness, which would keep it back.
pub(crate) fn say(line: &str) {
    // A closed stderr is no reason to fail.
    drop(writeln!(std::io::stderr(), "{line}"));
}
