//! AND and OR that look at their right side only where the left one does not decide.
//!
//! In Spark `n <> 0 AND 10 / n > 1` never fails, nor does a filter above a filter. The plan's own operators may look at
//! all rows, and the optimizer makes them of CASE and of filters that it merges; so this runs after the optimizer.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, LogicalPlan, Operator};

use super::kernel::can_fail;

/// The plan with each AND and OR whose right side can fail put as a CASE, which computes only the rows it needs.
pub(super) fn guarded(plan: LogicalPlan) -> Result<LogicalPlan> {
    let guarded = plan.transform_up(|node| {
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(guard)?.update_data(|expr| name.restore(expr)))
        })?;
        if node.transformed {
            node.map_data(LogicalPlan::recompute_schema)
        } else {
            Ok(node)
        }
    })?;
    Ok(guarded.data)
}

fn guard(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let decides = match op {
        Operator::And if can_fail(&right) => false,
        Operator::Or if can_fail(&right) => true,
        _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
    };
    let constant = |value: Option<bool>| Box::new(Expr::Literal(ScalarValue::Boolean(value), None));
    let unknown = Expr::BinaryExpr(BinaryExpr::new(constant(None), op, right.clone()));
    let branches = vec![
        (constant(Some(decides)), constant(Some(decides))),
        (constant(Some(!decides)), right),
    ];
    let case = Case::new(Some(left), branches, Some(Box::new(unknown)));
    Ok(Transformed::yes(Expr::Case(case)))
}
