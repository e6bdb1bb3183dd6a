//! From a source's options to a stream of rows: Spark's `DataStreamReader` and `DataFrame`.

use baton_core::arrow::schema::SchemaRef;
use baton_core::{OptionMap, Source, SourceContext, SourceName};

use crate::session::Session;
use crate::sql::Compiler;
use crate::writer::DataStreamWriter;
use crate::{Error, Result};

/// The name of a source in SQL when it was not given one.
const DEFAULT_NAME: &str = "source";

/// Describes a source.
pub struct DataStreamReader {
    session: Session,
    name: String,
    format: String,
    options: OptionMap,
}

impl DataStreamReader {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            name: DEFAULT_NAME.to_owned(),
            format: String::new(),
            options: OptionMap::new(),
        }
    }

    /// The source's name in SQL and in the checkpoint; `source` if none is given. It must stay the same over restarts.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The registered format to read with.
    #[must_use]
    pub fn format(mut self, format: impl Into<String>) -> Self {
        self.format = format.into();
        self
    }

    /// Sets one option, under Spark's name, case-insensitive.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "`option(\"x\", 5)` reads better than `option(\"x\", &5)`"
    )]
    pub fn option(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        self.options.set(key, value.to_string());
        self
    }

    /// Reads the options; connects to nothing.
    ///
    /// # Errors
    /// An unknown format, or what the format refuses.
    pub fn load(self) -> Result<DataFrame> {
        let name = SourceName::new(&self.name)?;
        let context = SourceContext::new(name.clone(), self.session.inner().app_name.clone());
        let source = self
            .session
            .source_format(&self.format)?
            .source(&context, self.options);
        let source = source.map_err(|fault| Error::source_failed(&name, fault))?;
        Ok(DataFrame::over(self.session, name, source))
    }
}

/// A stream of rows that is not running yet.
pub struct DataFrame {
    pub(crate) session: Session,
    pub(crate) sources: Vec<(SourceName, Box<dyn Source>)>,
    pub(crate) sql: String,
}

impl DataFrame {
    fn over(session: Session, name: SourceName, source: Box<dyn Source>) -> Self {
        let sql = format!("SELECT * FROM {name}");
        Self {
            session,
            sources: vec![(name, source)],
            sql,
        }
    }

    /// The rows' columns.
    ///
    /// # Errors
    /// What is wrong with the SQL so far.
    pub fn schema(&self) -> Result<SchemaRef> {
        let schemas: Vec<_> = self
            .sources
            .iter()
            .map(|(name, source)| (name.clone(), source.schema()))
            .collect();
        Ok(Compiler::new(&schemas)?.compile(&self.sql)?.schema())
    }

    /// The query so far, as SQL over the sources' names.
    #[must_use]
    pub fn to_sql(&self) -> &str {
        &self.sql
    }

    /// Replaces the columns by SQL expressions, as Spark's `selectExpr`.
    ///
    /// # Errors
    /// What is wrong with an expression.
    pub fn select_expr<E: AsRef<str>>(self, expressions: impl IntoIterator<Item = E>) -> Result<Self> {
        let list: Vec<String> = expressions.into_iter().map(|e| e.as_ref().to_owned()).collect();
        let list = list.join(", ");
        self.derive(|from| format!("SELECT {list} FROM ({from})"))
    }

    /// Adds a column, or replaces the one of that name, as Spark's `withColumn`.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn with_column(self, name: &str, expression: &str) -> Result<Self> {
        let schema = self.schema()?;
        let mut replaced = false;
        let mut list: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| {
                if field.name().eq_ignore_ascii_case(name) {
                    replaced = true;
                    format!("{expression} AS {}", quoted(name))
                } else {
                    quoted(field.name())
                }
            })
            .collect();
        if !replaced {
            list.push(format!("{expression} AS {}", quoted(name)));
        }
        let list = list.join(", ");
        self.derive(|from| format!("SELECT {list} FROM ({from})"))
    }

    /// Keeps the rows for which the condition is true.
    ///
    /// # Errors
    /// What is wrong with the condition.
    pub fn filter(self, condition: &str) -> Result<Self> {
        self.derive(|from| format!("SELECT * FROM ({from}) WHERE {condition}"))
    }

    /// Replaces the query by SQL over the sources' names (see [`DataStreamReader::name`]).
    ///
    /// # Errors
    /// What is wrong with the SQL.
    pub fn sql(self, sql: &str) -> Result<Self> {
        self.derive(|_| sql.to_owned())
    }

    /// Appends the rows of another stream of the same columns. Their sources need different names.
    ///
    /// # Errors
    /// A name that both have, or columns that do not match.
    pub fn union_all(mut self, other: Self) -> Result<Self> {
        for (name, source) in other.sources {
            if self.sources.iter().any(|(ours, _)| *ours == name) {
                let rule = "a name of its own for each source; set it with `name`";
                return Err(baton_core::Error::InvalidName {
                    name: name.to_string(),
                    rule,
                }
                .into());
            }
            self.sources.push((name, source));
        }
        let right = other.sql;
        self.derive(|left| format!("SELECT * FROM ({left}) UNION ALL SELECT * FROM ({right})"))
    }

    /// Begins the description of where the rows go.
    #[must_use]
    pub fn write_stream(self) -> DataStreamWriter {
        DataStreamWriter::new(self)
    }

    /// Checked at each step, so that an error names the step that brought it.
    fn derive(mut self, sql: impl FnOnce(&str) -> String) -> Result<Self> {
        self.sql = sql(&self.sql);
        self.schema()?;
        Ok(self)
    }
}

/// A name as SQL takes it, whatever characters it has.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
