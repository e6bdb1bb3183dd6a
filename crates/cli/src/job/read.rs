//! Walking the tree of a job file.

use baton_core::{OptionMap, OutputMode, SourceName, nearest, parse_duration};
use baton_engine::Trigger;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::conf::Conf;
use super::tree::{self, Node, Place, Value};
use super::{JobSpec, Options, Outside, OwnershipSpec, SinkSpec, SourceSpec};
use crate::env;
use crate::failure::{Failure, Result};

pub(super) const TOP: [&str; 9] = [
    "name",
    "version",
    "source",
    "query",
    "sink",
    "watermark",
    "trigger",
    "ownership",
    "conf",
];
pub(super) const SOURCE: [&str; 2] = ["format", "options"];
pub(super) const QUERY: [&str; 2] = ["sql", "file"];
pub(super) const SINK: [&str; 3] = ["format", "outputMode", "options"];
pub(super) const TRIGGER: [&str; 3] = ["processingTime", "availableNow", "once"];
pub(super) const OWNERSHIP: [&str; 4] = ["ifOwned", "handover", "stopTimeout", "rollbackBatches"];
/// The formats that can be used in a job file.
pub(super) const SINKS: [&str; 2] = ["console", "noop"];
/// The formats that are known by name and not there yet.
const LATER_SINKS: [&str; 4] = ["kafka", "parquet", "json", "csv"];

const DEFAULT_STOP_TIMEOUT: Duration = Duration::from_secs(20);
const CHECKPOINT: &str = "checkpointLocation";

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(super) fn job(file: &Rc<str>, text: &str, sets: &[String], outside: &Outside<'_>) -> Result<JobSpec> {
    let mut root = tree::parse(file, text)?;
    for assignment in sets {
        tree::set(&mut root, assignment)?;
    }
    let whole = Place::Whole(Rc::clone(file));
    let mut top = Table {
        name: String::new(),
        place: whole,
        nodes: root,
        env: outside.env,
    };
    top.only(&TOP)?;
    if let Some(node) = top.take("watermark") {
        return Err(later("[watermark] is", "leave it out; stateful queries come later").at(&node.place));
    }
    let name = top.required_text(
        "name",
        "it is the query's name in progress, metrics and client ids",
    )?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.0.is_empty() || !name.0.chars().all(is_name) {
        return Err(bad(format!("name `{}` must match [A-Za-z0-9._-]+", name.0)).at(&name.1));
    }
    let version = top.text("version")?;
    let sources = sources(&mut top)?;
    let (sql, sql_place) = sql(&mut top, outside)?;
    let sink = sink(&mut top)?;
    let trigger = trigger(&mut top)?;
    let (conf, warnings) = conf(&mut top)?;
    let ownership = ownership(&mut top, &conf)?;
    let version = version
        .map(|(version, _)| version)
        .filter(|version| !version.is_empty());
    let version = version
        .unwrap_or_else(|| fingerprint([text, &sql].into_iter().chain(sets.iter().map(String::as_str))));
    Ok(JobSpec {
        name: name.0,
        version,
        sources,
        sql,
        sql_place,
        sink,
        trigger,
        ownership,
        conf,
        warnings,
    })
}

pub(super) fn checkpoint(file: &Rc<str>, text: &str, env: Env<'_>) -> Result<String> {
    let nodes = tree::parse(file, text)?;
    let mut top = Table {
        name: String::new(),
        place: Place::Whole(Rc::clone(file)),
        nodes,
        env,
    };
    let found = match top.table("sink")? {
        Some(mut sink) => match sink.table("options")? {
            Some(mut options) => options.text(CHECKPOINT)?,
            None => None,
        },
        None => None,
    };
    found
        .map(|(location, _)| location)
        .ok_or_else(|| missing_checkpoint(&top.place))
}

/// What a command that needs a checkpoint says of a job without one.
pub(crate) fn missing_checkpoint(place: &Place) -> Failure {
    let text = "checkpointLocation must be specified: add it to [sink.options], for example \
                checkpointLocation = \"/var/lib/baton/my-job\"";
    Failure::invalid("E0509", text).at(place)
}

fn bad(text: impl Into<String>) -> Failure {
    Failure::invalid("E0504", text)
}

