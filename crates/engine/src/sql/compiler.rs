//! From SQL text to a planned query.

use baton_core::SourceName;
use baton_core::arrow::schema::SchemaRef;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};

use super::scan::SourceTable;
use super::{Error, Query};

/// Compiles SQL over sources.
pub struct Compiler {
    context: SessionContext,
}

impl Compiler {
    /// Makes the sources' names and columns known.
    ///
    /// # Errors
    /// [`Error::Plan`], if two sources have one name.
    pub fn new(sources: &[(SourceName, SchemaRef)]) -> Result<Self, Error> {
        let mut config = SessionConfig::new().with_target_partitions(1);
        let options = config.options_mut();
        options.sql_parser.map_string_types_to_utf8view = false;
        options.sql_parser.enable_ident_normalization = false;
        let context = SessionContext::new_with_config(config);
        for (name, schema) in sources {
            let table = SourceTable::new(name.clone(), Arc::clone(schema));
            context.register_table(name.to_string().as_str(), Arc::new(table))?;
        }
        Ok(Self { context })
    }

    /// Plans and type-checks.
    ///
    /// # Errors
    /// What is wrong with the SQL, or the operator that cannot be streamed.
    pub fn compile(&self, sql: &str) -> Result<Query, Error> {
        let plan = ready(self.context.state().create_logical_plan(sql))?;
        let plan = ready(self.context.state().create_physical_plan(&plan))?;
        let schema = plan.schema();
        Query::new(plan, self.context.task_ctx(), schema, Arc::new(AtomicU64::new(0)))
    }
}

/// Runs a future that waits for nothing outside: planning is async only for catalogs that live elsewhere.
fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
