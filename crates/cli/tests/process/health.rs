//! `--listen`: what a probe and a scrape see of real processes.

use baton_testkit::realtime::poll_until;
use baton_testkit::{PrivateBroker, Process, Signal};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::lab::{BOUND, Lab, each, quoted};

/// A port that the system chooses.
const ANY: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// The pages of one process.
struct Pages(SocketAddr);

impl Pages {
    /// Where a process says that they are.
    fn of(process: &Process) -> Self {
        let line = process
            .wait_for_line("health and metrics at http://", BOUND)
            .expect("it says where it listens");
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        Self(
            address
                .and_then(|address| address.parse().ok())
                .unwrap_or_else(|| panic!("no address in: {line}")),
        )
    }

    /// Status and body; nothing when nobody answers.
    fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.0, Duration::from_secs(2)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.0);
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        // Ends because every answer closes its connection.
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }

    /// Asks until `path` answers with this status and a line that contains `words`.
    fn says(&self, path: &str, status: u16, words: &str) {
        let mut last = None;
        let seen = poll_until(&format!("{path} says {status} {words}"), BOUND, || {
            last = self.get(path);
            let (code, line) = last.as_ref()?;
            (*code == status && line.contains(words)).then_some(())
        });
        seen.unwrap_or_else(|error| panic!("{error}; last answer: {last:?}"));
        let line = last.expect("it was found").1;
        assert_eq!(line.lines().count(), 1, "a verdict is one line: {line}");
    }

    /// Asks until the metrics have this line.
    fn counts(&self, wanted: &str) {
        let mut last = None;
        let seen = poll_until(&format!("the metrics have {wanted}"), BOUND, || {
            last = self.get("/metrics");
            let (code, page) = last.as_ref()?;
            (*code == 200 && page.lines().any(|line| line == wanted)).then_some(())
        });
        let page = || last.map(|(_, page)| page).unwrap_or_default();
        seen.unwrap_or_else(|error| panic!("{error}; last page:\n{}", page()));
    }

    /// The value of a metric, by its name with its labels.
    fn value(&self, name: &str) -> Option<f64> {
        let (_, page) = self.get("/metrics")?;
        let rest = page.lines().find_map(|line| line.strip_prefix(name))?;
        rest.trim().parse().ok()
    }

    fn is_gone(&self) -> bool {
        TcpStream::connect_timeout(&self.0, Duration::from_secs(2)).is_err()
    }
}

fn lag(topic: &str, partition: i32, records: u64) -> String {
    format!(
        "baton_source_lag_records{{source=\"messages\",topic=\"{topic}\",partition=\"{partition}\"}} {records}"
    )
}

fn role(word: &str) -> String {
    format!("baton_checkpoint_role{{role=\"{word}\"}} 1")
}

#[test]
fn an_owner_and_its_standby_are_ready_and_change_roles_by_a_take_over() {
    let Some(lab) = Lab::open("health") else { return };
    let topic = lab.topic(3);
    lab.kafka
        .send_numbered(&topic, 3, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);

    let mut first = lab.run(&job, &ANY);
    let owner = Pages::of(&first);
    owner.says("/readyz", 200, "owner, epoch 1");
    owner.says("/healthz", 200, "owner, epoch 1");
    lab.caught_up(&job, &each(3, 10));
    for partition in 0..3 {
        owner.counts(&lag(&topic, partition, 0));
    }
    owner.counts(&role("owner"));
    owner.counts("baton_checkpoint_epoch 1");
    owner.counts("baton_source_rows_total{source=\"messages\"} 30");
    owner.counts("baton_sink_rows_total{sink=\"console\"} 30");
    owner.counts("baton_source_up{source=\"messages\"} 1");
    let committed = owner.value("baton_checkpoint_last_commit_timestamp_seconds");
    let stamp = lab.status(&job)["lastCommitAt"].clone();
    let stamp = stamp.as_str().expect("a batch is committed").to_owned();
    assert!(
        committed.is_some_and(|at| (at - seconds(&stamp)).abs() < 5.0),
        "{committed:?} against {stamp}"
    );
    assert_eq!(owner.get("/").map(|(status, _)| status), Some(404));

    let waiting = lab.run(
        &job.version("v2"),
        &["--if-owned", "wait", "--listen", "127.0.0.1:0"],
    );
    let standby = Pages::of(&waiting);
    standby.says("/readyz", 200, "standby, waiting for v1");
    standby.says("/healthz", 200, "standby, waiting for v1");
    standby.counts(&role("standby"));
    assert_eq!(standby.value("baton_checkpoint_epoch"), None, "it has none");

    let third = lab.run(
        &job.version("v3"),
        &["--if-owned", "takeover", "--listen", "127.0.0.1:0"],
    );
    let successor = Pages::of(&third);
    successor.says("/readyz", 200, "owner, epoch 2");
    successor.counts("baton_checkpoint_epoch 2");
    assert_eq!(first.wait_exit(BOUND).expect("it hands over"), 0);
    assert!(owner.is_gone(), "the server ends with its process");
    let inherited = successor.value("baton_checkpoint_last_commit_timestamp_seconds");
    assert!(
        inherited.is_some_and(|at| (at - seconds(&stamp)).abs() < 0.01),
        "the age of the last commit goes on over a hand-over: {inherited:?} against {stamp}"
    );
    standby.says("/readyz", 200, "standby, waiting for v");
}

