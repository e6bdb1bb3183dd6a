//! From the query's tree to a plan: FROM, WHERE, SELECT, UNION ALL. What needs more than a batch is refused here.

use baton_core::SourceName;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Column, NullHandling, UnnestOptions};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{self, SelectItem, SetExpr, TableFactor};
use std::sync::Arc;

use super::cast::implicit;
use super::env::Env;
use super::error::{Error, Place};
use super::expression::Binder;
use super::generator::{self, Generator};
use super::names;
use super::scan::SourceTable;
use super::scope::{Bound, Scope, ScopeColumn, nearest, place_of};
use super::streamable;
use super::types::{common, spark_name};

/// A plan and the names of what it makes.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) plan: LogicalPlan,
    pub(super) scope: Scope,
}

/// Binds relations. A WITH is put in where it is named.
pub(super) struct Relations<'a> {
    pub(super) env: &'a Env,
    pub(super) sources: &'a [(SourceName, SchemaRef)],
}

/// The WITHs in reach, the innermost last.
type Withs<'q> = Vec<(&'q ast::Cte, usize)>;

impl Relations<'_> {
    pub(super) fn query(&self, query: &ast::Query) -> Result<Relation, Error> {
        self.query_within(query, &Withs::new())
    }

    fn query_within<'q>(&self, query: &'q ast::Query, outer: &Withs<'q>) -> Result<Relation, Error> {
        streamable::check_query(query)?;
        let mut withs = outer.clone();
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            // Only those before it are in its reach.
            let reach = withs.len();
            withs.push((cte, reach));
        }
        self.body(&query.body, &withs)
    }

    fn body<'q>(&self, body: &'q SetExpr, withs: &Withs<'q>) -> Result<Relation, Error> {
        match body {
            SetExpr::Select(select) => self.select(select, withs),
            SetExpr::Query(query) => self.query_within(query, withs),
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                streamable::check_set_operation(*op, *set_quantifier, place_of(Some(left.as_ref())))?;
                let (left, right) = (self.body(left, withs)?, self.body(right, withs)?);
                self.union_all(left, right)
            }
            SetExpr::Values(_) => Err(unsupported(
                "VALUES",
                "a streaming query reads its rows from a source",
            )),
            other => Err(unsupported(
                &other.to_string(),
                "write SELECT … FROM a source of this job",
            )),
        }
    }

    fn union_all(&self, left: Relation, right: Relation) -> Result<Relation, Error> {
        let (ours, theirs) = (left.scope.columns.len(), right.scope.columns.len());
        if ours != theirs {
            return Err(Error::Mismatch {
                what: "UNION ALL".to_owned(),
                place: Place::default(),
                reason: format!("needs as many columns on both sides, but has {ours} and {theirs}"),
            });
        }
        let mut types = Vec::with_capacity(ours);
        for (a, b) in left.scope.columns.iter().zip(&right.scope.columns) {
            let (a_type, b_type) = (a.field.data_type(), b.field.data_type());
            types.push(common(a_type, b_type).ok_or_else(|| Error::Mismatch {
                what: "UNION ALL".to_owned(),
                place: Place::default(),
                reason: format!(
                    "cannot put `{}` ({}) and `{}` ({}) into one column; cast one of them",
                    a.name,
                    spark_name(a_type),
                    b.name,
                    spark_name(b_type)
                ),
            })?);
        }
        let names: Vec<String> = left
            .scope
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect();
        let (left, right) = (self.brought_to(left, &types)?, self.brought_to(right, &types)?);
        let plan = LogicalPlanBuilder::from(left).union(right)?.build()?;
        Ok(Relation::new(plan, names, None))
    }

    /// The relation's columns as types given, under names that a plan can have.
    fn brought_to(&self, relation: Relation, types: &[DataType]) -> Result<LogicalPlan, Error> {
        let mut items = Vec::with_capacity(types.len());
        for (column, ty) in relation.scope.columns.iter().zip(types) {
            let expr = Expr::Column(column.column.clone());
            let from = column.field.data_type();
            let expr = implicit(self.env, expr, from, ty).ok_or_else(|| Error::Mismatch {
                what: "UNION ALL".to_owned(),
                place: Place::default(),
                reason: format!("cannot bring {} to {}", spark_name(from), spark_name(ty)),
            })?;
            items.push((column.name.clone(), expr));
        }
        Ok(project(relation.plan, items)?)
    }

    fn select<'q>(&self, select: &'q ast::Select, withs: &Withs<'q>) -> Result<Relation, Error> {
        streamable::check_select(select)?;
        let [from] = select.from.as_slice() else {
            return Err(match select.from.first() {
                None => unsupported("a SELECT without FROM", "read from a source of this job"),
                Some(_) => streamable::join(place_of(select.from.get(1).map(|table| &table.relation))),
            });
        };
        if let Some(join) = from.joins.first() {
            return Err(streamable::join(place_of(Some(&join.relation))));
        }
        let mut relation = self.table(&from.relation, withs)?;
        for view in &select.lateral_views {
            relation = self.lateral_view(relation, view)?;
        }
        if let Some(condition) = &select.selection {
            let mut binder = Binder::new(self.env, &relation);
            let bound = binder.condition(condition)?;
            relation.plan = LogicalPlanBuilder::from(relation.plan).filter(bound)?.build()?;
        }
        self.projection(relation, &select.projection)
    }

    fn table<'q>(&self, factor: &'q TableFactor, withs: &Withs<'q>) -> Result<Relation, Error> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                sample: None,
                version: None,
                ..
            } => {
                let written = name.to_string().replace('`', "");
                let relation = self.named(&written, withs, place_of(Some(name)))?;
                let known_as = alias.as_ref().map_or(written, |alias| alias.name.value.clone());
                relation.known_as(known_as, alias.as_ref())
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                sample: None,
            } => {
                let relation = self.query_within(subquery, withs)?;
                match alias {
                    Some(alias) => relation.known_as(alias.name.value.clone(), Some(alias)),
                    None => Ok(relation),
                }
            }
            TableFactor::NestedJoin { .. } => Err(streamable::join(place_of(Some(factor)))),
            other => Err(unsupported(
                &format!("`{other}` in FROM"),
                "read from a source of this job or from a subquery",
            )),
        }
    }

    fn named<'q>(&self, name: &str, withs: &Withs<'q>, place: Place) -> Result<Relation, Error> {
        let with = withs
            .iter()
            .rev()
            .find(|(cte, _)| cte.alias.name.value.eq_ignore_ascii_case(name));
        if let Some((cte, reach)) = with {
            let reach: Withs<'q> = withs[..*reach].to_vec();
            let relation = self.query_within(&cte.query, &reach)?;
            return relation.known_as(name.to_owned(), Some(&cte.alias));
        }
        let source = self
            .sources
            .iter()
            .find(|(source, _)| source.to_string().eq_ignore_ascii_case(name));
        let Some((source, schema)) = source else {
            let mut known: Vec<String> = withs
                .iter()
                .map(|(cte, _)| cte.alias.name.value.clone())
                .collect();
            known.extend(self.sources.iter().map(|(source, _)| source.to_string()));
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(Error::UnknownTable {
                name: name.to_owned(),
                place,
                hint: nearest(name, &known),
            });
        };
        let table = provider_as_source(Arc::new(SourceTable::new(source.clone(), Arc::clone(schema))));
        let plan = LogicalPlanBuilder::scan(source.to_string(), table, None)?.build()?;
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Ok(Relation::new(plan, names, None))
    }

    fn lateral_view(&self, relation: Relation, view: &ast::LateralView) -> Result<Relation, Error> {
        let mut binder = Binder::new(self.env, &relation);
        let Some(generator) = generator::find(&mut binder, &view.lateral_view)? else {
            return Err(unsupported(
                &format!("LATERAL VIEW {}", view.lateral_view),
                "LATERAL VIEW takes explode(array)",
            ));
        };
        let name = view
            .lateral_col_alias
            .first()
            .map_or_else(|| generator.name.to_owned(), |alias| alias.value.clone());
        let outer = view.outer || generator.outer;
        let view_name = view.lateral_view_name.to_string();
        let before = relation.scope.columns.clone();
        let items = before
            .iter()
            .map(|column| (column.name.clone(), Expr::Column(column.column.clone())))
            .chain([(name.clone(), generator.array)])
            .collect();
        let mut names: Vec<String> = before.iter().map(|column| column.name.clone()).collect();
        names.push(name);
        let plan = unnested(project(relation.plan, items)?, before.len(), outer)?;
        let mut relation = Relation::new(plan, names, None);
        for (column, old) in relation.scope.columns.iter_mut().zip(&before) {
            column.qualifier.clone_from(&old.qualifier);
        }
        if let Some(last) = relation.scope.columns.last_mut() {
            last.qualifier = Some(view_name);
        }
        Ok(relation)
    }

    fn projection(&self, relation: Relation, list: &[SelectItem]) -> Result<Relation, Error> {
        let mut items: Vec<(String, Bound)> = Vec::new();
        let mut generated: Option<(usize, Generator)> = None;
        let mut binder = Binder::new(self.env, &relation);
        for item in list {
            let (expr, alias) = match item {
                SelectItem::Wildcard(options) => {
                    items.extend(wildcard(&relation.scope, None, options)?);
                    continue;
                }
                SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let name = name.to_string().replace('`', "");
                    items.extend(wildcard(&relation.scope, Some(&name), options)?);
                    continue;
                }
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
                other => return Err(unsupported(&format!("`{other}`"), "give one alias")),
            };
            if let Some(generator) = generator::find(&mut binder, expr)? {
                if generated.is_some() {
                    return Err(unsupported(
                        "a second explode in one SELECT",
                        "put it into a subquery around the first",
                    ));
                }
                let name = alias.unwrap_or_else(|| generator.name.to_owned());
                let bound = Bound {
                    ty: DataType::Null,
                    expr: generator.array.clone(),
                };
                items.push((name, bound));
                generated = Some((items.len() - 1, generator));
                continue;
            }
            let bound = binder.bind(expr)?;
            let name = alias.unwrap_or_else(|| names::of(expr, &relation.scope));
            // Later items may use its name, unless a column has it.
            binder.aliases.push((name.clone(), bound.clone()));
            items.push((name, bound));
        }
        let names = items.iter().map(|(name, _)| name.clone()).collect();
        let items = items
            .into_iter()
            .map(|(name, bound)| (name, bound.expr))
            .collect();
        let mut plan = project(relation.plan, items)?;
        if let Some((at, generator)) = generated {
            plan = unnested(plan, at, generator.outer)?;
        }
        Ok(Relation::new(plan, names, None))
    }
}

