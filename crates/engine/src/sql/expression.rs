//! From an expression's tree to a typed expression, with Spark's rules for literals, names and operators.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::logical_expr::expr::{InList, LambdaVariable};
use datafusion::logical_expr::{Case, Expr, Like};
use datafusion::sql::sqlparser::ast::{self, AccessExpr, Ident, Subscript, UnaryOperator, Value};
use std::sync::Arc;

use super::cast::{OnMisfit, explicit, implicit, null_of};
use super::env::Env;
use super::error::{Error, Place};
use super::functions;
use super::literal;
use super::operators;
use super::relation::Relation;
use super::scope::{Bound, Scope, place_of, start_of};
use super::streamable;
use super::types::{common, from_ast, spark_name};

/// Binds the expressions of one SELECT.
pub(super) struct Binder<'a> {
    pub(super) env: &'a Env,
    pub(super) scope: Scope,
    pub(super) schema: DFSchemaRef,
    /// The SELECT's own aliases so far, which later items may use.
    pub(super) aliases: Vec<(String, Bound)>,
    /// The parameters of the lambdas around.
    pub(super) lambdas: Vec<FieldRef>,
}

impl<'a> Binder<'a> {
    pub(super) fn new(env: &'a Env, over: &Relation) -> Self {
        Self {
            env,
            scope: over.scope.clone(),
            schema: Arc::clone(over.plan.schema()),
            aliases: Vec::new(),
            lambdas: Vec::new(),
        }
    }

    /// A WHERE, or another thing that has to be true.
    pub(super) fn condition(&mut self, expr: &ast::Expr) -> Result<Expr, Error> {
        let bound = self.bind(expr)?;
        self.as_type(bound, &DataType::Boolean, "a condition", place_of(Some(expr)))
    }

    pub(super) fn bind_all(&mut self, list: &[&ast::Expr]) -> Result<Vec<Bound>, Error> {
        list.iter().map(|expr| self.bind(expr)).collect()
    }

