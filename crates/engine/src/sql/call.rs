//! Calls of functions: their arguments, lambdas, and who computes them.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::expr::{HigherOrderFunction, Lambda, ScalarFunction};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, HigherOrderUDF, ScalarUDF};
use datafusion::sql::sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};
use std::sync::Arc;

use super::error::{Error, Place};
use super::expression::{Binder, unsupported};
use super::functions::{self, Call};
use super::scope::{Bound, place_of};
use super::streamable;
use super::types::{is_string, list_of, spark_name};

impl Binder<'_> {
    pub(super) fn function(&mut self, function: &ast::Function, place: Place) -> Result<Bound, Error> {
        let name = function.name.to_string().replace('`', "").to_ascii_lowercase();
        streamable::check_function(&name, function)?;
        let list = arguments(&name, function)?;
        if matches!(name.as_str(), "transform" | "filter" | "exists") {
            return self.higher_order(&name, &list, place);
        }
        if name == "struct" {
            let values: Vec<ast::Expr> = list.into_iter().cloned().collect();
            return self.structure(&values);
        }
        if matches!(
            name.as_str(),
            "explode" | "explode_outer" | "posexplode" | "inline" | "stack"
        ) {
            return Err(Error::Unsupported {
                what: format!("{name} inside of an expression"),
                place,
                hint: "explode(array) may stand as a column of SELECT or in LATERAL VIEW".to_owned(),
            });
        }
        let args = self.bind_all(&list)?;
        self.apply(&name, args, place)
    }

    /// `transform(array, x -> …)` and its like.
    fn higher_order(&mut self, name: &str, list: &[&ast::Expr], place: Place) -> Result<Bound, Error> {
        let mismatch = |reason: &str| Error::Mismatch {
            what: name.to_owned(),
            place,
            reason: reason.to_owned(),
        };
        let [array, ast::Expr::Lambda(lambda)] = list else {
            return Err(mismatch("takes an array and a lambda like x -> x > 1"));
        };
        let array = self.bind(array)?;
        let DataType::List(item) = &array.ty else {
            return Err(mismatch(&format!(
                "takes an array, not {}",
                spark_name(&array.ty)
            )));
        };
        let [parameter] = lambda.params.as_ref() else {
            return Err(mismatch("takes a lambda of one parameter"));
        };
        let parameter = parameter.name.value.clone();
        self.lambdas.push(Arc::new(Field::new(
            parameter.clone(),
            item.data_type().clone(),
            true,
        )));
        let body = self.bind(&lambda.body);
        self.lambdas.pop();
        let body = body?;
        let (udf, body, ty) = match name {
            "transform" => ("array_transform", body.expr, list_of(body.ty)),
            "filter" => (
                "array_filter",
                self.as_type(body, &DataType::Boolean, name, place)?,
                array.ty.clone(),
            ),
            _ => (
                "array_any_match",
                self.as_type(body, &DataType::Boolean, name, place)?,
                DataType::Boolean,
            ),
        };
        let udf: Arc<HigherOrderUDF> = self
            .env
            .higher_order(udf)
            .ok_or_else(|| unsupported(&format!("function {name}"), place))?;
        let lambda = Expr::Lambda(Lambda::new(vec![parameter], body));
        let expr = Expr::HigherOrderFunction(HigherOrderFunction::new(udf, vec![array.expr, lambda]));
        Ok(Bound { expr, ty })
    }

    /// Calls a function of Spark's by its lower-case name.
    pub(super) fn apply(&self, name: &str, args: Vec<Bound>, place: Place) -> Result<Bound, Error> {
        functions::apply(&Call {
            name,
            args,
            place,
            binder: self,
        })
    }

    pub(super) fn core_call(&self, name: &str, args: Vec<Expr>, place: Place) -> Result<Bound, Error> {
        let udf = self
            .env
            .core(name)
            .ok_or_else(|| unsupported(&format!("function {name}"), place))?;
        self.udf_call(udf, args, place)
    }

    pub(super) fn spark_call(&self, name: &str, args: Vec<Expr>, place: Place) -> Result<Bound, Error> {
        let udf = self
            .env
            .spark(name)
            .ok_or_else(|| unsupported(&format!("function {name}"), place))?;
        self.udf_call(udf, args, place)
    }

    fn udf_call(&self, udf: Arc<ScalarUDF>, args: Vec<Expr>, place: Place) -> Result<Bound, Error> {
        let name = udf.name().to_owned();
        let expr = Expr::ScalarFunction(ScalarFunction::new_udf(udf, args));
        let ty = expr
            .get_type(self.schema.as_ref())
            .map_err(|error| Error::Mismatch {
                what: name,
                place,
                reason: format!(
                    "does not take these arguments: {}",
                    error.strip_backtrace().lines().next().unwrap_or_default()
                ),
            })?;
        if is_string(&ty) && ty != DataType::Utf8 {
            let expr = Expr::Cast(Cast::new(Box::new(expr), DataType::Utf8));
            return Ok(Bound {
                expr,
                ty: DataType::Utf8,
            });
        }
        Ok(Bound { expr, ty })
    }
}

/// A function's arguments, where they are plain ones.
pub(super) fn arguments<'q>(name: &str, function: &'q ast::Function) -> Result<Vec<&'q ast::Expr>, Error> {
    let place = place_of(Some(function));
    let list = match &function.args {
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::Subquery(_) => return Err(streamable::subquery(place)),
        FunctionArguments::List(list) => list,
    };
    list.args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
            other => Err(unsupported(&format!("{name}({other})"), place)),
        })
        .collect()
}
