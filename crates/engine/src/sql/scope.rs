//! The columns that an expression can name.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Column;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{Ident, Spanned};

use super::error::{Error, Place};

/// An expression and its type.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) expr: Expr,
    pub(super) ty: DataType,
}

/// A column as the user sees it, and where the plan has it.
#[derive(Clone, Debug)]
pub(super) struct ScopeColumn {
    pub(super) qualifier: Option<String>,
    pub(super) name: String,
    pub(super) column: Column,
    pub(super) field: FieldRef,
}

/// What a name can mean. Names are compared without regard to case.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) columns: Vec<ScopeColumn>,
}

impl Scope {
    pub(super) fn has_qualifier(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.is_of(name))
    }

    /// The column of a name, with the number of parts that the name took; what follows are fields of a struct.
    pub(super) fn find(&self, parts: &[Ident]) -> Result<Option<(&ScopeColumn, usize)>, Error> {
        if let [qualifier, name, ..] = parts {
            let found = self.matching(name, |column| column.is_of(&qualifier.value));
            if let Some(column) = one_of(found, parts)? {
                return Ok(Some((column, 2)));
            }
        }
        let Some(name) = parts.first() else {
            return Ok(None);
        };
        let found = self.matching(name, |_| true);
        Ok(one_of(found, parts)?.map(|column| (column, 1)))
    }

    fn matching(&self, name: &Ident, keep: impl Fn(&ScopeColumn) -> bool) -> Vec<&ScopeColumn> {
        self.columns
            .iter()
            .filter(|column| keep(column) && column.name.eq_ignore_ascii_case(&name.value))
            .collect()
    }

    pub(super) fn unknown(&self, parts: &[Ident]) -> Error {
        let name = joined(parts);
        let known: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let wanted = parts.last().map_or("", |ident| ident.value.as_str());
        Error::UnknownColumn {
            place: start_of(parts),
            hint: nearest(wanted, &known),
            name,
        }
    }
}

impl ScopeColumn {
    pub(super) fn is_of(&self, qualifier: &str) -> bool {
        self.qualifier
            .as_ref()
            .is_some_and(|own| own.eq_ignore_ascii_case(qualifier))
    }
}

fn one_of<'a>(found: Vec<&'a ScopeColumn>, parts: &[Ident]) -> Result<Option<&'a ScopeColumn>, Error> {
    if found.len() < 2 {
        return Ok(found.first().copied());
    }
    let candidates: Vec<String> = found
        .iter()
        .map(|column| match &column.qualifier {
            Some(qualifier) => format!("`{qualifier}`.`{}`", column.name),
            None => format!("`{}`", column.name),
        })
        .collect();
    Err(Error::Ambiguous {
        name: joined(parts),
        place: start_of(parts),
        candidates: candidates.join(" or "),
    })
}

pub(super) fn joined(parts: &[Ident]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
    parts.join(".")
}

/// Where a name begins.
pub(super) fn start_of(parts: &[Ident]) -> Place {
    parts.first().map_or_else(Place::default, |ident| Place {
        line: ident.span.start.line,
        column: ident.span.start.column,
    })
}

pub(super) fn place_of<S: Spanned>(node: Option<&S>) -> Place {
    node.map_or_else(Place::default, |node| {
        let start = node.span().start;
        Place {
            line: start.line,
            column: start.column,
        }
    })
}

/// `; did you mean …?` for something close, otherwise what there is.
pub(super) fn nearest(wanted: &str, known: &[&str]) -> String {
    if let Some(name) = baton_core::nearest(wanted, known.iter().copied()) {
        return format!("; did you mean `{name}`?");
    }
    match known {
        [] => "; there is none".to_owned(),
        many if many.len() > 40 => String::new(),
        few => format!("; there are {}", few.join(", ")),
    }
}
