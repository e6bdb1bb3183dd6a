//! `baton exec`: any command, one at a time. No broker is needed.

use baton_testkit::realtime::{pause, poll_until};
use baton_testkit::{Kafka, Process, Signal};
use rustix::process::{Pid, kill_process, kill_process_group};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::lab::{BOUND, Lab, REFUSAL, baton, rounds, text};

/// A directory that is guarded, and what the commands under guard write down.
struct Place {
    lab: Lab,
    checkpoint: PathBuf,
    notes: PathBuf,
}

/// A command that says when it starts and when it is told to end, and ends then.
const POLITE: &str = r#"trap 'echo "end $NAME" >> "$NOTES"; exit 0' TERM; echo "start $NAME" >> "$NOTES"; while :; do sleep 0.02; done"#;
/// One that does not care about SIGTERM.
const STUBBORN: &str = r#"trap '' TERM; echo "start $NAME $$" >> "$NOTES"; while :; do sleep 0.02; done"#;
/// One that starts another in the background, in a session of its own and out of sight of its parent.
const FERTILE: &str = r#"(setsid sh -c 'echo "grandchild $$" >> "$NOTES"; exec sleep 600' &); echo "child $$" >> "$NOTES"; exec sleep 600"#;

impl Place {
    fn open(name: &str) -> Self {
        // Nobody asks for it.
        let lab = Lab::on(name, Kafka::at("127.0.0.1:1"));
        let checkpoint = lab.path().join("checkpoint");
        let notes = lab.path().join("notes");
        Self {
            lab,
            checkpoint,
            notes,
        }
    }

    fn args<'a>(&'a self, options: &[&'a str], script: &'a [&'a str]) -> Vec<&'a str> {
        let start = ["exec", "--checkpoint", text(&self.checkpoint)];
        [&start, options, &["--"], script].concat()
    }

    /// A script under guard; it knows its name and where to take notes.
    fn script(&self, name: &str, script: &str) -> [String; 3] {
        let notes = text(&self.notes);
        let script = format!("NAME={name}; NOTES='{notes}'; export NAME NOTES; {script}");
        ["sh".to_owned(), "-c".to_owned(), script]
    }

    fn guard(&self, name: &str, options: &[&str], script: &str) -> Process {
        let command = self.script(name, script);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        self.lab.beside(&self.args(options, &command))
    }

    fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(&self.notes).unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }

    /// Waits for a note that starts so, and returns it.
    fn noted(&self, start: &str) -> String {
        let found = poll_until(&format!("a note {start:?}"), BOUND, || {
            self.notes().into_iter().find(|note| note.starts_with(start))
        });
        found.unwrap_or_else(|error| panic!("{error}; notes: {:?}", self.notes()))
    }

    /// The process that a note names.
    fn pid(&self, start: &str) -> u32 {
        let find = || {
            let notes = self.notes();
            let note = notes.iter().find(|note| note.starts_with(start))?;
            note.rsplit(' ').next()?.parse().ok()
        };
        poll_until(&format!("a note {start:?} with a process"), BOUND, find).expect("it comes")
    }

    fn status(&self) -> serde_json::Value {
        let ended = self
            .lab
            .baton(&["status", text(&self.checkpoint), "--output", "json"]);
        assert_eq!(ended.code, 0, "status: {}", ended.stderr);
        serde_json::from_str(&ended.stdout).expect("status prints one JSON document")
    }
}

fn ends(process: &mut Process, code: i32) {
    let found = process.wait_exit(BOUND).expect("the guard ends");
    assert_eq!(found, code, "{}", process.stderr());
}

/// Whether a process runs; one that has ended and is not reaped yet does not.
fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn is_gone(pid: u32) {
    poll_until(&format!("end of process {pid}"), BOUND, || {
        (!lives(pid)).then_some(())
    })
    .expect("it ends");
}

fn as_pid(pid: u32) -> Pid {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process id")
}

/// The warden of a guard: its only child.
fn warden(guard: &Process) -> u32 {
    let parent = guard.pid().to_string();
    let processes = fs::read_dir("/proc").expect("a system with /proc").flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let warden = pids.find(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().nth(1));
        rest == Some(Some(parent.as_str()))
    });
    warden.expect("a guard has a warden")
}

