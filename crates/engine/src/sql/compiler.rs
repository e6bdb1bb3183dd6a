//! From SQL text to a planned query.

use baton_core::SourceName;
use baton_core::arrow::schema::{Schema, SchemaRef};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::dialect;
use super::env::{Env, Library};
use super::guard::guarded;
use super::relation::Relations;
use super::{Error, Query};

/// Compiles SQL over sources.
pub struct Compiler {
    sources: Vec<(SourceName, SchemaRef)>,
    library: Arc<Library>,
    state: SessionState,
}

impl Compiler {
    /// Makes the sources' names and columns known.
    ///
    /// # Errors
    /// [`Error::Ambiguous`], if two sources have names that differ in case only.
    pub fn new(sources: &[(SourceName, SchemaRef)]) -> Result<Self, Error> {
        for (index, (name, _)) in sources.iter().enumerate() {
            let name = name.to_string();
            let same = sources[..index]
                .iter()
                .find(|(other, _)| other.to_string().eq_ignore_ascii_case(&name));
            if let Some((other, _)) = same {
                return Err(Error::Ambiguous {
                    candidates: format!("source `{other}` or source `{name}`"),
                    name,
                    place: super::Place::default(),
                });
            }
        }
        // One partition in the plan stands for as many as a batch brings: no operator may mix them.
        let config = SessionConfig::new().with_target_partitions(1);
        Ok(Self {
            sources: sources.to_vec(),
            library: Arc::new(Library::new()),
            state: SessionStateBuilder::new_with_default_features()
                .with_config(config)
                .build(),
        })
    }

    /// Plans and type-checks.
    ///
    /// # Errors
    /// What is wrong with the SQL, or the operator that cannot be streamed.
    pub fn compile(&self, sql: &str) -> Result<Query, Error> {
        let tree = dialect::parse(sql)?;
        let env = Env::new(Arc::clone(&self.library));
        let relations = Relations {
            env: &env,
            sources: &self.sources,
        };
        let relation = relations.query(&tree)?;
        let plan = guarded(self.state.optimize(&relation.plan)?)?;
        let plan = ready(
            self.state
                .query_planner()
                .create_physical_plan(&plan, &self.state),
        )?;
        let planned = plan.schema();
        let fields: Vec<_> = planned
            .fields()
            .iter()
            .zip(&relation.scope.columns)
            .map(|(field, column)| field.as_ref().clone().with_name(&column.name))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        Query::new(plan, self.state.task_ctx(), schema, &env)
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