/// Seconds since the epoch.
fn seconds(stamp: &str) -> f64 {
    let at = stamp.parse::<chrono::DateTime<chrono::Utc>>();
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of this century fit")]
    at.map(|at| at.timestamp_millis() as f64 / 1_000.0)
        .expect("a stamp is RFC 3339")
}

#[test]
fn a_process_that_prepares_is_alive_and_not_ready() {
    let Some(lab) = Lab::open("preparing") else { return };
    let mut job = lab.job("any");
    "127.0.0.1:1".clone_into(&mut job.broker);
    let process = lab.run(&job, &["--start-timeout", "60s", "--listen", "127.0.0.1:0"]);
    let pages = Pages::of(&process);
    pages.says("/readyz", 503, "preparing");
    pages.says("/healthz", 200, "preparing");
    pages.counts(&role("preparing"));
}

#[test]
fn a_broker_that_is_gone_is_seen_and_is_no_reason_to_restart() {
    if Lab::open("gone").is_none() {
        return;
    }
    let broker = PrivateBroker::start().expect("a broker of our own starts");
    let lab = Lab::on("gone", broker.kafka());
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut process = lab.run(&job, &ANY);
    let pages = Pages::of(&process);
    lab.caught_up(&job, &each(1, 10));
    broker.crash().expect("the broker can be crashed");
    pages.counts("baton_source_up{source=\"messages\"} 0");
    pages.says("/healthz", 200, "waiting: source messages has not answered");
    pages.says("/readyz", 200, "waiting");
    broker.restore().expect("the broker comes back");
    pages.counts("baton_source_up{source=\"messages\"} 1");
    pages.says("/healthz", 200, "owner, epoch 1");
    process.signal(Signal::TERM).expect("it runs");
    assert_eq!(process.wait_exit(BOUND).expect("it stops"), 0);
    assert!(pages.is_gone());
}

#[test]
fn pages_are_served_inside_a_batch_that_does_not_move_and_a_stop_makes_it_not_ready() {
    let Some(lab) = Lab::open("inside") else { return };
    let topic = lab.topic(1);
    // More than a pipe holds, so that the batch ends only when the test reads.
    let long = "x".repeat(200_000);
    lab.kafka
        .send(&topic, &[baton_testkit::Record::value(0, long.as_bytes())])
        .expect("it is stored");
    let job = lab
        .job(&topic)
        .ownership(&format!("stopTimeout = {}", quoted("60 seconds")));
    let (mut process, pipe) = lab.run_unread(&job, &ANY);
    let pages = Pages::of(&process);
    lab.status_when(&job, "a batch is planned", |status| {
        status["lastPlannedBatch"] == 0
    });
    pages.says("/readyz", 200, "Processing new data");
    let moved = poll_until("the batch stands still", BOUND, || {
        pages
            .value("baton_engine_still_seconds")
            .filter(|still| *still > 1.0)
    });
    moved.expect("nobody reads its output");
    process.signal(Signal::TERM).expect("it runs");
    pages.says("/readyz", 503, "stopping");
    pages.says("/healthz", 200, "owner");
    lab.drain(&process, pipe);
    assert_eq!(process.wait_exit(BOUND).expect("it stops"), 0);
    assert!(pages.is_gone());
}

#[test]
fn silent_connections_neither_keep_others_out_for_long_nor_delay_a_stop() {
    let Some(lab) = Lab::open("silent") else { return };
    let topic = lab.topic(1);
    let mut process = lab.run(&lab.job(&topic), &ANY);
    let pages = Pages::of(&process);
    pages.says("/readyz", 200, "owner");
    let silent: Vec<TcpStream> = (0..40).filter_map(|_| TcpStream::connect(pages.0).ok()).collect();
    assert_eq!(silent.len(), 40, "more than are let in at a time");
    pages.says("/healthz", 200, "owner");
    process.signal(Signal::TERM).expect("it runs");
    assert_eq!(process.wait_exit(Duration::from_secs(5)).expect("it stops"), 0);
}

#[test]
fn an_address_that_cannot_be_had_is_one_line_with_a_code() {
    let Some(lab) = Lab::open("address") else { return };
    let job = lab.job("any");
    let wrong = lab.ends(&job, &["--listen", "9090"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken
        .local_addr()
        .map(|at| (at.to_string(), taken))
        .expect("it has an address");
    let in_use = lab.ends(&job, &["--listen", &taken.0]);
    assert_eq!(in_use.code, 1, "{}", in_use.stderr);
    for (ended, code, given) in [(&wrong, "E0520", "9090"), (&in_use, "E0521", taken.0.as_str())] {
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert!(
            matches!(lines[..], [line] if line.contains(code) && line.contains(given)),
            "{}",
            ended.stderr
        );
    }
    assert_eq!(lab.status(&job)["state"], "empty", "nothing was touched");
}