#[test]
fn a_command_gets_epoch_and_place_and_its_exit_code_comes_back() {
    let place = Place::open("exec-code");
    let show = r#"echo "$BATON_EPOCH $BATON_CHECKPOINT" >> "$NOTES"; exit 7"#;
    ends(&mut place.guard("a", &["--name", "nightly"], show), 7);
    ends(&mut place.guard("b", &["--name", "nightly"], "kill -9 $$"), 137);
    ends(&mut place.guard("c", &["--name", "nightly"], show), 7);
    let at = text(&place.checkpoint);
    assert_eq!(place.notes(), [format!("1 {at}"), format!("3 {at}")]);
    let status = place.status();
    assert_eq!(
        (&status["state"], &status["job"], &status["lastPlannedBatch"]),
        (&"released".into(), &"nightly".into(), &serde_json::Value::Null),
        "{status}"
    );
    let words = place.lab.baton(&["status", at]).stdout;
    assert!(
        words.contains(&format!("baton exec --checkpoint {at} goes on")),
        "{words}"
    );
}

#[test]
fn a_guard_waits_for_its_command_whatever_it_was_started_with() {
    let place = Place::open("exec-chld");
    let command = place.script("a", "exit 7");
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let args = [
        &["--ignore-signal=CHLD,ALRM", text(baton())],
        place.args(&[], &command).as_slice(),
    ]
    .concat();
    let mut guard = Process::spawn(Path::new("/usr/bin/env"), args, place.lab.path(), "chld")
        .expect("env can be started");
    ends(&mut guard, 7);
}

#[test]
fn a_command_that_is_no_command_disturbs_nobody() {
    let place = Place::open("exec-none");
    let mut owner = place.guard("a", &[], POLITE);
    place.noted("start a");
    let at = text(&place.checkpoint);
    for (command, code, error) in [("no-such-command", 127, "E0540"), ("/etc/passwd", 126, "E0541")] {
        let args = [
            "exec",
            "--checkpoint",
            at,
            "--if-owned",
            "takeover",
            "--",
            command,
        ];
        let ended = place.lab.baton(&args);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert!(ended.stderr.contains(error), "{}", ended.stderr);
    }
    assert_eq!(place.notes(), ["start a"]);
    owner.signal(Signal::TERM).expect("it runs");
    ends(&mut owner, 0);
}

#[test]
fn each_signal_reaches_the_command_once() {
    let place = Place::open("exec-signals");
    let listen = r#"for s in INT QUIT HUP USR1 USR2; do trap "echo got $s >> '$NOTES'" $s; done
        trap 'echo "got TERM" >> "$NOTES"; exit 3' TERM; echo start >> "$NOTES"; while :; do sleep 0.02; done"#;
    let command = place.script("a", listen);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    // What is ignored by whoever runs this test would be ignored by the command, too.
    let args = [
        &["--default-signal", text(baton())],
        place.args(&[], &command).as_slice(),
    ]
    .concat();
    let mut guard = Process::spawn(Path::new("/usr/bin/env"), args, place.lab.path(), "signals")
        .expect("env can be started");
    place.noted("start");
    let signals = [
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::HUP, "HUP"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::TERM, "TERM"),
    ];
    for (signal, name) in signals {
        guard.signal(signal).expect("it runs");
        place.noted(&format!("got {name}"));
    }
    ends(&mut guard, 3);
    let expected: Vec<String> = ["start".to_owned()]
        .into_iter()
        .chain(signals.iter().map(|(_, name)| format!("got {name}")))
        .collect();
    assert_eq!(place.notes(), expected);
}

#[test]
fn what_a_terminal_sends_to_everybody_reaches_the_command_once() {
    let place = Place::open("exec-terminal");
    let listen = r#"trap 'echo got >> "$NOTES"' INT; trap 'exit 0' TERM; echo start >> "$NOTES"; while :; do sleep 0.02; done"#;
    let command = place.script("a", listen);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    // A session of its own, and so a process group: all in it get what a terminal sends.
    let args = [&[text(baton())], place.args(&[], &command).as_slice()].concat();
    let args = [&["env", "--default-signal"], args.as_slice()].concat();
    let mut guard = Process::spawn(Path::new("/usr/bin/setsid"), args, place.lab.path(), "terminal")
        .expect("setsid can be started");
    place.noted("start");
    kill_process_group(as_pid(guard.pid()), Signal::INT).expect("the group is there");
    place.noted("got");
    // A second one would be here by now: it would have been sent before this.
    pause(Duration::from_millis(300));
    guard.signal(Signal::TERM).expect("it runs");
    ends(&mut guard, 0);
    assert_eq!(place.notes(), ["start", "got"]);
}

