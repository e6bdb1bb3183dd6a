//! The names that Spark gives to columns without an alias: `length(CAST(value AS STRING))`.

use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    Subscript, UnaryOperator, Value,
};

use super::literal;
use super::scope::Scope;

/// What Spark calls the column of an expression.
pub(super) fn of(expr: &Expr, scope: &Scope) -> String {
    match expr {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().map_or_else(String::new, |part| part.value.clone()),
        Expr::Nested(inner) => of(inner, scope),
        // A cast of a column keeps the column's name.
        Expr::Cast { expr: inner, .. }
            if matches!(**inner, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) =>
        {
            of(inner, scope)
        }
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("window") => {
            "window".to_owned()
        }
        _ => Names {
            scope,
            lambdas: Vec::new(),
        }
        .print(expr),
    }
}

struct Names<'a> {
    scope: &'a Scope,
    lambdas: Vec<String>,
}

impl Names<'_> {
    fn print(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Identifier(ident) if self.is_lambda(ident) => "namedlambdavariable()".to_owned(),
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) => self.path(parts),
            Expr::Nested(inner) => self.print(inner),
            Expr::Value(value) => written(&value.value),
            Expr::TypedString(typed) => match &typed.value.value {
                Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                    format!("{} '{text}'", typed.data_type.to_string().to_uppercase())
                }
                other => written(other),
            },
            Expr::Interval(interval) => {
                let value = self.print(&interval.value);
                match &interval.leading_field {
                    Some(unit) => {
                        let unit = unit.to_string().to_uppercase();
                        format!("INTERVAL '{value}' {}", unit.strip_suffix('S').unwrap_or(&unit))
                    }
                    None => format!("INTERVAL '{value}'"),
                }
            }
            Expr::UnaryOp { op, expr } => match (op, expr.as_ref()) {
                (UnaryOperator::Minus, Expr::Value(value)) => format!("-{}", written(&value.value)),
                (UnaryOperator::Minus, inner) => format!("(- {})", self.print(inner)),
                (UnaryOperator::Plus, inner) => format!("(+ {})", self.print(inner)),
                (UnaryOperator::Not | UnaryOperator::BangNot, inner) => {
                    format!("(NOT {})", self.print(inner))
                }
                (op, inner) => format!("{op}{}", self.print(inner)),
            },
            Expr::BinaryOp { left, op, right } => {
                let is_interval = matches!(**left, Expr::Interval(_)) || matches!(**right, Expr::Interval(_));
                let (left, right) = (self.print(left), self.print(right));
                match op {
                    BinaryOperator::StringConcat => format!("concat({left}, {right})"),
                    BinaryOperator::MyIntegerDivide => format!("({left} div {right})"),
                    BinaryOperator::NotEq => format!("(NOT ({left} = {right}))"),
                    BinaryOperator::Regexp => format!("RLIKE({left}, {right})"),
                    op if is_interval => format!("{left} {op} {right}"),
                    op => format!("({left} {op} {right})"),
                }
            }
            Expr::IsNull(inner) => format!("({} IS NULL)", self.print(inner)),
            Expr::IsNotNull(inner) => format!("({} IS NOT NULL)", self.print(inner)),
            Expr::InList { expr, list, negated } => {
                let list: Vec<String> = list.iter().map(|item| self.print(item)).collect();
                let within = format!("({} IN ({}))", self.print(expr), list.join(", "));
                not(*negated, within)
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let text = format!(
                    "between({}, {}, {})",
                    self.print(expr),
                    self.print(low),
                    self.print(high)
                );
                not(*negated, text)
            }
            Expr::Like {
                expr,
                pattern,
                negated,
                ..
            } => not(
                *negated,
                format!("{} LIKE {}", self.print(expr), self.print(pattern)),
            ),
            Expr::ILike {
                expr,
                pattern,
                negated,
                ..
            } => not(
                *negated,
                format!("ilike({}, {})", self.print(expr), self.print(pattern)),
            ),
            Expr::RLike {
                expr,
                pattern,
                negated,
                ..
            } => not(
                *negated,
                format!("RLIKE({}, {})", self.print(expr), self.print(pattern)),
            ),
            Expr::Cast {
                kind,
                expr,
                data_type,
                ..
            } => {
                let word = match kind {
                    ast::CastKind::TryCast | ast::CastKind::SafeCast => "TRY_CAST",
                    _ => "CAST",
                };
                let ty = super::types::from_ast(data_type)
                    .map_or_else(|| data_type.to_string(), |ty| super::types::spark_name(&ty));
                format!("{word}({} AS {})", self.print(expr), ty.to_uppercase())
            }
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                let mut text = "CASE".to_owned();
                for when in conditions {
                    let condition = match operand {
                        None => self.print(&when.condition),
                        Some(operand) => {
                            format!("({} = {})", self.print(operand), self.print(&when.condition))
                        }
                    };
                    text.push_str(&format!(" WHEN {condition} THEN {}", self.print(&when.result)));
                }
                if let Some(otherwise) = else_result {
                    text.push_str(&format!(" ELSE {}", self.print(otherwise)));
                }
                text + " END"
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                let mut text = self.print(root);
                for link in access_chain {
                    match link {
                        AccessExpr::Subscript(Subscript::Index { index }) => {
                            text.push_str(&format!("[{}]", self.print(index)));
                        }
                        other => text.push_str(&other.to_string().replace('`', "")),
                    }
                }
                text
            }
            Expr::Extract { field, expr, .. } => {
                format!(
                    "extract({} FROM {})",
                    field.to_string().to_uppercase(),
                    self.print(expr)
                )
            }
            Expr::Ceil { expr, field } => self.rounding("CEIL", expr, field),
            Expr::Floor { expr, field } => self.rounding("FLOOR", expr, field),
            Expr::Position { expr, r#in } => format!("locate({}, {}, 1)", self.print(expr), self.print(r#in)),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                shorthand,
                ..
            } => {
                let from = substring_from
                    .as_ref()
                    .map_or_else(String::new, |from| self.print(from));
                let length = substring_for
                    .as_ref()
                    .map_or_else(|| i32::MAX.to_string(), |length| self.print(length));
                let name = if *shorthand { "substr" } else { "substring" };
                format!("{name}({}, {from}, {length})", self.print(expr))
            }
            Expr::Trim {
                expr,
                trim_where,
                trim_what,
                ..
            } => {
                let text = self.print(expr);
                match (trim_where, trim_what) {
                    (_, None) => format!("trim({text})"),
                    (side, Some(what)) => {
                        let side = side
                            .as_ref()
                            .map_or_else(|| "BOTH".to_owned(), ToString::to_string);
                        format!("TRIM({side} {} FROM {text})", self.print(what))
                    }
                }
            }
            Expr::Struct { values, .. } => {
                let values: Vec<String> = values.iter().map(|value| self.print(value)).collect();
                format!("struct({})", values.join(", "))
            }
            Expr::Lambda(lambda) => {
                let before = self.lambdas.len();
                self.lambdas
                    .extend(lambda.params.iter().map(|parameter| parameter.name.value.clone()));
                let body = self.print(&lambda.body);
                let variables = vec!["namedlambdavariable()"; self.lambdas.len() - before].join(", ");
                self.lambdas.truncate(before);
                format!("lambdafunction({body}, {variables})")
            }
            Expr::Function(function) => self.function(function),
            other => other.to_string().replace('`', ""),
        }
    }

    fn is_lambda(&self, ident: &Ident) -> bool {
        self.lambdas
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&ident.value))
    }

    fn path(&self, parts: &[Ident]) -> String {
        let lambda = parts.first().is_some_and(|first| self.is_lambda(first));
        let qualified = parts.len() > 1 && self.scope.has_qualifier(&parts[0].value);
        let mut names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        if lambda {
            names[0] = "namedlambdavariable()";
        } else if qualified {
            names.remove(0);
        }
        names.join(".")
    }

    fn rounding(&mut self, name: &str, expr: &Expr, field: &ast::CeilFloorKind) -> String {
        match field {
            ast::CeilFloorKind::Scale(scale) => {
                format!("{name}({}, {})", self.print(expr), written(&scale.value))
            }
            ast::CeilFloorKind::DateTimeField(_) => format!("{name}({})", self.print(expr)),
        }
    }

    fn function(&mut self, function: &ast::Function) -> String {
        let name = function.name.to_string().replace('`', "").to_lowercase();
        let mut args: Vec<String> = match &function.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.print(expr),
                    other => other.to_string(),
                })
                .collect(),
            _ => Vec::new(),
        };
        match (name.as_str(), args.as_slice()) {
            ("if", [condition, then, otherwise]) => {
                return format!("(IF({condition}, {then}, {otherwise}))");
            }
            ("isnull", [value]) => return format!("({value} IS NULL)"),
            ("isnotnull", [value]) => return format!("({value} IS NOT NULL)"),
            ("ltrim", [what, text]) => return format!("TRIM(LEADING {what} FROM {text})"),
            ("rtrim", [what, text]) => return format!("TRIM(TRAILING {what} FROM {text})"),
            _ => {}
        }
        // Spark names the arguments that were left out.
        let defaults: &[&str] = match name.as_str() {
            "substring" | "substr" => &["", "", "2147483647"],
            "lpad" | "rpad" => &["", "", " "],
            "split" => &["", "", "-1"],
            "regexp_replace" => &["", "", "", "1"],
            "regexp_extract" | "regexp_extract_all" | "locate" | "position" => &["", "", "1"],
            "round" | "bround" => &["", "0"],
            "unix_timestamp" | "to_unix_timestamp" | "from_unixtime" => &["", "yyyy-MM-dd HH:mm:ss"],
            "months_between" => &["", "", "true"],
            "sort_array" => &["", "true"],
            _ => &[],
        };
        args.extend(
            defaults
                .iter()
                .skip(args.len())
                .map(|&default| default.to_owned()),
        );
        let shown = match name.as_str() {
            "sqrt" | "cbrt" | "power" | "exp" | "log10" | "log2" | "ceil" | "floor" | "regexp_like"
            | "rlike" | "acos" | "asin" | "atan" | "atan2" | "cos" | "cosh" | "degrees" | "expm1"
            | "hypot" | "log1p" | "radians" | "sin" | "sinh" | "tan" | "tanh" => name.to_uppercase(),
            "log" if args.len() == 2 => "LOG".to_owned(),
            _ => name,
        };
        format!("{shown}({})", args.join(", "))
    }
}

fn not(negated: bool, text: String) -> String {
    if negated { format!("(NOT {text})") } else { text }
}

/// A literal's value without quotes and suffixes.
fn written(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
        Value::Number(digits, long) => literal::number(digits, *long, super::Place::default())
            .ok()
            .and_then(|bound| super::cast::literal_as_text(&bound.expr))
            .unwrap_or_else(|| digits.clone()),
        Value::Boolean(value) => value.to_string(),
        Value::Null => "NULL".to_owned(),
        Value::HexStringLiteral(hex) => format!("X'{}'", hex.to_uppercase()),
        other => other.to_string(),
    }
}
