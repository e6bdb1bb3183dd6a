//! Spark's functions by name. What DataFusion has with Spark's results is taken from there, the rest is here.

pub(super) mod collection;
mod conditional;
mod datetime;
mod hash;
mod math;
mod pattern;
mod regexp;
mod string;
mod timestamp;
pub(super) mod window;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::error::{Error, Place};
use super::expression::{Binder, literal_integer, literal_text};
use super::scope::{Bound, nearest};
use super::types::{spark_name, timestamp};

/// A call whose arguments are bound.
pub(super) struct Call<'a> {
    /// In lower case.
    pub(super) name: &'a str,
    pub(super) args: Vec<Bound>,
    pub(super) place: Place,
    pub(super) binder: &'a Binder<'a>,
}

/// Functions that are taken from datafusion-spark as they are.
#[rustfmt::skip]
const FROM_SPARK: &[&str] = &[
    "bit_count", "bit_get", "factorial", "format_string", "hex", "is_valid_utf8", "luhn_check",
    "make_valid_utf8", "map_from_arrays", "map_from_entries", "parse_url", "printf", "quote", "rint", "sha2",
    "shiftleft", "shiftright", "shiftrightunsigned", "slice", "space", "str_to_map", "try_parse_url",
    "try_url_decode", "unbase64", "unhex", "url_decode", "url_encode", "width_bucket", "xxhash64",
];

/// Functions that are taken from DataFusion as they are.
#[rustfmt::skip]
const FROM_CORE: &[&str] = &[
    "array_distinct", "array_except", "array_intersect", "array_max", "array_min", "array_repeat",
    "array_union", "flatten", "map_entries", "map_keys", "map_values", "overlay",
];

/// Functions of a kind: none if the name is not among them.
type Family = fn(&Call<'_>) -> Result<Option<Bound>, Error>;

/// Calls a function, or says which there is with a name like that.
pub(super) fn apply(call: &Call<'_>) -> Result<Bound, Error> {
    let families: &[Family] = &[
        string::apply,
        regexp::apply,
        math::apply,
        datetime::apply,
        timestamp::apply,
        window::apply,
        collection::apply,
        conditional::apply,
        hash::apply,
    ];
    for family in families {
        if let Some(bound) = family(call)? {
            return Ok(bound);
        }
    }
    if FROM_SPARK.contains(&call.name) {
        return call.spark(call.name);
    }
    if FROM_CORE.contains(&call.name) {
        return call.core(call.name);
    }
    Err(Error::UnknownFunction {
        name: call.name.to_owned(),
        place: call.place,
        hint: nearest(call.name, &known()),
    })
}

/// All names, in order.
fn known() -> Vec<&'static str> {
    let mut names = [
        string::NAMES,
        regexp::NAMES,
        math::NAMES,
        datetime::NAMES,
        timestamp::NAMES,
        collection::NAMES,
        conditional::NAMES,
        hash::NAMES,
        FROM_SPARK,
        FROM_CORE,
    ]
    .concat();
    names.sort_unstable();
    names
}

impl Call<'_> {
    pub(super) fn exprs(&self) -> Vec<Expr> {
        self.args.iter().map(|arg| arg.expr.clone()).collect()
    }

    pub(super) fn core(&self, name: &str) -> Result<Bound, Error> {
        self.binder.core_call(name, self.exprs(), self.place)
    }

    pub(super) fn spark(&self, name: &str) -> Result<Bound, Error> {
        self.binder.spark_call(name, self.exprs(), self.place)
    }

    pub(super) fn mismatch(&self, reason: impl Into<String>) -> Error {
        Error::Mismatch {
            what: self.name.to_owned(),
            place: self.place,
            reason: reason.into(),
        }
    }

    pub(super) fn unsupported(&self, what: &str, hint: &str) -> Error {
        Error::Unsupported {
            what: format!("{what} of {}", self.name),
            place: self.place,
            hint: hint.to_owned(),
        }
    }

    /// Refuses a wrong number of arguments.
    pub(super) fn arity(&self, least: usize, most: usize) -> Result<(), Error> {
        if (least..=most).contains(&self.args.len()) {
            return Ok(());
        }
        let wanted = if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        };
        Err(self.mismatch(format!("takes {wanted} arguments, not {}", self.args.len())))
    }

    /// An argument as a type, by the casts that Spark puts in.
    pub(super) fn as_type(&self, index: usize, ty: &DataType) -> Result<Expr, Error> {
        let Some(arg) = self.args.get(index) else {
            return Err(self.mismatch(format!("lacks its argument {}", index + 1)));
        };
        self.binder.as_type(arg.clone(), ty, self.name, self.place)
    }

    pub(super) fn string(&self, index: usize) -> Result<Expr, Error> {
        self.as_type(index, &DataType::Utf8)
    }

    pub(super) fn long(&self, index: usize) -> Result<Expr, Error> {
        self.as_type(index, &DataType::Int64)
    }

    pub(super) fn double(&self, index: usize) -> Result<Expr, Error> {
        self.as_type(index, &DataType::Float64)
    }

    pub(super) fn date(&self, index: usize) -> Result<Expr, Error> {
        self.as_type(index, &DataType::Date32)
    }

    pub(super) fn timestamp(&self, index: usize) -> Result<Expr, Error> {
        self.as_type(index, &timestamp())
    }

    /// An argument that has to be a literal: text.
    pub(super) fn literal_text(&self, index: usize) -> Result<String, Error> {
        self.args
            .get(index)
            .and_then(|arg| literal_text(&arg.expr))
            .map(str::to_owned)
            .ok_or_else(|| {
                self.unsupported(
                    &format!("argument {} that is not a literal", index + 1),
                    "write text in quotes",
                )
            })
    }

    /// An argument that has to be a literal: a whole number.
    pub(super) fn literal_integer(&self, index: usize) -> Result<i64, Error> {
        self.args
            .get(index)
            .and_then(|arg| literal_integer(&arg.expr))
            .ok_or_else(|| {
                self.unsupported(
                    &format!("argument {} that is not a literal", index + 1),
                    "write a number",
                )
            })
    }

    pub(super) fn type_name(&self, index: usize) -> String {
        self.args
            .get(index)
            .map_or_else(String::new, |arg| spark_name(&arg.ty))
    }
}

#[cfg(test)]
mod tests {
    use baton_core::SourceName;
    use baton_core::arrow::schema::{DataType, Field, Schema};
    use std::sync::Arc;

    use super::known;
    use crate::sql::Compiler;

    #[test]
    fn each_name_is_a_function_and_no_arguments_make_it_panic() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
        let name = SourceName::new("t").expect("a name");
        let compiler = Compiler::new(&[(name, schema)]).expect("one source");
        let mut wrong = Vec::new();
        for function in known() {
            // Some take neither text nor null: they want numbers, literals, lambdas, arrays.
            for argument in ["a", "NULL", "1", "'x'", "array(1)"] {
                for count in 0..5 {
                    let call = format!("{function}({})", vec![argument; count].join(", "));
                    let compiled = compiler.compile(&format!("SELECT {call} FROM t"));
                    // What was let through has to be planned too.
                    if let Err(error) = compiled
                        && matches!(error.code(), "E0413" | "E0420")
                    {
                        wrong.push(format!("{call}: {error:?}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn each_name_is_in_the_documentation_and_none_stands_twice() {
        let page = include_str!("../../../../../docs/sql-differences.md");
        let names = known();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1], "is listed twice");
        }
        let missing: Vec<&str> = names
            .into_iter()
            .filter(|name| !page.contains(&format!("`{name}`")))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
