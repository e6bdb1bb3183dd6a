//! What was typed.

use clap::builder::styling::Styles;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "baton",
    version,
    about = "Streaming SQL over Kafka with one owner per checkpoint",
    long_about = "Streaming SQL over Kafka in Spark Structured Streaming's vocabulary. A checkpoint has exactly one owner: a new \
                  version of a job starts while the old one runs, asks for the checkpoint, and goes on at the exact next offset.\n\n\
                  Exit codes: 0 done, stopped or handed over; 1 failed; 2 usage, job file, SQL, or a job that does not fit its \
                  checkpoint; 3 owned by another; 4 ownership lost while running; 128+n ended by a second signal n.\n\
                  stdout carries data only, everything else goes to stderr.",
    after_help = "Examples:\n  baton run job.toml\n  baton status /var/lib/baton/char-count",
    styles = Styles::styled(),
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) talk: Talk,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How much is said on stderr, and how.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Talk {
    /// Say more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Talk")]
    pub(crate) verbose: u8,
    /// Say only what is wrong
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Talk")]
    pub(crate) quiet: bool,
    /// Form of the lines on stderr; RUST_LOG filters them
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Talk"
    )]
    pub(crate) log_format: LogFormat,
}

/// The form of lines on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// The form of results on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputForm {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a job until it is stopped, done or replaced
    ///
    /// SIGINT, SIGTERM and SIGHUP finish the running batch, commit it, release the checkpoint and end with 0. A second
    /// one abandons the batch, which the next start runs again, and ends with 128 + signal.
    #[command(
        after_help = "Examples:\n  baton run job.toml\n  IMAGE_TAG=v2 baton run job.toml --if-owned takeover"
    )]
    Run(RunArgs),
    /// Check a job without running it; changes nothing
    #[command(after_help = "Examples:\n  baton validate job.toml -v\n  baton validate job.toml --connect")]
    Validate(ValidateArgs),
    /// Show who owns a checkpoint, its last batch, offsets and lag
    ///
    /// Works while the job runs, never disturbs it, needs no lock.
    #[command(
        after_help = "Examples:\n  baton status /var/lib/baton/char-count\n  baton status job.toml --output json --watch"
    )]
    Status(StatusArgs),
    /// Stop the job that owns a checkpoint, from outside
    ///
    /// Returns when the owner has finished its batch and released the checkpoint. It is no failure if nobody owns it.
    #[command(
        after_help = "Examples:\n  baton stop /var/lib/baton/char-count\n  baton stop job.toml --timeout 2m"
    )]
    Stop(StopArgs),
    /// Look into a checkpoint, and repair it
    #[command(
        subcommand,
        after_help = "Examples:\n  baton checkpoint show job.toml --output json\n  baton checkpoint verify /var/lib/baton/char-count"
    )]
    Checkpoint(CheckpointCommand),
    /// Own a checkpoint while a command runs
    ///
    /// For any program that must run once at a time, such as an existing Spark job: the checkpoint is the directory that it
    /// works on. What baton keeps there is in .baton, which Spark ignores. The command gets BATON_EPOCH and
    /// BATON_CHECKPOINT. It runs in a process group of its own, without input from a terminal; signals are passed on to it.
    /// On a take-over, baton stop, or loss of the checkpoint it gets SIGTERM, and SIGKILL after --stop-timeout. Nothing
    /// that it started outlives the guard.
    ///
    /// The exit code is the command's own, 128 + n if signal n ended it; 127 if it is not found, 126 if it cannot be
    /// started; 3 if the checkpoint is owned by another, 4 if it was lost while the command ran.
    #[command(
        after_help = "Examples:\n  baton exec --checkpoint /tmp/checkpoints/wordcount --if-owned wait -- python job1.py\n  \
                      baton exec --checkpoint /var/lib/nightly --name nightly --version v2 --if-owned takeover -- ./nightly.sh --all"
    )]
    Exec(ExecArgs),
    /// Run an embedded Kafka broker for a first try
    ///
    /// It listens on a random port of this machine, keeps only the newest 5 MB a partition, and is gone at its end. Prints
    /// host:port as its first line, then ready; ends at Ctrl-C.
    #[command(
        after_help = "Examples:\n  baton broker --topic test1:3\n  baton broker --topic orders --topic clicks:12"
    )]
    Broker(BrokerArgs),
    /// Send each line of stdin as one message
    #[command(
        after_help = "Examples:\n  echo hello | baton produce --bootstrap-server localhost:9092 --topic test1\n  \
                      seq 1000 | baton produce --bootstrap-server localhost:9092 --topic test1"
    )]
    Produce(ProduceArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  baton completions bash > /etc/bash_completion.d/baton\n  \
                      baton completions fish > ~/.config/fish/completions/baton.fish"
    )]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// `baton checkpoint …`
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Print the records of a checkpoint's log
    #[command(
        after_help = "Examples:\n  baton checkpoint show /var/lib/baton/char-count\n  baton checkpoint show job.toml --output json"
    )]
    Show(ShowArgs),
    /// Check every record of a checkpoint that nobody owns; changes nothing
    ///
    /// Looks at the marker, every record's checksum, the order of the records, and whether the log ends where its owner
    /// was told that it does. Names what is damaged and the command that repairs it. Exit codes: 0 whole; 1 damaged; 3
    /// owned by somebody.
    #[command(
        after_help = "Examples:\n  baton checkpoint verify /var/lib/baton/char-count\n  baton checkpoint verify job.toml --output json"
    )]
    Verify(VerifyArgs),
    /// Move the position of a checkpoint that nobody owns
    ///
    /// Says for each partition what will be read again or skipped, then moves the position: the log keeps who did it.
    /// Batch numbers go on, whatever is read again. Skipping records wants --yes, going back does not. Refused while
    /// somebody owns the checkpoint (exit code 3), and while a batch is planned and not committed.
    #[command(
        after_help = "Examples:\n  baton checkpoint rewind job.toml --to-batch 17 --dry-run\n  \
                      baton checkpoint rewind /var/lib/baton/char-count --to '{\"test1\":{\"0\":4000}}'"
    )]
    Rewind(RewindArgs),
    /// Make a new checkpoint that starts exactly where another one stands
    ///
    /// The old one is not touched and may be owned meanwhile. The new one has an id of its own and the job's shape, and
    /// begins with batch 0. From there on both read the same records.
    #[command(
        after_help = "Examples:\n  baton checkpoint fork /var/lib/baton/char-count /var/lib/baton/trial\n  \
                      baton checkpoint fork job.toml trial.toml --dry-run"
    )]
    Fork(ForkArgs),
}