impl Relation {
    fn new(plan: LogicalPlan, names: Vec<String>, qualifier: Option<&str>) -> Self {
        let schema = plan.schema();
        let columns = schema
            .columns()
            .into_iter()
            .zip(schema.fields())
            .zip(names)
            .map(|((column, field), name)| ScopeColumn {
                qualifier: qualifier.map(str::to_owned),
                name,
                column,
                field: Arc::clone(field),
            })
            .collect();
        Self {
            plan,
            scope: Scope { columns },
        }
    }

    fn known_as(mut self, name: String, alias: Option<&ast::TableAlias>) -> Result<Self, Error> {
        let names = alias.map_or(&[][..], |alias| alias.columns.as_slice());
        if !names.is_empty() && names.len() != self.scope.columns.len() {
            return Err(Error::Mismatch {
                what: format!("alias `{name}`"),
                place: Place::default(),
                reason: format!(
                    "names {} columns, but there are {}",
                    names.len(),
                    self.scope.columns.len()
                ),
            });
        }
        for (index, column) in self.scope.columns.iter_mut().enumerate() {
            column.qualifier = Some(name.clone());
            if let Some(renamed) = names.get(index) {
                column.name.clone_from(&renamed.name.value);
            }
        }
        Ok(self)
    }
}

fn wildcard(
    scope: &Scope,
    qualifier: Option<&str>,
    options: &ast::WildcardAdditionalOptions,
) -> Result<Vec<(String, Bound)>, Error> {
    let mut left_out: Vec<&ast::Ident> = Vec::new();
    if let Some(except) = &options.opt_except {
        left_out.push(&except.first_element);
        left_out.extend(&except.additional_elements);
    }
    for ident in &left_out {
        let known = scope
            .columns
            .iter()
            .any(|column| column.name.eq_ignore_ascii_case(&ident.value));
        if !known {
            return Err(scope.unknown(std::slice::from_ref(*ident)));
        }
    }
    let columns: Vec<(String, Bound)> = scope
        .columns
        .iter()
        .filter(|column| qualifier.is_none_or(|qualifier| column.is_of(qualifier)))
        .filter(|column| {
            !left_out
                .iter()
                .any(|ident| ident.value.eq_ignore_ascii_case(&column.name))
        })
        .map(|column| {
            let bound = Bound {
                expr: Expr::Column(column.column.clone()),
                ty: column.field.data_type().clone(),
            };
            (column.name.clone(), bound)
        })
        .collect();
    match qualifier {
        Some(qualifier) if !scope.has_qualifier(qualifier) => Err(Error::UnknownTable {
            name: qualifier.to_owned(),
            place: Place::default(),
            hint: String::new(),
        }),
        _ => Ok(columns),
    }
}

