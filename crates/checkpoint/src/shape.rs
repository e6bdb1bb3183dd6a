//! What a job is, as far as its checkpoint depends on it.

use baton_core::{OutputMode, SourceName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a job is, as far as its checkpoint depends on it; kept in every fence record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobShape {
    /// The query's name.
    pub job: String,
    /// What each source reads, in the words of the source.
    pub sources: BTreeMap<SourceName, String>,
    /// The SQL text.
    pub sql: String,
    /// The output's columns, `name type` each.
    pub schema: Vec<String>,
    /// The sink's format.
    pub sink: String,
    /// The output mode.
    pub output_mode: OutputMode,
}

/// How a job differs from the one that its checkpoint knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// What may differ between versions of one job; worth printing.
    pub notes: Vec<String>,
    /// What makes it another job; needs `--accept-changes`.
    pub refusals: Vec<String>,
}

impl Comparison {
    /// Whether nothing differs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.refusals.is_empty()
    }
}

impl JobShape {
    /// A short checksum for logs. Two shapes that are equal have the same.
    #[must_use]
    pub fn hash(&self) -> u32 {
        let text = serde_json::to_string(self).expect("strings and maps with string keys always serialise");
        crc32c::crc32c(text.as_bytes())
    }

    /// How this job differs from `old`, the one that the checkpoint knows.
    #[must_use]
    pub fn compare(&self, old: &Self) -> Comparison {
        let mut found = Comparison::default();
        let mut refuse = |what: &str, old: &dyn std::fmt::Display, new: &dyn std::fmt::Display| {
            found
                .refusals
                .push(format!("{what}: `{old}` in the checkpoint, `{new}` now"));
        };
        if self.job != old.job {
            refuse("job name", &old.job, &self.job);
        }
        if self.sink != old.sink {
            refuse("sink format", &old.sink, &self.sink);
        }
        if self.output_mode != old.output_mode {
            refuse("output mode", &old.output_mode, &self.output_mode);
        }
        for (name, before) in &old.sources {
            match self.sources.get(name) {
                None => refuse(&format!("source `{name}`"), before, &"absent"),
                Some(now) if now != before => refuse(&format!("source `{name}`"), before, now),
                Some(_) => {}
            }
        }
        for (name, now) in self
            .sources
            .iter()
            .filter(|(name, _)| !old.sources.contains_key(name))
        {
            refuse(&format!("source `{name}`"), &"absent", now);
        }
        if normal(&self.sql) != normal(&old.sql) {
            found.notes.push(format!(
                "SQL: `{}` before, `{}` now",
                normal(&old.sql),
                normal(&self.sql)
            ));
        }
        if self.schema != old.schema {
            let (before, now) = (old.schema.join(", "), self.schema.join(", "));
            found
                .notes
                .push(format!("output columns: `{before}` before, `{now}` now"));
        }
        found
    }
}

/// SQL on one line: layout is no difference.
fn normal(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> JobShape {
        let messages = SourceName::new("messages").expect("a name");
        JobShape {
            job: "char-count".into(),
            sources: [(messages, "KafkaV2[Subscribe[t]]".to_owned())].into(),
            sql: "SELECT a\n  FROM messages".into(),
            schema: vec!["a Utf8".into()],
            sink: "console".into(),
            output_mode: OutputMode::Append,
        }
    }

    #[test]
    fn a_new_version_may_change_sql_and_columns() {
        let mut new = shape();
        new.sql = "SELECT a,  b FROM messages".into();
        new.schema.push("b Int64".into());
        let found = new.compare(&shape());
        assert_eq!((found.notes.len(), found.refusals.len()), (2, 0));
        assert!(
            found.notes[0].contains("SELECT a, b FROM messages"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn layout_of_sql_is_no_difference() {
        let mut new = shape();
        new.sql = "SELECT a FROM messages".into();
        assert!(new.compare(&shape()).is_empty());
        assert_ne!(new.hash(), shape().hash());
    }

    #[test]
    fn another_job_is_refused_with_each_difference() {
        let mut new = shape();
        new.job = "other".into();
        new.sink = "kafka".into();
        new.output_mode = OutputMode::Complete;
        new.sources.clear();
        new.sources
            .insert(SourceName::new("other").expect("a name"), "x".into());
        let found = new.compare(&shape());
        assert_eq!(found.refusals.len(), 5, "{:?}", found.refusals);
        let mut moved = shape();
        moved
            .sources
            .values_mut()
            .for_each(|source| *source = "KafkaV2[Subscribe[u]]".into());
        assert_eq!(moved.compare(&shape()).refusals.len(), 1);
    }
}