#[test]
fn a_rival_is_refused_and_a_standby_goes_on_when_the_command_ends() {
    let place = Place::open("exec-wait");
    let mut first = place.guard("a", &[], POLITE);
    place.noted("start a");
    let refused = place.lab.baton_within(
        REFUSAL,
        &["exec", "--checkpoint", text(&place.checkpoint), "--", "true"],
    );
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(&format!("pid {}", first.pid())),
        "{}",
        refused.stderr
    );
    let mut standby = place.guard("b", &["--if-owned", "wait"], POLITE);
    standby.wait_for_line("waiting for", BOUND).expect("it says so");
    assert_eq!(place.status()["standby"]["pid"], standby.pid());
    first.signal(Signal::TERM).expect("it runs");
    ends(&mut first, 0);
    place.noted("start b");
    let stopped = place.lab.baton(&["stop", text(&place.checkpoint)]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    ends(&mut standby, 0);
    assert_eq!(place.notes(), ["start a", "end a", "start b", "end b"]);
}

#[test]
fn a_takeover_stops_the_old_command_before_the_new_one_starts() {
    let place = Place::open("exec-takeover");
    let mut old = place.guard("a", &["--version", "v1"], POLITE);
    place.noted("start a");
    let mut new = place.guard("b", &["--version", "v2", "--if-owned", "takeover"], POLITE);
    ends(&mut old, 0);
    assert!(old.stderr().contains("handed over to v2"), "{}", old.stderr());
    place.noted("start b");
    // The version that was replaced does not take over in return.
    let back = [
        "--version",
        "v1",
        "--if-owned",
        "takeover",
        "--wait-timeout",
        "300ms",
    ];
    let mut back = place.guard("c", &back, POLITE);
    ends(&mut back, 3);
    new.signal(Signal::TERM).expect("it runs");
    ends(&mut new, 0);
    assert_eq!(place.notes(), ["start a", "end a", "start b", "end b"]);
}

#[test]
fn a_command_that_does_not_end_in_time_is_killed_and_handed_over() {
    let place = Place::open("exec-stubborn");
    let mut old = place.guard("a", &["--version", "v1", "--stop-timeout", "500ms"], STUBBORN);
    let pid = place.pid("start a");
    let mut new = place.guard("b", &["--version", "v2", "--if-owned", "takeover"], POLITE);
    ends(&mut old, 137);
    assert!(!lives(pid), "nothing outlives its guard");
    place.noted("start b");
    new.signal(Signal::TERM).expect("it runs");
    ends(&mut new, 0);
}

#[test]
fn force_ends_the_command_before_it_gives_the_checkpoint_away() {
    let place = Place::open("exec-force");
    let look = r#"old=$(sed -n 's/^start a //p' "$NOTES"); if kill -0 "$old"; then echo both >> "$NOTES"; else echo alone >> "$NOTES"; fi"#;
    let mut old = place.guard("a", &[], STUBBORN);
    place.pid("start a");
    ends(&mut place.guard("b", &["--if-owned", "force"], look), 0);
    ends(&mut old, 4);
    assert!(old.stderr().contains("E0106"), "{}", old.stderr());
    place.noted("alone");

    // A guard that is stopped cannot answer: it is killed, and its warden ends the command.
    fs::remove_file(&place.notes).expect("there are notes");
    let mut old = place.guard("a", &[], STUBBORN);
    place.pid("start a");
    old.signal(Signal::STOP).expect("it runs");
    ends(&mut place.guard("b", &["--if-owned", "force"], look), 0);
    ends(&mut old, 137);
    place.noted("alone");
}

#[test]
fn nothing_outlives_a_guard_that_was_killed() {
    let place = Place::open("exec-killed");
    let mut guard = place.guard("a", &[], FERTILE);
    let (child, grandchild) = (place.pid("child"), place.pid("grandchild"));
    guard.kill().expect("it can be killed");
    is_gone(child);
    is_gone(grandchild);
    let mut next = place.guard("b", &["--if-owned", "wait"], POLITE);
    place.noted("start b");
    next.signal(Signal::TERM).expect("it runs");
    ends(&mut next, 0);
}