fn later(what: &str, advice: &str) -> Failure {
    Failure::invalid("E0506", format!("{what} not in this version; {advice}"))
}

/// A table on its way to being used up.
struct Table<'a> {
    name: String,
    place: Place,
    nodes: Vec<Node>,
    env: Env<'a>,
}

impl<'a> Table<'a> {
    fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    fn only(&self, known: &[&str]) -> Result<()> {
        let Some(node) = self.nodes.iter().find(|node| !known.contains(&node.key.as_str())) else {
            return Ok(());
        };
        let what = if matches!(node.value, Value::Table(_)) {
            "table"
        } else {
            "key"
        };
        let within = if self.name.is_empty() {
            String::new()
        } else {
            format!(" in [{}]", self.name)
        };
        let hint = match nearest(&node.key, known.iter().copied()) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; known here: {}", known.join(", ")),
        };
        Err(Failure::invalid("E0503", format!("unknown {what} `{}`{within}{hint}", node.key)).at(&node.place))
    }

    fn take(&mut self, key: &str) -> Option<Node> {
        let index = self
            .nodes
            .iter()
            .position(|node| node.key.eq_ignore_ascii_case(key))?;
        Some(self.nodes.remove(index))
    }

    fn wanted(&self, node: &Node, wanted: &str) -> Failure {
        bad(format!(
            "`{}` must be {wanted}, not {}",
            self.path(&node.key),
            node.value.kind()
        ))
        .at(&node.place)
    }

    fn table(&mut self, key: &str) -> Result<Option<Table<'a>>> {
        let Some(node) = self.take(key) else {
            return Ok(None);
        };
        let name = self.path(key);
        match node.value {
            Value::Table(nodes) => Ok(Some(Table {
                name,
                place: node.place,
                nodes,
                env: self.env,
            })),
            _ => Err(self.wanted(&node, "a table")),
        }
    }

    fn text(&mut self, key: &str) -> Result<Option<(String, Place)>> {
        let Some(node) = self.take(key) else {
            return Ok(None);
        };
        match &node.value {
            Value::Text(text) => Ok(Some((expand(text, &node.place, self.env)?, node.place))),
            _ => Err(self.wanted(&node, "a string")),
        }
    }

    fn required_text(&mut self, key: &str, why: &str) -> Result<(String, Place)> {
        let missing = || bad(format!("`{}` is missing: {why}", self.path(key))).at(&self.place);
        let missing = missing();
        self.text(key)?.ok_or(missing)
    }

    /// A string, a number or a boolean, as text: Spark's options do not tell them apart.
    fn scalars(&mut self) -> Result<Vec<(String, String, Place)>> {
        let mut out = Vec::new();
        flatten(std::mem::take(&mut self.nodes), "", &mut |key, node| {
            let value = match &node.value {
                Value::Text(text) => expand(text, &node.place, self.env)?,
                Value::Number(number) => number.clone(),
                Value::Bool(is) => is.to_string(),
                other => {
                    let text = format!(
                        "`{key}` must be a string, a number or a boolean, not {}",
                        other.kind()
                    );
                    return Err(bad(text).at(&node.place));
                }
            };
            out.push((key, value, node.place));
            Ok(())
        })?;
        Ok(out)
    }

    fn options(&mut self) -> Result<Options> {
        let place = self.place.clone();
        let Some(mut table) = self.table("options")? else {
            return Ok(Options {
                map: OptionMap::new(),
                places: BTreeMap::new(),
                table: place,
            });
        };
        let mut options = Options {
            map: OptionMap::new(),
            places: BTreeMap::new(),
            table: table.place.clone(),
        };
        for (key, value, place) in table.scalars()? {
            if let Some(first) = options.places.get(&key.to_ascii_lowercase()) {
                let text =
                    format!("option `{key}` is given twice, first at {first}; options are case-insensitive");
                return Err(bad(text).at(&place));
            }
            options.places.insert(key.to_ascii_lowercase(), place);
            options.map.set(key, value);
        }
        Ok(options)
    }
}

fn expand(text: &str, place: &Place, env: Env<'_>) -> Result<String> {
    env::expand(text, env).map_err(|why| Failure::invalid("E0505", why).at(place))
}

