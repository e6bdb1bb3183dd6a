//! The leaf of a plan: a place into which a batch's streams are put.

use baton_core::arrow::schema::SchemaRef;
use baton_core::{BatchStream, SourceName};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A source as the planner sees it: a name and columns, no rows yet.
#[derive(Debug)]
pub(super) struct SourceTable {
    name: SourceName,
    schema: SchemaRef,
}

impl SourceTable {
    pub(super) const fn new(name: SourceName, schema: SchemaRef) -> Self {
        Self { name, schema }
    }
}

#[async_trait::async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = projection.cloned();
        let schema = match &projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        Ok(Arc::new(ScanExec::new(
            self.name.clone(),
            schema,
            projection,
            Vec::new(),
        )))
    }
}

/// Reads one source's streams of one batch. Each stream can be taken once.
pub(super) struct ScanExec {
    name: SourceName,
    schema: SchemaRef,
    projection: Option<Vec<usize>>,
    streams: Mutex<Vec<Option<BatchStream>>>,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    /// A plan's scan has no streams and stands for one partition until [`ScanExec::bound`] gives it some.
    fn new(
        name: SourceName,
        schema: SchemaRef,
        projection: Option<Vec<usize>>,
        streams: Vec<BatchStream>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(streams.len().max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            name,
            schema,
            projection,
            streams: Mutex::new(streams.into_iter().map(Some).collect()),
            properties: Arc::new(properties),
        }
    }

    pub(super) const fn source(&self) -> &SourceName {
        &self.name
    }

    /// The same scan over a batch's streams, one partition each.
    pub(super) fn bound(&self, streams: Vec<BatchStream>) -> Self {
        Self::new(
            self.name.clone(),
            Arc::clone(&self.schema),
            self.projection.clone(),
            streams,
        )
    }
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanExec")
            .field("name", &self.name)
            .field("projection", &self.projection)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        write!(f, "Scan: {} [{}]", self.name, columns.join(", "))
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = streams.get_mut(partition).and_then(Option::take).ok_or_else(|| {
            DataFusionError::Internal(format!(
                "stream {partition} of source `{}` is not bound or was taken",
                self.name
            ))
        })?;
        let projection = self.projection.clone();
        let rows = stream.map(move |batch| {
            let batch = batch.map_err(|fault| DataFusionError::External(Box::new(fault)))?;
            match &projection {
                Some(columns) => Ok(batch.project(columns)?),
                None => Ok(batch),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            rows,
        )))
    }
}
