//! stderr: human lines with a prefix, or JSON.

use std::fmt;
use std::io::{IsTerminal, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, fmt};
use tracing_subscriber::registry::LookupSpan;

use crate::args::{LogFormat, Talk};
use crate::failure::Failure;

/// The target of the command's own lines; libraries have theirs.
pub(crate) const TARGET: &str = "baton::report";

/// Says something to whoever watches the command.
macro_rules! say {
    ($($arg:tt)*) => { tracing::info!(target: $crate::talk::TARGET, $($arg)*) };
}
/// The same for what is odd.
macro_rules! odd {
    ($($arg:tt)*) => { tracing::warn!(target: $crate::talk::TARGET, $($arg)*) };
}
// By another name first: a macro that is defined as `warn` is mistaken for the built-in attribute.
pub(crate) use {odd as warn, say};

/// Installs the one subscriber.
pub(crate) fn install(talk: Talk) {
    say_panics();
    let filter =
        EnvFilter::builder().parse_lossy(directives(talk, std::env::var("RUST_LOG").ok().as_deref()));
    let base = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    // A second installation fails, and there is none.
    drop(match talk.log_format {
        LogFormat::Json => tracing::subscriber::set_global_default(
            base.json().flatten_event(true).with_span_list(false).finish(),
        ),
        LogFormat::Text => {
            tracing::subscriber::set_global_default(base.event_format(Lines { colour: colour() }).finish())
        }
    });
}

/// A panic is a bug, and one line like any other error.
fn say_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let words = panic.to_string();
        let words: Vec<&str> = words.split_whitespace().collect();
        tracing::error!(target: TARGET, "a bug: {}", words.join(" "));
    }));
}

/// Our own lines at the level asked for, libraries one step less; RUST_LOG adds to that, and a bare level in it replaces it.
fn directives(talk: Talk, rust_log: Option<&str>) -> String {
    let base = match (talk.quiet, talk.verbose) {
        (true, _) => "error",
        (_, 0) => "warn,baton::report=info",
        (_, 1) => "info,baton::report=debug",
        _ => "debug,baton::report=trace",
    };
    match rust_log.map(str::trim).filter(|given| !given.is_empty()) {
        None => base.to_owned(),
        Some(given)
            if given
                .split(',')
                .any(|part| part.trim().parse::<LevelFilter>().is_ok()) =>
        {
            given.to_owned()
        }
        Some(given) => format!("{base},{given}"),
    }
}

/// Colour only on a terminal, and not against anybody's wish.
pub(crate) fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The last line of a command that failed. It is said whatever the filters are.
pub(crate) fn failed(failure: &Failure, format: LogFormat) {
    let line = match format {
        LogFormat::Json => {
            let kind = format!("{:?}", failure.kind).to_lowercase();
            serde_json::json!({ "level": "ERROR", "code": failure.code, "kind": kind, "message": failure.to_string() })
                .to_string()
        }
        LogFormat::Text if colour() => format!("baton: \x1b[1;31merror[{}]\x1b[0m: {failure}", failure.code),
        LogFormat::Text => format!("baton: error[{}]: {failure}", failure.code),
    };
    // Nobody is left to be told that stderr is gone.
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}

/// `baton: message`, `baton: warning: message`.
struct Lines {
    colour: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = Text::default();
        event.record(&mut text);
        let meta = event.metadata();
        let (word, colour) = match *meta.level() {
            Level::ERROR => ("error: ", "\x1b[31m"),
            Level::WARN => ("warning: ", "\x1b[33m"),
            _ => ("", ""),
        };
        let line = text.line(meta.target() == TARGET).replace('\n', "\n  ");
        if self.colour && !word.is_empty() {
            writeln!(writer, "baton: {colour}{word}\x1b[0m{line}")
        } else {
            writeln!(writer, "baton: {word}{line}")
        }
    }
}

/// The message, and what else the event carries.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    /// Our own messages say everything in words; their fields are for JSON.
    fn line(self, own: bool) -> String {
        if own {
            self.message
        } else {
            self.message + &self.fields
        }
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields.push_str(&format!(" {}={value:?}", field.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_log_adds_to_the_default_and_a_bare_level_replaces_it() {
        let talk = |verbose, quiet| Talk {
            verbose,
            quiet,
            log_format: LogFormat::Text,
        };
        let check = |talk, rust_log, expected: &str| assert_eq!(directives(talk, rust_log), expected);
        check(talk(0, false), None, "warn,baton::report=info");
        check(talk(0, true), None, "error");
        check(talk(1, false), None, "info,baton::report=debug");
        check(
            talk(0, false),
            Some("rdkafka=debug"),
            "warn,baton::report=info,rdkafka=debug",
        );
        check(talk(0, false), Some("off"), "off");
        check(talk(0, false), Some(""), "warn,baton::report=info");
    }
}
