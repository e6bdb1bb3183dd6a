//! Where formats are registered and queries begin: Spark's `SparkSession`, as far as streaming needs it.

use baton_checkpoint::Deps;
use baton_core::{Clock, Rng, SinkFormat, SourceFormat, TokioClock, nearest};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::reader::DataStreamReader;
use crate::{Error, Result};

/// The formats and the name that queries share. Clones are handles of the same session.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) app_name: String,
    sources: BTreeMap<&'static str, Box<dyn SourceFormat>>,
    sinks: BTreeMap<&'static str, Box<dyn SinkFormat>>,
    pub(crate) deps: Deps,
}

/// Builds a [`Session`].
pub struct SessionBuilder {
    app_name: String,
    sources: BTreeMap<&'static str, Box<dyn SourceFormat>>,
    sinks: BTreeMap<&'static str, Box<dyn SinkFormat>>,
    clock: Option<Arc<dyn Clock>>,
    rng: Option<Arc<Rng>>,
}

/// Marks a format of sources in [`Format`].
#[derive(Debug)]
pub enum Reads {}

/// Marks a format of sinks in [`Format`].
#[derive(Debug)]
pub enum Writes {}

/// What [`SessionBuilder::register`] takes: a [`SourceFormat`] or a [`SinkFormat`]. `M` is [`Reads`] or [`Writes`] and
/// is found by the compiler; a type that is both is registered with `register::<Reads>` and `register::<Writes>`.
pub trait Format<M> {
    /// Enters itself into the builder.
    fn enter(self, builder: SessionBuilder) -> SessionBuilder;
}

impl<T: SourceFormat + 'static> Format<Reads> for T {
    fn enter(self, mut builder: SessionBuilder) -> SessionBuilder {
        builder.sources.insert(self.name(), Box::new(self));
        builder
    }
}

impl<T: SinkFormat + 'static> Format<Writes> for T {
    fn enter(self, mut builder: SessionBuilder) -> SessionBuilder {
        builder.sinks.insert(self.name(), Box::new(self));
        builder
    }
}

impl SessionBuilder {
    /// Names the application; queries without a name of their own are called so.
    #[must_use]
    pub fn app_name(mut self, name: impl Into<String>) -> Self {
        self.app_name = name.into();
        self
    }

    /// Makes a format known under its name; a later one of the same name replaces it.
    #[must_use]
    pub fn register<M>(self, format: impl Format<M>) -> Self {
        format.enter(self)
    }

    /// Replaces the clock, in tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Replaces the source of randomness, in tests.
    #[must_use]
    pub fn rng(mut self, rng: Arc<Rng>) -> Self {
        self.rng = Some(rng);
        self
    }

    /// The session.
    ///
    /// # Errors
    /// [`baton_core::Error::InvalidName`] for an application's name with other characters than `[A-Za-z0-9._-]`.
    pub fn build(self) -> Result<Session> {
        check_name(&self.app_name)?;
        let deps = Deps {
            clock: self.clock.unwrap_or_else(|| Arc::new(TokioClock::start())),
            rng: self.rng.unwrap_or_else(|| Arc::new(Rng::from_os())),
        };
        Ok(Session(Arc::new(Inner {
            app_name: self.app_name,
            sources: self.sources,
            sinks: self.sinks,
            deps,
        })))
    }
}

/// A query's name is part of client ids and metrics, which take no other characters.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(baton_core::Error::InvalidName {
            name: name.to_owned(),
            rule: "[A-Za-z0-9._-]+",
        }
        .into());
    }
    Ok(())
}

impl Session {
    /// A builder with nothing registered.
    #[must_use]
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            app_name: "baton".to_owned(),
            sources: BTreeMap::new(),
            sinks: BTreeMap::new(),
            clock: None,
            rng: None,
        }
    }

    /// Begins the description of a source.
    #[must_use]
    pub fn read_stream(&self) -> DataStreamReader {
        DataStreamReader::new(self.clone())
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(crate) fn source_format(&self, name: &str) -> Result<&dyn SourceFormat> {
        find(&self.0.sources, "source", name).map(AsRef::as_ref)
    }

    pub(crate) fn sink_format(&self, name: &str) -> Result<&dyn SinkFormat> {
        find(&self.0.sinks, "sink", name).map(AsRef::as_ref)
    }
}

fn find<'a, T>(formats: &'a BTreeMap<&'static str, T>, role: &'static str, name: &str) -> Result<&'a T> {
    if let Some(format) = formats.get(name.to_ascii_lowercase().as_str()) {
        return Ok(format);
    }
    let known: Vec<&str> = formats.keys().copied().collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => "; none is registered, see `Session::builder().register`".to_owned(),
        None => format!("; known are {}", known.join(", ")),
    };
    Err(Error::UnknownFormat {
        role,
        format: name.to_owned(),
        hint,
    })
}