#[test]
fn nothing_outlives_a_warden_that_was_killed() {
    let place = Place::open("exec-warden");
    let mut guard = place.guard("a", &[], FERTILE);
    let (child, grandchild) = (place.pid("child"), place.pid("grandchild"));
    kill_process(as_pid(warden(&guard)), Signal::KILL).expect("it runs");
    ends(&mut guard, 137);
    assert!(!lives(child) && !lives(grandchild), "the guard ends after them");
    assert_eq!(place.status()["state"], "released");
}

#[test]
fn a_command_that_outlives_its_guard_keeps_the_lock() {
    let place = Place::open("exec-heir");
    let mut guard = place.guard("a", &[], FERTILE);
    let (child, grandchild) = (place.pid("child"), place.pid("grandchild"));
    let warden = warden(&guard);
    // Both at once: whoever is stopped cannot do anything about the other's end.
    guard.signal(Signal::STOP).expect("it runs");
    kill_process(as_pid(warden), Signal::KILL).expect("it runs");
    guard.kill().expect("it can be killed");
    is_gone(child);
    assert!(lives(grandchild), "there is nobody left to end it");

    let at = text(&place.checkpoint);
    let refused = place
        .lab
        .baton_within(REFUSAL, &["exec", "--checkpoint", at, "--", "true"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(&format!("pid {grandchild}")),
        "{}",
        refused.stderr
    );
    let status = place.status();
    assert_eq!(
        (&status["state"], &status["responding"]),
        (&"running".into(), &false.into()),
        "{status}"
    );
    ends(&mut place.guard("b", &["--if-owned", "force"], "exit 0"), 0);
    assert!(!lives(grandchild), "force ends what has the lock");
}

/// Looks that nothing lives of what ran just before (numbers of long ago are others' by now), and runs on with a process out of its parent's sight.
const SOLITARY: &str = r#"for old in $(sed -n 's/^pid //p' "$NOTES" | tail -n 8); do grep -qsF "$NOTES" "/proc/$old/environ" "/proc/$old/cmdline" && echo "overlap $old" >> "$NOTES"; done
    echo "pid $$" >> "$NOTES"; (setsid sh -c 'echo "pid $$" >> "$NOTES"; exec sleep 600' &); echo "start $NAME" >> "$NOTES"; exec sleep 600"#;

#[test]
fn whatever_is_killed_two_commands_never_live_at_once() {
    let place = Place::open("exec-nemesis");
    fs::write(&place.notes, "").expect("they can be written");
    let start = |round: u64, mode: &str| {
        let name = format!("r{round}");
        let options = ["--version", &name, "--if-owned", mode, "--stop-timeout", "1s"];
        place.guard(&name, &options, SOLITARY)
    };
    let rounds = rounds(8, 200);
    let mut owner = start(0, "wait");
    for round in 0..rounds {
        place.noted(&format!("start r{round}"));
        let action = place.lab.below(5);
        let standby = (action != 4).then(|| start(round + 1, "wait"));
        // The standby is there, or comes too late: either is right.
        pause(Duration::from_millis(place.lab.below(300)));
        let code = match action {
            0 => {
                owner.signal(Signal::KILL).expect("it runs");
                137
            }
            1 => {
                kill_process(as_pid(warden(&owner)), Signal::KILL).expect("it runs");
                137
            }
            2 => {
                owner.signal(Signal::TERM).expect("it runs");
                143
            }
            3 => {
                let stopped = place.lab.baton(&["stop", text(&place.checkpoint), "--now"]);
                assert_eq!(stopped.code, 0, "{}", stopped.stderr);
                137
            }
            _ => {
                owner.signal(Signal::STOP).expect("it runs");
                137
            }
        };
        let next = standby.unwrap_or_else(|| start(round + 1, "force"));
        ends(&mut owner, code);
        owner = next;
    }
    place.noted(&format!("start r{rounds}"));
    drop(owner);
    let overlaps = place
        .notes()
        .into_iter()
        .filter(|note| note.starts_with("overlap"));
    assert_eq!(
        overlaps.collect::<Vec<_>>(),
        Vec::<String>::new(),
        "notes: {:?}",
        place.notes()
    );
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let place = Place::open("exec-behind");
    let leave = r#"(setsid sh -c 'echo "grandchild $$" >> "$NOTES"; exec sleep 600' &); until [ -s "$NOTES" ]; do sleep 0.02; done; exit 5"#;
    ends(&mut place.guard("a", &[], leave), 5);
    assert!(!lives(place.pid("grandchild")), "it has ended before its guard");
    let stay = r#"(setsid sh -c "$STAY" &); until grep -q stays "$NOTES"; do sleep 0.02; done; exit 6"#;
    let stay = format!(
        r#"STAY='trap "" TERM; echo "stays $$" >> "$NOTES"; while :; do sleep 0.02; done'; export STAY; {stay}"#
    );
    ends(&mut place.guard("b", &["--stop-timeout", "300ms"], &stay), 6);
    assert!(!lives(place.pid("stays")), "it was killed");
}

#[test]
fn a_guard_that_loses_the_checkpoint_stops_its_command() {
    for (script, last) in [(POLITE, "end a"), (STUBBORN, "start a")] {
        let place = Place::open("exec-lost");
        let mut guard = place.guard("a", &["--stop-timeout", "500ms"], script);
        place.noted("start a");
        let elsewhere = place.lab.path().join("elsewhere");
        fs::rename(&place.checkpoint, elsewhere).expect("it can be moved");
        ends(&mut guard, 4);
        assert!(guard.stderr().contains("E0106"), "{}", guard.stderr());
        let notes = place.notes();
        assert!(
            notes.last().is_some_and(|note| note.starts_with(last)),
            "{notes:?}"
        );
    }
}

#[test]
fn stop_ends_the_command_gently_or_at_once() {
    let place = Place::open("exec-stop");
    let at = text(&place.checkpoint);
    let mut guard = place.guard("a", &[], "sleep 600");
    guard
        .wait_for_line("owner of checkpoint", BOUND)
        .expect("it runs");
    let stopped = place.lab.baton(&["stop", at]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    ends(&mut guard, 143);
    let mut guard = place.guard("b", &[], STUBBORN);
    place.pid("start b");
    let stopped = place.lab.baton(&["stop", at, "--now"]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    ends(&mut guard, 137);
    assert_eq!(place.status()["state"], "released");
}

#[test]
fn a_checkpoint_of_spark_is_guarded_and_stays_one() {
    let place = Place::open("exec-spark");
    let entries = |what: &str| {
        let read = fs::read_dir(&place.checkpoint).expect(what);
        read.map(|entry| entry.expect(what).file_name().into_string().expect(what))
            .collect::<BTreeSet<_>>()
    };
    let job = place.lab.job("t");
    let job = crate::lab::Job {
        checkpoint: place.checkpoint.clone(),
        ..job
    };
    // The guard may come first: then nothing that Spark looks for may be there.
    ends(&mut place.guard("a", &[], "exit 0"), 0);
    assert_eq!(entries("it is there"), BTreeSet::from([".baton".to_owned()]));
    let refused = place.lab.ends(&job, &[]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("E0109"), "{}", refused.stderr);

    let spark = r#"cd "$BATON_CHECKPOINT"; echo '{"id":"x"}' > metadata; mkdir offsets commits sources state; echo v1 > offsets/0; echo v1 > commits/0"#;
    ends(&mut place.guard("b", &[], spark), 0);
    let mut guard = place.guard("c", &[], POLITE);
    place.noted("start c");
    // Whether it is guarded or not, it is refused by what it is.
    let refused = place.lab.ends(&job, &["--if-owned", "takeover"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("E0110"), "{}", refused.stderr);
    let status = place.status();
    assert_eq!(
        (&status["state"], &status["owner"]["pid"], &status["job"]),
        (&"running".into(), &guard.pid().into(), &"checkpoint".into()),
        "{status}"
    );
    guard.signal(Signal::TERM).expect("it runs");
    ends(&mut guard, 0);
    let all = [".baton", "commits", "metadata", "offsets", "sources", "state"];
    assert_eq!(entries("it is there"), all.map(str::to_owned).into());
}

#[test]
fn a_checkpoint_of_our_own_is_not_guarded() {
    let place = Place::open("exec-own");
    fs::create_dir(&place.checkpoint).expect("it can be made");
    fs::write(place.checkpoint.join("baton.json"), "{}").expect("it can be written");
    let mut guard = place.guard("a", &[], "exit 0");
    ends(&mut guard, 2);
    assert!(guard.stderr().contains("E0160"), "{}", guard.stderr());
    assert!(!place.checkpoint.join(".baton").exists(), "it was not touched");
}