/// A projection under names that a plan can have: the user's, made unique.
fn project(plan: LogicalPlan, items: Vec<(String, Expr)>) -> datafusion::error::Result<LogicalPlan> {
    let mut used: Vec<String> = Vec::with_capacity(items.len());
    let mut list = Vec::with_capacity(items.len());
    for (name, expr) in items {
        let mut unique = name.clone();
        let mut count = 1;
        while used.contains(&unique) {
            count += 1;
            unique = format!("{name}#{count}");
        }
        list.push(expr.alias(unique.clone()));
        used.push(unique);
    }
    LogicalPlanBuilder::from(plan).project(list)?.build()
}

fn unnested(plan: LogicalPlan, at: usize, outer: bool) -> datafusion::error::Result<LogicalPlan> {
    let (_, field) = plan.schema().qualified_field(at);
    let column = Column::new_unqualified(field.name());
    let null_handling = if outer {
        NullHandling::PreserveAndExpandEmpty
    } else {
        NullHandling::Drop
    };
    let options = UnnestOptions {
        null_handling,
        ..UnnestOptions::default()
    };
    LogicalPlanBuilder::from(plan)
        .unnest_column_with_options(column, options)?
        .build()
}

fn unsupported(what: &str, hint: &str) -> Error {
    Error::Unsupported {
        what: what.to_owned(),
        place: Place::default(),
        hint: hint.to_owned(),
    }
}