/// What to do when somebody else owns the checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IfOwnedArg {
    /// End at once with exit code 3
    #[default]
    Fail,
    /// Stand by, and start when the owner releases or dies
    Wait,
    /// Prepare everything, then ask the owner to finish its batch and release
    Takeover,
    /// End the owner at once; it may lose its running batch, never a committed one
    Force,
}

/// What to do when an owner does not release in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDrainTimeoutArg {
    /// Withdraw and end with exit code 3
    #[default]
    Giveup,
    /// End the owner
    Force,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The job file; - reads stdin
    pub(crate) job: PathBuf,
    /// When somebody else owns the checkpoint [default: the job's ownership.ifOwned, else fail]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) if_owned: Option<IfOwnedArg>,
    /// How long to stand by [default: for ever]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait_timeout: Option<Duration>,
    /// How long an owner that was asked may take to finish its batch
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) drain_timeout: Duration,
    /// What to do when it takes longer
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub(crate) on_drain_timeout: OnDrainTimeoutArg,
    /// How long to wait for a broker that does not answer at the start
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) start_timeout: Duration,
    /// Go on although the job differs from the one in the checkpoint
    #[arg(long)]
    pub(crate) accept_changes: bool,
    /// Move the job's kafka.group.id from another checkpoint to this one
    #[arg(long)]
    pub(crate) claim_group: bool,
    /// Override a value of the job file
    #[arg(long, value_name = "PATH.TO.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Append one line of JSON for each batch to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) progress: Option<PathBuf>,
    /// Serve /healthz, /readyz and /metrics: 127.0.0.1:9090, or :9090 for every address of this machine
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The job file; - reads stdin
    #[arg(required_unless_present = "schema")]
    pub(crate) job: Option<PathBuf>,
    /// Also ask brokers for topics and permissions, and the checkpoint whether the job fits
    #[arg(long)]
    pub(crate) connect: bool,
    /// How long to wait for a broker that does not answer
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) start_timeout: Duration,
    /// Accept a job that differs from the one in the checkpoint
    #[arg(long)]
    pub(crate) accept_changes: bool,
    /// Override a value of the job file
    #[arg(long, value_name = "PATH.TO.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print the job file's JSON Schema, for editors
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
    /// Form of the result
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: OutputForm,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The checkpoint's location, or a job file
    pub(crate) checkpoint: String,
    /// Form of the result
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: OutputForm,
    /// Repeat every second until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The checkpoint's location, or a job file
    pub(crate) checkpoint: String,
    /// Abandon the running batch; the next start runs it again
    #[arg(long)]
    pub(crate) now: bool,
    /// How long to wait for the owner to release
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The checkpoint's location, or a job file
    pub(crate) checkpoint: String,
    /// Form of the result
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: OutputForm,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The directory that the command works on; it is made if there is none
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) checkpoint: String,
    /// When somebody else owns the checkpoint
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub(crate) if_owned: IfOwnedArg,
    /// The name that status shows [default: the checkpoint's last component]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Free text; one version does not take over from the same [default: a short hash of the command]
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// How long to stand by [default: for ever]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait_timeout: Option<Duration>,
    /// How long an owner that was asked may take to stop its command
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) drain_timeout: Duration,
    /// What to do when it takes longer
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub(crate) on_drain_timeout: OnDrainTimeoutArg,
    /// How long the command may take to end after SIGTERM before it is killed
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "20s")]
    pub(crate) stop_timeout: Duration,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The checkpoint's location, or a job file
    pub(crate) checkpoint: String,
    /// Form of the result
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: OutputForm,
}

