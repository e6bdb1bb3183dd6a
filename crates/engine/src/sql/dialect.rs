//! Spark's lexical rules and grammar, as far as the parser knows them.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::{Dialect, SparkSqlDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::any::TypeId;

use super::Error;

/// How deep expressions and subqueries may nest.
const MAX_DEPTH: usize = 100;

/// sqlparser's Spark dialect with what it lacks: backslash escapes, and a `DIV` that binds like `*`.
#[derive(Debug)]
struct Spark;

impl Dialect for Spark {
    fn dialect(&self) -> TypeId {
        TypeId::of::<SparkSqlDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_'
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }

    fn ignores_wildcard_escapes(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_struct_literal(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_long_type_as_bigint(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    fn supports_select_item_multi_column_alias(&self) -> bool {
        true
    }

    fn supports_cte_without_as(&self) -> bool {
        true
    }

    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }

    /// `exists(array, x -> …)`, which the parser would take for EXISTS of a subquery.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<ast::Expr, ParserError>> {
        let is_word = |token: &Token, wanted: &[Keyword]| matches!(token, Token::Word(word) if wanted.contains(&word.keyword));
        let [exists, paren, first] = [0, 1, 2].map(|ahead| parser.peek_nth_token_ref(ahead).token.clone());
        let subquery = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES, Keyword::FROM];
        if !is_word(&exists, &[Keyword::EXISTS])
            || paren != Token::LParen
            || is_word(&first, &subquery)
            || first == Token::LParen
        {
            return None;
        }
        parser.advance_token();
        Some(parser.parse_function(ast::ObjectName::from(vec![ast::Ident::new("exists")])))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &ast::Expr,
        precedence: u8,
    ) -> Option<Result<ast::Expr, ParserError>> {
        if !parser.parse_keyword(Keyword::DIV) {
            return None;
        }
        let right = parser.parse_subexpr(precedence);
        Some(right.map(|right| ast::Expr::BinaryOp {
            left: Box::new(left.clone()),
            op: ast::BinaryOperator::MyIntegerDivide,
            right: Box::new(right),
        }))
    }
}

/// Reads one query.
pub(super) fn parse(sql: &str) -> Result<ast::Query, Error> {
    let tokens = Tokenizer::new(&Spark, sql)
        .tokenize_with_location()
        .map_err(|error| Error::Syntax {
            reason: error.to_string(),
        })?;
    let mut parser = Parser::new(&Spark)
        .with_recursion_limit(MAX_DEPTH)
        .with_tokens_with_locations(with_number_suffixes(tokens));
    let statements = parser.parse_statements().map_err(|error| Error::Syntax {
        reason: match error {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
            ParserError::RecursionLimitExceeded => format!("it nests deeper than {MAX_DEPTH} levels"),
        },
    })?;
    let mut statements = statements.into_iter();
    match (statements.next(), statements.next()) {
        (Some(ast::Statement::Query(query)), None) => Ok(*query),
        (None, _) => Err(Error::NotAQuery {
            statement: "nothing".to_owned(),
        }),
        (Some(other), None) => Err(Error::NotAQuery {
            statement: first_word(&other.to_string()),
        }),
        (Some(_), Some(_)) => Err(Error::NotAQuery {
            statement: "several statements".to_owned(),
        }),
    }
}

fn first_word(statement: &str) -> String {
    statement
        .split_whitespace()
        .next()
        .unwrap_or("nothing")
        .to_uppercase()
}

/// Spark's `1.5D`, `3S`, `42l`: the tokenizer sees a number and a word, which the parser would take for an alias.
fn with_number_suffixes(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let Token::Word(word) = &token.token
            && word.quote_style.is_none()
            && matches!(
                word.value.to_ascii_uppercase().as_str(),
                "D" | "F" | "BD" | "S" | "Y" | "L"
            )
            && let Some(before) = joined.last_mut()
            && before.span.end == token.span.start
            && let Token::Number(number, false) = &mut before.token
        {
            number.push_str(&word.value.to_ascii_uppercase());
            before.span.end = token.span.end;
            continue;
        }
        joined.push(token);
    }
    joined
}
