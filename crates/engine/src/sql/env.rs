//! What expressions are bound against beside their columns: functions, the batch's clock, counters.

use datafusion::logical_expr::{HigherOrderUDF, ScalarUDF};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Shared by all expressions of a compiled query.
pub(super) struct Env {
    /// Replacement characters put in since somebody asked.
    pub(super) replaced: Arc<AtomicU64>,
    /// The batch's time, in microseconds since the epoch: the same in all rows.
    pub(super) now_micros: Arc<AtomicI64>,
    library: Arc<Library>,
}

/// DataFusion's functions, Spark's before its own.
pub(super) struct Library {
    spark: HashMap<String, Arc<ScalarUDF>>,
    core: HashMap<String, Arc<ScalarUDF>>,
    higher_order: HashMap<String, Arc<HigherOrderUDF>>,
}

impl Library {
    pub(super) fn new() -> Self {
        let mut core = datafusion::functions::all_default_functions();
        core.extend(datafusion::functions_nested::all_default_nested_functions());
        Self {
            spark: by_name(datafusion_spark::all_default_scalar_functions()),
            core: by_name(core),
            higher_order: datafusion::functions_nested::all_default_higher_order_functions()
                .into_iter()
                .map(|function| (function.name().to_owned(), function))
                .collect(),
        }
    }
}

fn by_name(functions: Vec<Arc<ScalarUDF>>) -> HashMap<String, Arc<ScalarUDF>> {
    let mut named = HashMap::new();
    for function in functions {
        for alias in function.aliases() {
            named.insert(alias.clone(), Arc::clone(&function));
        }
        named.insert(function.name().to_owned(), function);
    }
    named
}

impl Env {
    pub(super) fn new(library: Arc<Library>) -> Self {
        Self {
            replaced: Arc::default(),
            now_micros: Arc::default(),
            library,
        }
    }

    /// A function with Spark's name and results.
    pub(super) fn spark(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.library.spark.get(name).cloned()
    }

    /// A function with DataFusion's name and results.
    pub(super) fn core(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.library.core.get(name).cloned()
    }

    pub(super) fn higher_order(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.library.higher_order.get(name).cloned()
    }
}
