//! A scalar function made of a closure over arrays.

use baton_core::arrow::array::{Array, ArrayRef};
use baton_core::arrow::schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    expr::ScalarFunction,
};
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
    body: Body,
}

impl Kernel {
    fn new(name: String, volatility: Volatility, arguments: usize, returns: DataType, body: Body) -> Self {
        let signature = match arguments {
            0 => Signature::nullary(volatility),
            count => Signature::any(count, volatility),
        };
        Self {
            name,
            signature,
            returns,
            body,
        }
    }
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

fn call(kernel: Kernel, args: Vec<Expr>) -> Expr {
    let function = Arc::new(ScalarUDF::new_from_impl(kernel));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
}

/// A call of a pure function that takes its arguments as they come, constants unexpanded.
pub(super) fn columnar(
    name: impl Into<String>,
    returns: DataType,
    args: Vec<Expr>,
    body: impl Fn(&[ColumnarValue], usize) -> Result<ColumnarValue> + Send + Sync + 'static,
) -> Expr {
    call(
        Kernel::new(
            name.into(),
            Volatility::Immutable,
            args.len(),
            returns,
            Arc::new(body),
        ),
        args,
    )
}

/// A call of a pure function over arrays of one length; constants alone are computed once.
pub(super) fn arrays(
    name: impl Into<String>,
    returns: DataType,
    args: Vec<Expr>,
    body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Expr {
    columnar(name, returns, args, move |args, rows| {
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
        Kernel::new(name.into(), Volatility::Volatile, 0, returns, body),
        Vec::new(),
    )
}

/// A failure on a row's data, under the name that Spark has for it.
pub(super) fn failed(condition: &str, text: impl fmt::Display) -> DataFusionError {
    DataFusionError::Execution(format!("[{condition}] {text}"))
}