    pub(super) fn bind(&mut self, expr: &ast::Expr) -> Result<Bound, Error> {
        let place = place_of(Some(expr));
        match expr {
            ast::Expr::Identifier(ident) => self.name(std::slice::from_ref(ident)),
            ast::Expr::CompoundIdentifier(parts) => self.name(parts),
            ast::Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            ast::Expr::Nested(inner) => self.bind(inner),
            ast::Expr::Value(value) => literal::value(&value.value, place),
            ast::Expr::TypedString(typed) => literal::typed(self.env, typed, place),
            ast::Expr::Interval(interval) => literal::interval(interval, place),
            ast::Expr::UnaryOp { op, expr } => self.unary(*op, expr, place),
            ast::Expr::BinaryOp { left, op, right } => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                operators::binary(self, op, left, right, place)
            }
            ast::Expr::IsNull(inner) => Ok(boolean(Expr::IsNull(Box::new(self.bind(inner)?.expr)))),
            ast::Expr::IsNotNull(inner) => Ok(boolean(Expr::IsNotNull(Box::new(self.bind(inner)?.expr)))),
            ast::Expr::IsTrue(inner) => self.truth(inner, Expr::IsTrue),
            ast::Expr::IsNotTrue(inner) => self.truth(inner, Expr::IsNotTrue),
            ast::Expr::IsFalse(inner) => self.truth(inner, Expr::IsFalse),
            ast::Expr::IsNotFalse(inner) => self.truth(inner, Expr::IsNotFalse),
            ast::Expr::IsUnknown(inner) => self.truth(inner, Expr::IsUnknown),
            ast::Expr::IsNotUnknown(inner) => self.truth(inner, Expr::IsNotUnknown),
            ast::Expr::IsDistinctFrom(left, right) => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                operators::compare(
                    self,
                    datafusion::logical_expr::Operator::IsDistinctFrom,
                    left,
                    right,
                    place,
                )
            }
            ast::Expr::IsNotDistinctFrom(left, right) => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                operators::compare(
                    self,
                    datafusion::logical_expr::Operator::IsNotDistinctFrom,
                    left,
                    right,
                    place,
                )
            }
            ast::Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated, place),
            ast::Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let (value, low, high) = (self.bind(expr)?, self.bind(low)?, self.bind(high)?);
                let from = operators::compare(
                    self,
                    datafusion::logical_expr::Operator::GtEq,
                    value.clone(),
                    low,
                    place,
                )?;
                let to =
                    operators::compare(self, datafusion::logical_expr::Operator::LtEq, value, high, place)?;
                let within = from.expr.and(to.expr);
                Ok(boolean(if *negated {
                    Expr::Not(Box::new(within))
                } else {
                    within
                }))
            }
            ast::Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_ref(), *negated, false),
            ast::Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_ref(), *negated, true),
            ast::Expr::RLike {
                negated,
                expr,
                pattern,
                ..
            } => {
                let args = vec![self.bind(expr)?, self.bind(pattern)?];
                let matched = self.apply("rlike", args, place)?;
                Ok(if *negated {
                    boolean(Expr::Not(Box::new(matched.expr)))
                } else {
                    matched
                })
            }
            ast::Expr::Cast {
                kind,
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                let misfit = match kind {
                    ast::CastKind::Cast | ast::CastKind::DoubleColon => OnMisfit::Fail,
                    ast::CastKind::TryCast | ast::CastKind::SafeCast => OnMisfit::Null,
                };
                let bound = self.bind(expr)?;
                let to = from_ast(data_type).ok_or_else(|| Error::Unsupported {
                    what: format!("type {data_type}"),
                    place,
                    hint: "cast to a type of Spark's SQL".to_owned(),
                })?;
                let cast = explicit(self.env, bound.expr, &bound.ty, &to, misfit);
                cast.map(|expr| Bound { expr, ty: to.clone() })
                    .ok_or_else(|| Error::Mismatch {
                        what: "CAST".to_owned(),
                        place,
                        reason: format!(
                            "does not go from {} to {}",
                            spark_name(&bound.ty),
                            spark_name(&to)
                        ),
                    })
            }
            ast::Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref(), place),
            ast::Expr::Function(function) => self.function(function, place),
            ast::Expr::Extract { field, expr, .. } => {
                let value = self.bind(expr)?;
                let field = literal::text(&field.to_string().to_lowercase());
                self.apply("date_part", vec![field, value], place)
            }
            ast::Expr::Ceil { expr, field } => self.rounding("ceil", expr, field, place),
            ast::Expr::Floor { expr, field } => self.rounding("floor", expr, field, place),
            ast::Expr::Position { expr, r#in } => {
                let args = vec![self.bind(expr)?, self.bind(r#in)?];
                self.apply("position", args, place)
            }
            ast::Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let mut args = vec![self.bind(expr)?];
                for part in [substring_from, substring_for].into_iter().flatten() {
                    args.push(self.bind(part)?);
                }
                self.apply("substring", args, place)
            }
            ast::Expr::Trim {
                expr,
                trim_where,
                trim_what,
                ..
            } => {
                let mut args = vec![self.bind(expr)?];
                if let Some(what) = trim_what {
                    args.push(self.bind(what)?);
                }
                let name = match trim_where {
                    None | Some(ast::TrimWhereField::Both) => "btrim",
                    // Spark's functions of two arguments take the characters first, this form takes them last.
                    Some(ast::TrimWhereField::Leading) => "trim_leading",
                    Some(ast::TrimWhereField::Trailing) => "trim_trailing",
                };
                self.apply(name, args, place)
            }
            ast::Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let mut args = vec![
                    self.bind(expr)?,
                    self.bind(overlay_what)?,
                    self.bind(overlay_from)?,
                ];
                if let Some(length) = overlay_for {
                    args.push(self.bind(length)?);
                }
                self.apply("overlay", args, place)
            }
            ast::Expr::Struct { values, fields } if fields.is_empty() => self.structure(values),
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                Err(streamable::subquery(place))
            }
            other => Err(Error::Unsupported {
                what: format!("`{other}`"),
                place,
                hint: "see docs/sql-differences.md for what there is".to_owned(),
            }),
        }
    }

    fn name(&mut self, parts: &[Ident]) -> Result<Bound, Error> {
        let first = &parts[0];
        let lambda = self
            .lambdas
            .iter()
            .rev()
            .find(|field| field.name().eq_ignore_ascii_case(&first.value));
        if let Some(field) = lambda {
            let variable = LambdaVariable::new(field.name().clone(), Some(Arc::clone(field)));
            let bound = Bound {
                expr: Expr::LambdaVariable(variable),
                ty: field.data_type().clone(),
            };
            return self.fields_of(bound, &parts[1..]);
        }
        if let Some((column, used)) = self.scope.find(parts)? {
            let bound = Bound {
                expr: Expr::Column(column.column.clone()),
                ty: column.field.data_type().clone(),
            };
            return self.fields_of(bound, &parts[used..]);
        }
        let alias = self
            .aliases
            .iter()
            .find(|(alias, _)| alias.eq_ignore_ascii_case(&first.value));
        match alias {
            Some((_, bound)) => {
                let bound = bound.clone();
                self.fields_of(bound, &parts[1..])
            }
            None => Err(self.scope.unknown(parts)),
        }
    }

    fn fields_of(&self, mut bound: Bound, names: &[Ident]) -> Result<Bound, Error> {
        for name in names {
            bound = self.field(bound, name)?;
        }
        Ok(bound)
    }

    fn field(&self, bound: Bound, name: &Ident) -> Result<Bound, Error> {
        let place = start_of(std::slice::from_ref(name));
        let DataType::Struct(fields) = &bound.ty else {
            return Err(Error::Mismatch {
                what: format!("`.{}`", name.value),
                place,
                reason: format!("takes a field of a struct, not of {}", spark_name(&bound.ty)),
            });
        };
        let field = fields
            .iter()
            .find(|field| field.name().eq_ignore_ascii_case(&name.value))
            .ok_or_else(|| {
                let known: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                Error::UnknownColumn {
                    name: name.value.clone(),
                    place,
                    hint: super::scope::nearest(&name.value, &known),
                }
            })?;
        let (key, ty) = (literal::text(field.name()), field.data_type().clone());
        let expr = self
            .core_call("get_field", vec![bound.expr, key.expr], place)?
            .expr;
        Ok(Bound { expr, ty })
    }

    fn access(&mut self, root: &ast::Expr, chain: &[AccessExpr]) -> Result<Bound, Error> {
        let mut bound = self.bind(root)?;
        for link in chain {
            bound = match link {
                AccessExpr::Dot(ast::Expr::Identifier(name)) => self.field(bound, name)?,
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let key = self.bind(index)?;
                    functions::collection::subscript(self, bound, key, place_of(Some(index)))?
                }
                AccessExpr::Dot(other) => {
                    return Err(unsupported(&format!("`.{other}`"), place_of(Some(other))));
                }
                AccessExpr::Subscript(other) => {
                    return Err(unsupported(&format!("`[{other}]`"), place_of(Some(root))));
                }
            };
        }
        Ok(bound)
    }

    fn unary(&mut self, op: UnaryOperator, inner: &ast::Expr, place: Place) -> Result<Bound, Error> {
        if op == UnaryOperator::Minus
            && let ast::Expr::Value(value) = inner
            && let Value::Number(digits, long) = &value.value
        {
            return literal::number(&format!("-{digits}"), *long, place);
        }
        let bound = self.bind(inner)?;
        match op {
            UnaryOperator::Plus => Ok(bound),
            UnaryOperator::Minus => operators::negate(self, bound, place),
            UnaryOperator::Not | UnaryOperator::BangNot => {
                let expr = self.as_type(bound, &DataType::Boolean, "NOT", place)?;
                Ok(boolean(Expr::Not(Box::new(expr))))
            }
            UnaryOperator::BitwiseNot => self.apply("bitwise_not", vec![bound], place),
            other => Err(unsupported(&format!("operator {other}"), place)),
        }
    }

    fn truth(&mut self, inner: &ast::Expr, wrap: fn(Box<Expr>) -> Expr) -> Result<Bound, Error> {
        let place = place_of(Some(inner));
        let bound = self.bind(inner)?;
        let expr = self.as_type(bound, &DataType::Boolean, "IS TRUE or FALSE", place)?;
        Ok(boolean(wrap(Box::new(expr))))
    }

    fn in_list(
        &mut self,
        value: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        place: Place,
    ) -> Result<Bound, Error> {
        let mut all = vec![self.bind(value)?];
        for item in list {
            all.push(self.bind(item)?);
        }
        let (mut exprs, _) = self.to_common(all, "IN", place)?;
        let list = exprs.split_off(1);
        let value = exprs.swap_remove(0);
        Ok(boolean(Expr::InList(InList::new(Box::new(value), list, negated))))
    }

    fn like(
        &mut self,
        value: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        negated: bool,
        insensitive: bool,
    ) -> Result<Bound, Error> {
        let place = place_of(Some(value));
        let (value, pattern) = (self.bind(value)?, self.bind(pattern)?);
        let value = self.as_type(value, &DataType::Utf8, "LIKE", place)?;
        let pattern = self.as_type(pattern, &DataType::Utf8, "LIKE", place)?;
        let escape = match escape.map(|escape| &escape.value) {
            None => Some('\\'),
            Some(Value::SingleQuotedString(text) | Value::DoubleQuotedString(text))
                if text.chars().count() == 1 =>
            {
                text.chars().next()
            }
            Some(other) => return Err(unsupported(&format!("ESCAPE {other}"), place)),
        };
        let like = Like::new(
            negated,
            Box::new(value),
            Box::new(pattern),
            escape.filter(|escape| *escape != '\\'),
            insensitive,
        );
        Ok(boolean(Expr::Like(like)))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
        place: Place,
    ) -> Result<Bound, Error> {
        let operand = operand.map(|operand| self.bind(operand)).transpose()?;
        let mut whens = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            let condition = match &operand {
                None => self.condition(&when.condition)?,
                Some(operand) => {
                    let value = self.bind(&when.condition)?;
                    let equal = datafusion::logical_expr::Operator::Eq;
                    operators::compare(self, equal, operand.clone(), value, place)?.expr
                }
            };
            whens.push(condition);
            results.push(self.bind(&when.result)?);
        }
        let has_else = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            results.push(self.bind(otherwise)?);
        }
        let (mut results, ty) = self.to_common(results, "CASE", place)?;
        let otherwise = if has_else {
            results.pop().map(Box::new)
        } else {
            None
        };
        let pairs = whens
            .into_iter()
            .zip(results)
            .map(|(when, then)| (Box::new(when), Box::new(then)))
            .collect();
        Ok(Bound {
            expr: Expr::Case(Case::new(None, pairs, otherwise)),
            ty,
        })
    }

    fn rounding(
        &mut self,
        name: &str,
        inner: &ast::Expr,
        field: &ast::CeilFloorKind,
        place: Place,
    ) -> Result<Bound, Error> {
        let mut args = vec![self.bind(inner)?];
        match field {
            ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) => {}
            ast::CeilFloorKind::Scale(scale) => args.push(literal::value(&scale.value, place)?),
            ast::CeilFloorKind::DateTimeField(_) => return Err(unsupported(&format!("{name} TO"), place)),
        }
        self.apply(name, args, place)
    }

    pub(super) fn structure(&mut self, values: &[ast::Expr]) -> Result<Bound, Error> {
        let mut args = Vec::with_capacity(values.len() * 2);
        for (index, value) in values.iter().enumerate() {
            let name = match value {
                ast::Expr::Identifier(ident) => ident.value.clone(),
                ast::Expr::CompoundIdentifier(parts) => parts[parts.len() - 1].value.clone(),
                ast::Expr::Named { name, .. } => name.value.clone(),
                _ => format!("col{}", index + 1),
            };
            let value = match value {
                ast::Expr::Named { expr, .. } => expr,
                value => value,
            };
            args.push(literal::text(&name));
            args.push(self.bind(value)?);
        }
        self.apply("named_struct", args, Place::default())
    }

    /// The expression as a type, by the casts that Spark puts in itself.
    pub(super) fn as_type(
        &self,
        bound: Bound,
        to: &DataType,
        what: &str,
        place: Place,
    ) -> Result<Expr, Error> {
        let from = bound.ty;
        implicit(self.env, bound.expr, &from, to).ok_or_else(|| Error::Mismatch {
            what: what.to_owned(),
            place,
            reason: format!("takes {}, not {}", spark_name(to), spark_name(&from)),
        })
    }

    /// All expressions as one type.
    pub(super) fn to_common(
        &self,
        all: Vec<Bound>,
        what: &str,
        place: Place,
    ) -> Result<(Vec<Expr>, DataType), Error> {
        let mut ty = DataType::Null;
        for bound in &all {
            ty = common(&ty, &literal::tight_type(bound, &ty)).ok_or_else(|| Error::Mismatch {
                what: what.to_owned(),
                place,
                reason: format!(
                    "cannot bring {} and {} to one type; cast one of them",
                    spark_name(&ty),
                    spark_name(&bound.ty)
                ),
            })?;
        }
        let exprs: Result<Vec<Expr>, Error> = all
            .into_iter()
            .map(|bound| self.as_type(bound, &ty, what, place))
            .collect();
        Ok((exprs?, ty))
    }
}

pub(super) const fn boolean(expr: Expr) -> Bound {
    Bound {
        expr,
        ty: DataType::Boolean,
    }
}

pub(super) fn unsupported(what: &str, place: Place) -> Error {
    Error::Unsupported {
        what: what.to_owned(),
        place,
        hint: "see docs/sql-differences.md for what there is".to_owned(),
    }
}

/// A literal's text.
pub(super) fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// A literal's whole number.
pub(super) fn literal_integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int8(Some(value)), _) => Some(i64::from(*value)),
        Expr::Literal(ScalarValue::Int16(Some(value)), _) => Some(i64::from(*value)),
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => Some(i64::from(*value)),
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => Some(*value),
        _ => None,
    }
}

/// A null of a type, as an expression.
pub(super) fn typed_null(ty: &DataType) -> Bound {
    Bound {
        expr: null_of(ty).unwrap_or(Expr::Literal(ScalarValue::Null, None)),
        ty: ty.clone(),
    }
}
