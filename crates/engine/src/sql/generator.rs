//! Functions that make several rows of one: `explode` and sliding windows.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast;

use super::call::arguments;
use super::error::Error;
use super::expression::Binder;
use super::functions::window;
use super::scope::place_of;
use super::types::spark_name;

/// An array of which each element becomes a row.
#[derive(Debug)]
pub(super) struct Generator {
    pub(super) array: Expr,
    /// Whether a null or empty array gives a row of null.
    pub(super) outer: bool,
    /// The column's name where the user gave none.
    pub(super) name: &'static str,
}

/// The generator that an expression is, if it is one.
pub(super) fn find(binder: &mut Binder<'_>, expr: &ast::Expr) -> Result<Option<Generator>, Error> {
    let ast::Expr::Function(function) = expr else {
        return Ok(None);
    };
    let name = function.name.to_string().to_ascii_lowercase();
    let place = place_of(Some(expr));
    match name.as_str() {
        "explode" | "explode_outer" => {
            let list = arguments(&name, function)?;
            let [argument] = list.as_slice() else {
                return Err(Error::Mismatch {
                    what: name,
                    place,
                    reason: "takes one array".to_owned(),
                });
            };
            let bound = binder.bind(argument)?;
            if !matches!(bound.ty, DataType::List(_)) {
                return Err(Error::Mismatch {
                    reason: format!("takes an array, not {}", spark_name(&bound.ty)),
                    what: name,
                    place,
                });
            }
            Ok(Some(Generator {
                array: bound.expr,
                outer: name == "explode_outer",
                name: "col",
            }))
        }
        "window" => {
            let list = arguments(&name, function)?;
            if list.len() < 3 {
                return Ok(None);
            }
            let args = binder.bind_all(&list)?;
            let array = window::sliding(binder.env, args, place)?;
            Ok(Some(Generator {
                array,
                outer: false,
                name: "window",
            }))
        }
        _ => Ok(None),
    }
}