/// Option names have dots; written without quotes they are nested tables to TOML.
fn flatten(nodes: Vec<Node>, prefix: &str, each: &mut dyn FnMut(String, Node) -> Result<()>) -> Result<()> {
    for node in nodes {
        let key = if prefix.is_empty() {
            node.key.clone()
        } else {
            format!("{prefix}.{}", node.key)
        };
        match node.value {
            Value::Table(nodes) => flatten(nodes, &key, each)?,
            _ => each(key, node)?,
        }
    }
    Ok(())
}

fn sources(top: &mut Table<'_>) -> Result<Vec<SourceSpec>> {
    let missing = bad("there is no source: add [source.NAME] with format and options").at(&top.place);
    let Some(mut table) = top.table("source")? else {
        return Err(missing);
    };
    let names: Vec<String> = table.nodes.iter().map(|node| node.key.clone()).collect();
    let mut sources: Vec<SourceSpec> = Vec::new();
    for name in names {
        let place = table.nodes[0].place.clone();
        let Some(mut source) = table.table(&name)? else {
            continue;
        };
        let parsed = SourceName::new(&name).map_err(|error| Failure::from(error).at(&place))?;
        if let Some(other) = sources
            .iter()
            .find(|other| other.name.as_str().eq_ignore_ascii_case(&name))
        {
            let text = format!(
                "source `{name}` differs from `{}` in case only, which SQL does not tell apart",
                other.name
            );
            return Err(bad(text).at(&place));
        }
        source.only(&SOURCE)?;
        let (format, at) = source.required_text("format", "only kafka is in this version")?;
        if format != "kafka" {
            return Err(bad(format!(
                "unknown source format `{format}`; only kafka is in this version"
            ))
            .at(&at));
        }
        sources.push(SourceSpec {
            name: parsed,
            options: source.options()?,
        });
    }
    if sources.is_empty() {
        Err(missing)
    } else {
        Ok(sources)
    }
}

fn sql(top: &mut Table<'_>, outside: &Outside<'_>) -> Result<(String, Place)> {
    let missing = bad("`query.sql` is missing: add [query] with sql = \"SELECT …\" or file = \"query.sql\"")
        .at(&top.place);
    let Some(mut query) = top.table("query")? else {
        return Err(missing);
    };
    query.only(&QUERY)?;
    match (query.text("sql")?, query.text("file")?) {
        (Some(sql), None) => Ok(sql),
        (None, Some((file, place))) => {
            let sql = (outside.read)(Path::new(&file)).map_err(|failure| failure.at(&place))?;
            Ok((sql, Place::Whole(file.into())))
        }
        (Some(_), Some((_, place))) => Err(bad("[query] has both sql and file; keep one").at(&place)),
        (None, None) => Err(missing),
    }
}

fn sink(top: &mut Table<'_>) -> Result<SinkSpec> {
    let missing = bad("there is no sink: add [sink] with format = \"console\"").at(&top.place);
    let Some(mut sink) = top.table("sink")? else {
        return Err(missing);
    };
    sink.only(&SINK)?;
    let (format, place) = sink.required_text("format", "console or noop")?;
    let format = format.to_ascii_lowercase();
    match format.as_str() {
        known if SINKS.contains(&known) => {}
        "memory" => {
            let text = "sink `memory` is for the Rust library only; use console or noop in a job file";
            return Err(Failure::invalid("E0506", text).at(&place));
        }
        later_format if LATER_SINKS.contains(&later_format) => {
            return Err(later(&format!("sink `{format}` is"), "use console or noop").at(&place));
        }
        _ => {
            let known = SINKS.iter().chain(&LATER_SINKS).copied();
            let hint = nearest(&format, known).map_or_else(
                || "; known: console, noop".to_owned(),
                |near| format!("; did you mean `{near}`?"),
            );
            return Err(bad(format!("unknown sink format `{format}`{hint}")).at(&place));
        }
    }
    let output_mode = match sink.text("outputMode")? {
        None => OutputMode::Append,
        Some((mode, place)) => mode.parse().map_err(|error| Failure::from(error).at(&place))?,
    };
    let mut options = sink.options()?;
    let checkpoint = options
        .map
        .take(CHECKPOINT)
        .filter(|location| !location.trim().is_empty());
    Ok(SinkSpec {
        format,
        output_mode,
        checkpoint,
        options,
    })
}

