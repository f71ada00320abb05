"""Trees with brackets around all that they hold, so that no parser can read them otherwise."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

_NO_OPERATORS = (exp.Dot, exp.Exists, exp.Paren, exp.PropertyEQ)


def put_brackets(tree: Any) -> Any:
    """The same tree with brackets around every operator, but for chains of AND or of OR."""
    tree = tree.copy()
    for node in list(tree.walk()):
        parent = node.parent
        is_operator = isinstance(node, exp.Binary | exp.Unary | exp.Predicate)
        if not is_operator or parent is None or isinstance(node, _NO_OPERATORS):
            continue
        is_chain = isinstance(node, exp.And | exp.Or) and type(node) is type(parent)
        if is_chain or isinstance(parent, exp.Paren | exp.Escape | exp.Any):
            continue
        around = exp.Paren()
        node.replace(around)
        around.set("this", node)
    return tree


def put_set_brackets(tree: Any) -> Any:
    """The same query with brackets around each set operation within another one."""
    tree = tree.copy()
    for node in list(tree.find_all(exp.SetOperation)):
        if isinstance(node.parent, exp.SetOperation):
            around = exp.Subquery()
            node.replace(around)
            around.set("this", node)
    return tree
