//! What is refused because one batch's rows are not enough for it.

use datafusion::sql::sqlparser::ast::{self, GroupByExpr, SetOperator, SetQuantifier};

use super::error::{Error, Place};
use super::scope::place_of;

#[rustfmt::skip]
const AGGREGATES: &[&str] = &[
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or",
    "bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if",
    "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "first_value", "grouping", "grouping_id",
    "histogram_numeric", "hll_sketch_agg", "kurtosis", "last", "last_value", "listagg", "max", "max_by",
    "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx", "percentile_cont",
    "percentile_disc", "regr_slope", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp",
    "string_agg", "sum", "try_avg", "try_sum", "var_pop", "var_samp", "variance",
];

#[rustfmt::skip]
const WINDOW_FUNCTIONS: &[&str] = &[
    "cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number",
];

fn refused(operator: &str, place: Place, hint: &str) -> Error {
    Error::NotStreamable {
        operator: operator.to_owned(),
        place,
        hint: hint.to_owned(),
    }
}

pub(super) fn join(place: Place) -> Error {
    refused("JOIN", place, "join where the rows are kept, behind the sink")
}

pub(super) fn subquery(place: Place) -> Error {
    refused(
        "a subquery in an expression",
        place,
        "only subqueries in FROM can be streamed; write the values as a list",
    )
}

pub(super) fn check_query(query: &ast::Query) -> Result<(), Error> {
    let place = place_of(Some(query.body.as_ref()));
    if query.with.as_ref().is_some_and(|with| with.recursive) {
        return Err(refused("WITH RECURSIVE", place, "write the steps out"));
    }
    if query.order_by.is_some() {
        return Err(refused(
            "ORDER BY",
            place,
            "leave it out: rows of one partition keep their order, and a stream has no end to sort by",
        ));
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err(refused(
            "LIMIT",
            place,
            "leave it out; maxOffsetsPerTrigger bounds a batch, and numRows what the console prints",
        ));
    }
    if !query.locks.is_empty()
        || query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty()
    {
        return Err(Error::Unsupported {
            what: "a clause after the SELECT".to_owned(),
            place,
            hint: "a job's sql ends with WHERE or UNION ALL".to_owned(),
        });
    }
    Ok(())
}

pub(super) fn check_set_operation(
    op: SetOperator,
    quantifier: SetQuantifier,
    place: Place,
) -> Result<(), Error> {
    match (op, quantifier) {
        (SetOperator::Union, SetQuantifier::All) => Ok(()),
        (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => Err(refused(
            "UNION",
            place,
            "UNION drops duplicates among all rows ever read; UNION ALL does not",
        )),
        (SetOperator::Union, _) => Err(Error::Unsupported {
            what: "UNION BY NAME".to_owned(),
            place,
            hint: "list the columns in one order on both sides and use UNION ALL".to_owned(),
        }),
        (op, _) => Err(refused(&op.to_string(), place, "only UNION ALL can be streamed")),
    }
}

pub(super) fn check_select(select: &ast::Select) -> Result<(), Error> {
    let place = place_of(Some(select));
    if select.distinct.is_some() {
        return Err(refused(
            "DISTINCT",
            place,
            "it would have to keep all rows ever read; drop duplicates behind the sink",
        ));
    }
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(list, modifiers) => !list.is_empty() || !modifiers.is_empty(),
    };
    if grouped || select.having.is_some() {
        return Err(refused(
            "GROUP BY",
            place,
            "aggregate behind the sink; aggregations over batches are not there yet",
        ));
    }
    if select.qualify.is_some() || !select.named_window.is_empty() {
        return Err(refused("a window function", place, "compute it behind the sink"));
    }
    if !select.sort_by.is_empty() {
        return Err(refused("SORT BY", place, "leave it out"));
    }
    if !select.cluster_by.is_empty() || !select.distribute_by.is_empty() {
        return Err(refused(
            "CLUSTER BY",
            place,
            "leave it out: rows stay in the streams that read them",
        ));
    }
    if select.into.is_some() {
        return Err(Error::NotAQuery {
            statement: "SELECT INTO".to_owned(),
        });
    }
    if select.top.is_some()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || select.exclude.is_some()
    {
        return Err(Error::Unsupported {
            what: "a clause of another dialect".to_owned(),
            place,
            hint: "write Spark's SQL".to_owned(),
        });
    }
    Ok(())
}

/// Refuses functions over more than one row.
pub(super) fn check_function(name: &str, function: &ast::Function) -> Result<(), Error> {
    let place = place_of(Some(function));
    if function.over.is_some() || WINDOW_FUNCTIONS.contains(&name) {
        return Err(refused(
            &format!("window function {name}"),
            place,
            "compute it behind the sink",
        ));
    }
    if AGGREGATES.contains(&name) {
        return Err(refused(
            &format!("aggregate {name}"),
            place,
            "aggregate behind the sink; aggregations over batches are not there yet",
        ));
    }
    Ok(())
}
