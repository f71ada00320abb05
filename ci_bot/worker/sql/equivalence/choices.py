"""CASE, IF, COALESCE and NULLIF: forms that choose the same become one form for a proof."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from sqlglot import exp

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
# A condition that has only these parts gives an answer for each row, if no side is converted for a
# comparison.
_NEVER_FAIL = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg,
    exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, *_COMPARISONS,
)  # fmt: skip


class ChoiceBranch(NamedTuple):
    """A condition of a choice, and the result that it gives."""

    condition: exp.Expr
    given: exp.Expr


class CaseChoice(NamedTuple):
    """CASE or IF; `otherwise` is None if there is no ELSE."""

    branches: list[ChoiceBranch]
    otherwise: exp.Expr | None


def read_choice(node: exp.Expr | None) -> CaseChoice | None:
    """Reads CASE or IF; None if it is another expression. It does not change the tree of `node`."""
    if isinstance(node, exp.If):
        return CaseChoice([ChoiceBranch(node.this, node.args["true"])], node.args.get("false"))
    if not isinstance(node, exp.Case):
        return None
    asked = node.this
    branches = [
        ChoiceBranch(
            branch.this
            if asked is None
            else exp.EQ(this=asked.copy(), expression=branch.this.copy()),
            branch.args["true"],
        )
        for branch in node.args["ifs"]
    ]
    return CaseChoice(branches, node.args.get("default"))


def replace_choice(node: exp.Expr, *, on_spark: bool = True) -> exp.Expr | None:
    """Replaces a CASE or IF by COALESCE, NULLIF or one with fewer branches; None if it cannot."""
    choice = read_choice(node)
    if choice is None:
        return None
    if len(choice.branches) == 1:
        guard = _replace_zero_guard(choice.branches[0], choice.otherwise)
        found = guard if on_spark else None
        if found is None and choice.otherwise is not None:
            found = _replace_only_branch(choice.branches[0], choice.otherwise) or _turn_known_test(
                choice.branches[0], choice.otherwise
            )
        if found is not None:
            return found
    return (
        _take_over_inner_choice(choice)
        or _merge_branches_alike(choice)
        or _replace_first_default(choice)
    )


def find_counted_condition(count: exp.Expr) -> exp.Expr | None:
    """Returns the condition of a COUNT that counts a constant if it is true, and otherwise NULL.

    None for another COUNT.
    """
    choice = read_choice(count.this) if not count.expressions else None
    if choice is None or len(choice.branches) != 1:
        return None
    (branch,) = choice.branches
    is_counted = isinstance(branch.given, exp.Literal)
    is_null_else = choice.otherwise is None or is_null(choice.otherwise)
    return branch.condition if is_counted and is_null_else else None


def replace_coalesce(node: exp.Expr) -> exp.Expr | None:
    """Flattens a COALESCE in a COALESCE, if all values have one type; None if it cannot."""
    items = [node.this, *node.expressions]
    flat = [part for item in items for part in _list_defaults(item)]
    if len(flat) == len(items) or not _have_one_type([*flat]) or any(map(is_null, flat)):
        return None
    return _build_coalesce(flat)


def is_null(node: exp.Expr | None) -> bool:
    """Whether an expression is the constant NULL."""
    return isinstance(node, exp.Null)


def find_truth(node: exp.Expr | None) -> bool | None:
    """The constant TRUE or FALSE that an expression is; None for others."""
    return bool(node.this) if isinstance(node, exp.Boolean) else None


def build_known_truth(condition: exp.Expr) -> exp.Expr:
    """A condition that is FALSE where it would be NULL."""
    return _build_coalesce([condition, exp.false()])


def _replace_zero_guard(branch: ChoiceBranch, otherwise: exp.Expr | None) -> exp.Expr | None:
    """A quotient that is NULL if its divisor is zero: Spark asks for the divisor first."""
    (asked, given), nothing = branch, otherwise
    kind: type[exp.Expr] = exp.NEQ
    if is_null(given) and otherwise is not None:
        kind, given, nothing = exp.EQ, otherwise, None
    quotient = given.unnest()
    if not isinstance(quotient, exp.Div | exp.IntDiv | exp.Mod) or not (
        nothing is None or is_null(nothing)
    ):
        return None
    divisor = quotient.expression
    tests = list(asked.flatten()) if kind is exp.NEQ and isinstance(asked, exp.And) else [asked]
    tests = [one.unnest() for one in tests if not _is_known_test(one.unnest(), divisor)]
    zero = exp.Literal.number(0)
    is_guard = len(tests) == 1 and isinstance(tests[0], kind)
    if not is_guard or not _is_number(divisor) or isinstance(divisor, exp.Literal):
        return None
    if {tests[0].this, tests[0].expression} != {divisor, zero}:
        return None
    safe = quotient.copy()
    safe.set("expression", exp.Nullif(this=divisor.copy(), expression=zero))
    return safe


def _replace_only_branch(branch: ChoiceBranch, otherwise: exp.Expr) -> exp.Expr | None:
    condition, given = branch.condition.unnest(), branch.given
    truths = (find_truth(given), find_truth(otherwise))
    if truths in {(True, False), (False, True)}:
        known = build_known_truth(branch.condition)
        return known if truths[0] else exp.Not(this=known)
    if isinstance(condition, exp.EQ) and is_null(given):
        return _build_nullif(condition, otherwise)
    if _is_known_test(condition, given) and not is_null(otherwise):
        return _build_coalesce([given, otherwise])
    if _find_null_tested_value(condition) == otherwise and not is_null(given):
        return _build_coalesce([otherwise, given])
    return None


def _turn_known_test(branch: ChoiceBranch, otherwise: exp.Expr) -> exp.Expr | None:
    """Asks IS NULL instead of IS NOT NULL, and exchanges both results: the test is never NULL."""
    condition = branch.condition.unnest()
    tested = condition.this.unnest() if isinstance(condition, exp.Not) else None
    results = [branch.given, otherwise]
    if tested is None or _find_null_tested_value(tested) is None:
        return None
    if any(map(is_null, results)) or not _have_one_type([*results]):
        return None
    return _build_case([ChoiceBranch(tested, otherwise)], branch.given)


def _take_over_inner_choice(choice: CaseChoice) -> exp.Expr | None:
    """Adds the branches of a CASE in ELSE to those of the outer one; None if there are none."""
    inner = read_choice(choice.otherwise.unnest()) if choice.otherwise is not None else None
    if inner is None:
        return None
    branches = [*choice.branches, *inner.branches]
    # Another type of a branch could convert the results of those around it.
    if not _have_one_type([*(branch.given for branch in branches), inner.otherwise]):
        return None
    return _build_case(branches, inner.otherwise)


def _merge_branches_alike(choice: CaseChoice) -> exp.Expr | None:
    """Merges two branches side by side, or a branch and ELSE, that give the same; None if none do.

    The side of OR that is computed first is not fixed, so a branch that guards the next one is
    kept.
    """
    branches, otherwise = choice
    for place, (first, second) in enumerate(pairwise(branches)):
        if first.given == second.given and never_fail(first.condition, second.condition):
            sides = [exp.paren(branch.condition.copy()) for branch in (first, second)]
            both = ChoiceBranch(exp.Or(this=sides[0], expression=sides[1]), first.given)
            return _build_case([*branches[:place], both, *branches[place + 2 :]], otherwise)
    last = branches[-1]
    if otherwise is None or last.given != otherwise or not never_fail(last.condition):
        return None
    return _build_case(branches[:-1], otherwise) if branches[1:] else otherwise


def _replace_first_default(choice: CaseChoice) -> exp.Expr | None:
    """Replaces a CASE by COALESCE if its first branch gives a value that is not NULL.

    None if it cannot.
    """
    (condition, given), *rest = choice.branches
    results = [*(branch.given for branch in choice.branches), choice.otherwise]
    if not rest or not _is_known_test(condition.unnest(), given) or not _have_one_type(results):
        return None
    default = _build_case(rest, choice.otherwise)
    return _build_coalesce([given, *_list_defaults(replace_choice(default) or default)])


def _find_null_tested_value(condition: exp.Expr) -> exp.Expr | None:
    """Returns the value that `value IS NULL` tests; None if it is another condition."""
    is_test = isinstance(condition, exp.Is) and is_null(condition.expression)
    return condition.this if is_test else None


def _is_known_test(condition: exp.Expr, value: exp.Expr) -> bool:
    """Whether a condition is `value IS NOT NULL`."""
    return (
        isinstance(condition, exp.Not) and _find_null_tested_value(condition.this.unnest()) == value
    )


def never_fail(*conditions: exp.Expr) -> bool:
    """Whether no condition can end a query with a value that cannot be computed or converted."""
    return all(_compares_one_kind(part) for one in conditions for part in one.walk())


def _compares_one_kind(node: exp.Expr) -> bool:
    if not isinstance(node, _NEVER_FAIL):
        return False
    if isinstance(node, exp.Neg):  # the lowest number has no opposite
        return isinstance(node.this, exp.Literal)
    if isinstance(node, exp.In):
        sides = [node.this, *node.expressions]
    elif isinstance(node, exp.Between):
        sides = [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, _COMPARISONS):
        sides = [node.this, node.expression]
    else:
        return True
    kinds = {"number" if _is_number(side) else _name_type(side) for side in sides}
    return len(kinds) == 1 and "" not in kinds


def _is_number(node: exp.Expr) -> bool:
    return node.type is not None and node.type.is_type(*exp.DataType.NUMERIC_TYPES)


def _name_type(node: exp.Expr) -> str:
    """Names the type of an expression, with one name for all texts; empty if it is unknown."""
    kind = node.type
    if kind is None or kind.is_type(exp.DataType.Type.UNKNOWN):
        return ""
    is_text = kind.is_type(exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
    return "TEXT" if is_text and not kind.expressions else kind.sql()


def _have_one_type(items: list[exp.Expr | None]) -> bool:
    """Whether all expressions except NULL have one type, and it is known."""
    kinds = {_name_type(item) for item in items if item is not None and not is_null(item)}
    return len(kinds) == 1 and "" not in kinds


def _list_defaults(node: exp.Expr) -> list[exp.Expr]:
    return [node.this, *node.expressions] if isinstance(node, exp.Coalesce) else [node]


def _build_coalesce(items: list[exp.Expr]) -> exp.Expr:
    first, *rest = [item.copy() for item in items]
    return exp.Coalesce(this=first, expressions=rest)


def _build_case(branches: list[ChoiceBranch], otherwise: exp.Expr | None) -> exp.Expr:
    ifs = [exp.If(this=asked.copy(), true=given.copy()) for asked, given in branches]
    built = exp.Case(ifs=ifs, default=otherwise.copy() if otherwise is not None else None)
    built.type = branches[0].given.type
    return built


def _build_nullif(equal: exp.EQ, value: exp.Expr) -> exp.Expr | None:
    sides = [equal.this, equal.expression]
    if value not in sides:
        return None
    other = sides[1 - sides.index(value)]
    return exp.Nullif(this=value.copy(), expression=other.copy())