#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The checkpoint's location, or a job file
    pub(crate) checkpoint: String,
    #[command(flatten)]
    pub(crate) target: RewindTarget,
    /// Only say what would be read again or skipped
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Skip records that no batch has read, if that is what it means
    #[arg(long)]
    pub(crate) yes: bool,
    /// Form of the result
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: OutputForm,
}

/// Where to.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RewindTarget {
    /// Where batch N ended: the next batch starts behind it, N itself is not read again
    #[arg(long, value_name = "N")]
    pub(crate) to_batch: Option<u64>,
    /// Offsets in Spark's form, {"topic":{"0":4000}}, or with the source's name around them; other partitions stay
    #[arg(long, value_name = "OFFSETS")]
    pub(crate) to: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The checkpoint's location, or a job file
    pub(crate) checkpoint: String,
    /// The new one's location, or a job file that names it; a directory that does not exist yet
    pub(crate) new: String,
    /// Only say where it would start
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Form of the result
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: OutputForm,
}

#[derive(Debug, Args)]
pub(crate) struct BrokerArgs {
    /// A topic to make, with so many partitions (1 if not said)
    #[arg(long = "topic", value_name = "NAME[:PARTITIONS]", value_parser = topic)]
    pub(crate) topics: Vec<(String, i32)>,
}

#[derive(Debug, Args)]
pub(crate) struct ProduceArgs {
    /// The broker, host:port; several with commas
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) bootstrap_server: String,
    /// The topic
    #[arg(long)]
    pub(crate) topic: String,
}

fn duration(text: &str) -> Result<Duration, String> {
    baton_core::parse_duration(text).map_err(|error| error.to_string())
}

fn topic(text: &str) -> Result<(String, i32), String> {
    let (name, partitions) = match text.rsplit_once(':') {
        Some((name, partitions)) => {
            let partitions = partitions
                .parse()
                .ok()
                .filter(|count| (1..=1_000).contains(count));
            (
                name,
                partitions.ok_or("PARTITIONS must be a whole number from 1 to 1000")?,
            )
        }
        None => (text, 1),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 249 || !name.chars().all(is_name) {
        return Err(format!("`{name}` is no topic name; use [A-Za-z0-9._-]"));
    }
    Ok((name.to_owned(), partitions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn topics_are_names_with_counts() {
        assert_eq!(topic("a.b-c"), Ok(("a.b-c".to_owned(), 1)));
        assert_eq!(topic("t:12"), Ok(("t".to_owned(), 12)));
        for text in ["", ":3", "t:0", "t:-1", "t:x", "a b", "t:1001"] {
            assert!(topic(text).is_err(), "{text}");
        }
    }
}
