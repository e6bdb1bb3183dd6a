//! A planned query, bound to new streams for each batch.

use baton_core::arrow::array::{RecordBatch, RecordBatchOptions};
use baton_core::arrow::schema::SchemaRef;
use baton_core::{BatchStream, SourceName, Timestamp};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::Error;
use super::env::Env;
use super::scan::ScanExec;

/// A query that has been planned once and runs batch by batch.
#[derive(Debug)]
pub struct Query {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    /// With the names the user chose, which may repeat; the plan's own may not.
    schema: SchemaRef,
    sources: Vec<SourceName>,
    replaced: Arc<AtomicU64>,
    now_micros: Arc<AtomicI64>,
}

impl Query {
    pub(super) fn new(
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        schema: SchemaRef,
        env: &Env,
    ) -> Result<Self, Error> {
        let mut sources: Vec<SourceName> = Vec::new();
        let mut twice = None;
        plan.apply(|node| {
            if let Some(scan) = node.downcast_ref::<ScanExec>() {
                if sources.contains(scan.source()) {
                    twice = Some(scan.source().clone());
                }
                sources.push(scan.source().clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if let Some(name) = twice {
            return Err(Error::ReadTwice { name });
        }
        // What constants had replaced while they were folded is no row's.
        env.replaced.store(0, Ordering::Relaxed);
        Ok(Self {
            plan,
            context,
            schema,
            sources,
            replaced: Arc::clone(&env.replaced),
            now_micros: Arc::clone(&env.now_micros),
        })
    }

    /// The columns of the rows it makes.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The plan, for people: one operator a line, the last to run first.
    #[must_use]
    pub fn explain(&self) -> String {
        displayable(self.plan.as_ref()).indent(false).to_string()
    }

    /// The sources it reads; a source of the job that the SQL does not name is not among them.
    #[must_use]
    pub fn sources(&self) -> &[SourceName] {
        &self.sources
    }

    /// Binds the plan to a batch's streams and returns one stream of rows for each of its partitions. Nothing is read
    /// before they are polled; an error of a source passes through as `DataFusionError::External`. `now` is what
    /// `current_timestamp()` is in all rows of the batch.
    ///
    /// # Errors
    /// [`Error::NotBound`] if a source that the query reads has no entry, [`Error::Plan`] if an operator cannot start.
    pub fn run(
        &self,
        now: Timestamp,
        mut inputs: HashMap<SourceName, Vec<BatchStream>>,
    ) -> Result<Vec<SendableRecordBatchStream>, Error> {
        if let Some(name) = self.sources.iter().find(|name| !inputs.contains_key(name)) {
            return Err(Error::NotBound { name: name.clone() });
        }
        self.now_micros
            .store(now.0.saturating_mul(1_000), Ordering::Relaxed);
        let bound = Arc::clone(&self.plan).transform_up(|node| {
            let Some(scan) = node.downcast_ref::<ScanExec>() else {
                return Ok(Transformed::no(node));
            };
            let mut streams = inputs.remove(scan.source()).unwrap_or_default();
            if streams.is_empty() {
                streams.push(futures::stream::empty().boxed());
            }
            let bound: Arc<dyn ExecutionPlan> = Arc::new(scan.bound(streams));
            Ok(Transformed::yes(bound))
        })?;
        let plan = bound.data;
        (0..plan.output_partitioning().partition_count())
            .map(|partition| {
                let rows = plan.execute(partition, Arc::clone(&self.context))?;
                Ok(self.named(rows))
            })
            .collect()
    }

    /// How many replacement characters casts of binary to string have put in since the last call.
    #[must_use]
    pub fn take_replaced_characters(&self) -> u64 {
        self.replaced.swap(0, Ordering::Relaxed)
    }

    /// Gives the rows the names that the user chose.
    fn named(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let rows = rows.map(move |batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(Arc::clone(&schema), batch.columns().to_vec(), &options)
                .map_err(DataFusionError::from)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
