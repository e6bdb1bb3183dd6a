//! A scalar function made of a closure over arrays.

use baton_core::arrow::array::{Array, ArrayRef};
use baton_core::arrow::schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    expr::ScalarFunction,
};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

type Body = Arc<dyn Fn(&[ColumnarValue], usize) -> Result<ColumnarValue> + Send + Sync>;

/// Two kernels of one name and one result type are the same function: whatever a closure captures and differs by must
/// be in the name. The planner evaluates an expression once where it stands twice because of that.
pub(super) struct Kernel {
    name: String,
    signature: Signature,
    returns: DataType,
    /// Whether some values have no result, so that it may run only on rows that ask for it.
    can_fail: bool,
    body: Body,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.returns == other.returns
    }
}

impl Eq for Kernel {}

impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.returns.hash(state);
    }
}

impl ScalarUDFImpl for Kernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.body)(&args.args, args.number_rows)
    }
}

fn call(
    name: String,
    volatility: Volatility,
    can_fail: bool,
    returns: DataType,
    args: Vec<Expr>,
    body: Body,
) -> Expr {
    let signature = match args.len() {
        0 => Signature::nullary(volatility),
        count => Signature::any(count, volatility),
    };
    let kernel = Kernel {
        name,
        signature,
        returns,
        can_fail,
        body,
    };
    let function = Arc::new(ScalarUDF::new_from_impl(kernel));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
}

/// Whether an expression fails on some rows.
pub(super) fn can_fail(expr: &Expr) -> bool {
    let found = expr.exists(|node| {
        let Expr::ScalarFunction(function) = node else {
            return Ok(false);
        };
        let implementation: &dyn Any = function.func.inner().as_ref();
        Ok(implementation
            .downcast_ref::<Kernel>()
            .is_some_and(|kernel| kernel.can_fail))
    });
    found.unwrap_or(true)
}

/// A call of a pure function that fails on some values and takes its arguments as they come, constants unexpanded.
pub(super) fn failing_columnar(
    name: impl Into<String>,
    returns: DataType,
    args: Vec<Expr>,
    body: impl Fn(&[ColumnarValue]) -> Result<ColumnarValue> + Send + Sync + 'static,
) -> Expr {
    let body: Body = Arc::new(move |args, _| body(args));
    call(name.into(), Volatility::Immutable, true, returns, args, body)
}

/// A call of a pure function over arrays of one length; constants alone are computed once.
pub(super) fn arrays(
    name: impl Into<String>,
    returns: DataType,
    args: Vec<Expr>,
    body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Expr {
    call(
        name.into(),
        Volatility::Immutable,
        false,
        returns,
        args,
        over_arrays(body),
    )
}

/// As [`arrays`], of a function that fails on some values, if it does.
pub(super) fn failing_arrays(
    can_fail: bool,
    name: impl Into<String>,
    returns: DataType,
    args: Vec<Expr>,
    body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Expr {
    call(
        name.into(),
        Volatility::Immutable,
        can_fail,
        returns,
        args,
        over_arrays(body),
    )
}

fn over_arrays(body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static) -> Body {
    Arc::new(move |args, rows| {
        let constant = args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { rows };
        let expanded: Result<Vec<ArrayRef>> = args.iter().map(|arg| arg.to_array(rows)).collect();
        let result = body(&expanded?)?;
        debug_assert_eq!(result.len(), rows, "a function keeps the number of rows");
        if constant {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?))
        } else {
            Ok(ColumnarValue::Array(result))
        }
    })
}

/// A call whose value may differ each time; the planner keeps its hands off.
pub(super) fn volatile(
    name: impl Into<String>,
    returns: DataType,
    body: impl Fn(usize) -> Result<ColumnarValue> + Send + Sync + 'static,
) -> Expr {
    let body: Body = Arc::new(move |_, rows| body(rows));
    call(
        name.into(),
        Volatility::Volatile,
        false,
        returns,
        Vec::new(),
        body,
    )
}

/// A failure on a row's data, under the name that Spark has for it.
pub(super) fn failed(condition: &str, text: impl fmt::Display) -> DataFusionError {
    DataFusionError::Execution(format!("[{condition}] {text}"))
}