fn trigger(top: &mut Table<'_>) -> Result<Trigger> {
    let Some(table) = top.table("trigger")? else {
        return Ok(Trigger::Default);
    };
    table.only(&TRIGGER)?;
    if let Some(second) = table.nodes.get(1) {
        let text = format!(
            "[trigger] has `{}` and `{}`; keep one",
            table.nodes[0].key, second.key
        );
        return Err(bad(text).at(&second.place));
    }
    let Some(node) = table.nodes.first().cloned() else {
        return Ok(Trigger::Default);
    };
    match node.key.as_str() {
        "processingTime" => {
            let wanted = table.wanted(&node, "an interval in quotes, \"1 second\"");
            let Value::Text(text) = &node.value else {
                return Err(wanted);
            };
            let text = expand(text, &node.place, table.env)?;
            Trigger::processing_time(&text).map_err(|error| Failure::from(error).at(&node.place))
        }
        key => match node.value {
            Value::Bool(true) if key == "once" => Ok(Trigger::Once),
            Value::Bool(true) => Ok(Trigger::AvailableNow),
            Value::Bool(false) => {
                Err(bad(format!("`trigger.{key}` must be true; leave it out otherwise")).at(&node.place))
            }
            _ => Err(table.wanted(&node, "true")),
        },
    }
}

fn conf(top: &mut Table<'_>) -> Result<(Conf, Vec<String>)> {
    let (mut conf, mut warnings) = (Conf::default(), Vec::new());
    let Some(mut table) = top.table("conf")? else {
        return Ok((conf, warnings));
    };
    for (key, value, place) in table.scalars()? {
        let taken = conf.take(&key, &value);
        let warning = taken.map_err(|why| Failure::invalid("E0507", format!("`{key}` {why}")).at(&place))?;
        warnings.extend(warning.map(|warning| format!("{place}: `{key}` {warning}")));
    }
    Ok((conf, warnings))
}

fn ownership(top: &mut Table<'_>, conf: &Conf) -> Result<OwnershipSpec> {
    let default = conf.stop_timeout.unwrap_or(DEFAULT_STOP_TIMEOUT);
    let mut spec = OwnershipSpec {
        if_owned: None,
        handover: true,
        stop_timeout: default,
    };
    let Some(mut table) = top.table("ownership")? else {
        return Ok(spec);
    };
    table.only(&OWNERSHIP)?;
    if let Some((text, place)) = table.text("ifOwned")? {
        if !["fail", "wait", "takeover", "force"].contains(&text.as_str()) {
            return Err(bad(format!(
                "`ownership.ifOwned` must be fail, wait, takeover or force, not `{text}`"
            ))
            .at(&place));
        }
        spec.if_owned = Some(text);
    }
    if let Some((text, place)) = table.text("handover")? {
        spec.handover = match text.as_str() {
            "allow" => true,
            "deny" => false,
            _ => {
                return Err(bad(format!(
                    "`ownership.handover` must be allow or deny, not `{text}`"
                ))
                .at(&place));
            }
        };
    }
    if let Some((text, place)) = table.text("stopTimeout")? {
        spec.stop_timeout = parse_duration(&text).map_err(|error| Failure::from(error).at(&place))?;
        if let Some(other) = conf.stop_timeout.filter(|other| *other != spec.stop_timeout) {
            let text = format!(
                "`ownership.stopTimeout` is {text}, but spark.sql.streaming.stopTimeout says {other:?}; keep one"
            );
            return Err(Failure::invalid("E0507", text).at(&place));
        }
    }
    if let Some(node) = table.take("rollbackBatches") {
        match &node.value {
            Value::Number(number) if number == "0" => {}
            Value::Number(_) => {
                return Err(
                    later("`ownership.rollbackBatches` other than 0 is", "leave it out").at(&node.place),
                );
            }
            _ => return Err(table.wanted(&node, "a whole number")),
        }
    }
    Ok(spec)
}

/// FNV-1a over all parts: the same job has the same version on every machine and with every compiler.
pub(crate) fn fingerprint<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
