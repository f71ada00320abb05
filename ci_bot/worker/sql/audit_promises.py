"""The promises of a model's audits, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.worker.sql.equivalence.blocks import KeyInterner, Term, TermKey, TermOperation
from ci_bot.worker.sql.equivalence.keys import KeySealer
from ci_bot.worker.sql.equivalence.translate_query import QueryTooLargeError, QueryTranslator
from ci_bot.worker.sql.spark_sql import is_spark_dialect
from ci_bot.worker.sqlmesh_compat import Tree

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_NOT_NULL = frozenset({"not_null", "not_null_non_blocking"})

_UNIQUE = frozenset({"unique_values", "unique_values_non_blocking"})

_TOGETHER = frozenset(
    {"unique_combination_of_columns", "unique_combination_of_columns_non_blocking"}
)


@dataclass(frozen=True)
class PartialPromise:
    """The promises of an audit with a condition: they only hold for rows that meet it."""

    not_null: Sequence[str]
    unique: Sequence[frozenset[str]]
    condition: str


@dataclass(frozen=True)
class AuditPromises:
    """The audits of one model.

    Attributes:
        not_null: columns that may not be null; true if a failure stops the run.
        unique: sets of columns that are unique together; true if a failure stops the run.
        other: every other audit by name and arguments; true if a failure stops the run.
        skipped: audits that the model has, but that are switched off.
        queries: the text of the project's own audits, by name.
        arguments: the arguments of each call in `other`, with the audit's own defaults.
        partial: the promises of SQLMesh's own audits for a part of the rows, by call in `other`.
    """

    not_null: Mapping[str, bool] = field(default_factory=dict)
    unique: Mapping[frozenset[str], bool] = field(default_factory=dict)
    other: Mapping[str, bool] = field(default_factory=dict)
    skipped: frozenset[str] = frozenset()
    queries: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    partial: Mapping[str, PartialPromise] = field(default_factory=dict)

    def makes_unique(self, key: frozenset[str]) -> bool:
        """Whether an audit promises that `key` identifies a row."""
        return any(columns <= key for columns in self.unique)

    def holds_for_all(self, promise: PartialPromise) -> bool:
        """Whether the audits promise for all rows what `promise` says about a part of them."""
        nulls = all(column in self.not_null for column in promise.not_null)
        return nulls and all(self.makes_unique(key) for key in promise.unique)


def read_audit_promises(model: Model) -> AuditPromises:
    """Reads the audits of `model`; an audit that cannot be resolved counts by its name."""
    definitions = model.audit_definitions
    not_null: dict[str, bool] = {}
    unique: dict[frozenset[str], bool] = {}
    other: dict[str, bool] = {}
    skipped: set[str] = set()
    queries: dict[str, str] = {}
    arguments: dict[str, Mapping[str, Any]] = {}
    partial: dict[str, PartialPromise] = {}
    calls = list(model.audits)
    calls += [(name, {}) for name in definitions if name not in {call for call, _ in calls}]
    for raw_name, given in calls:
        name = raw_name.lower()
        own = definitions.get(raw_name)
        args = given if own is None else {**own.defaults, **given}
        blocking = own.blocking if own is not None else not name.endswith("_non_blocking")
        blocking = _parse_flag(args.get("blocking"), blocking)
        if (own is not None and own.skip) or _parse_flag(args.get("skip"), False):
            skipped.add(name)
            continue
        if own is not None:
            queries[name] = own.query_.sql
        named = args.get("columns")
        if named is None:
            named = args.get("column")
        condition = _read_condition(args)
        nulls, keys = (
            _read_promised_columns(name, list_column_names(named)) if own is None else ([], [])
        )
        if condition is None and (nulls or keys):
            for column in nulls:
                not_null[column] = blocking or not_null.get(column, False)
            for key in keys:
                unique[key] = blocking or unique.get(key, False)
        else:
            base = name.removesuffix("_non_blocking")
            call = f"{base}({_render_arguments(args)})"
            other[call] = blocking
            if condition is not None and (nulls or keys):
                partial[call] = PartialPromise(nulls, keys, condition)
            arguments[call] = {k: v for k, v in args.items() if k not in {"blocking", "skip"}}
    return AuditPromises(not_null, unique, other, frozenset(skipped), queries, arguments, partial)


def _read_promised_columns(name: str, columns: list[str]) -> tuple[list[str], list[frozenset[str]]]:
    """Reads the columns that one of SQLMesh's own audits promises to be not null, and its keys."""
    if name in _NOT_NULL:
        return columns, []
    if name in _UNIQUE:
        return [], [frozenset({column}) for column in columns]
    return [], [frozenset(columns)] if name in _TOGETHER and columns else []


def _read_condition(args: Mapping[str, Any]) -> str | None:
    """Reads the condition on the rows that an audit checks; None for all rows, as for `true`."""
    condition = args.get("condition")
    if condition is None or str(getattr(condition, "this", condition)).lower() == "true":
        return None
    return _render_audit_value(condition)


def _parse_flag(value: Any, default: bool) -> bool:
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    if isinstance(value, exp.Boolean):  # it has no name
        return bool(value.this)
    return str(getattr(value, "name", value)).lower() not in {"false", "0", ""}


def _render_arguments(args: Mapping[str, Any]) -> str:
    shown = {
        name: value.sql() if hasattr(value, "sql") else str(value)
        for name, value in args.items()
        if name not in {"blocking", "skip"}
    }
    return ", ".join(f"{name}={value}" for name, value in sorted(shown.items()))


def list_column_names(value: Any) -> list[str]:
    """Lists the column names, in lower case, of an audit's argument, a grain or a key.

    A literal alone names a column. Inside an expression a literal is a value: `COALESCE(region,
    'none')` has one column.
    """
    items = value if isinstance(value, list | tuple) else [value]
    found: list[str] = []
    for item in items:
        if isinstance(item, str):
            found.append(item.lower())
        elif isinstance(item, exp.Literal | exp.Identifier):
            found.append(item.name.lower())
        elif isinstance(item, exp.Tuple | exp.Array | exp.Paren):
            found.extend(list_column_names(list(item.iter_expressions())))
        elif isinstance(item, exp.Expression):
            found.extend(column.name.lower() for column in item.find_all(exp.Column))
    return list(dict.fromkeys(found))


# Whether an audit became stricter or weaker, if its text shows that.
#
# An audit's query returns the wrong rows. The new query is stricter if it returns at least the rows
# that the old one returned.


Strictness = Literal["stricter", "weaker", "unknown"]
_RANGES = ("accepted_range", "string_length_between", "stddev_in_range", "mean_in_range")
# Whether a higher number, or more members, makes SQLMesh's own audits stricter: by audit and
# argument (`sqlmesh.core.audit.builtin`). For arguments that are missing here, a higher number may
# make the audit stricter or weaker.
_HIGHER = {
    ("number_of_rows", "threshold"): True,
    ("not_null_proportion", "threshold"): True,
    ("z_score", "threshold"): False,
    ("kl_divergence", "threshold"): False,
    **{(name, "min_v"): True for name in _RANGES},
    **{(name, "max_v"): False for name in _RANGES},
}
_MORE_MEMBERS = {
    ("accepted_values", "is_in"): False,
    ("not_accepted_values", "is_in"): True,
    ("forall", "criteria"): True,
    ("not_null", "columns"): True,
    ("unique_values", "columns"): True,
    ("unique_combination_of_columns", "columns"): False,
    ("match_regex_pattern_list", "patterns"): False,
    ("match_like_pattern_list", "patterns"): False,
    ("not_match_regex_pattern_list", "patterns"): True,
    ("not_match_like_pattern_list", "patterns"): True,
}
# These audits judge all rows together, so a condition that leaves rows out may hide a fault or
# cause one.
_OF_ALL_ROWS = frozenset(
    {
        "at_least_one",
        "chi_square",
        "kl_divergence",
        "mean_in_range",
        "mutually_exclusive_ranges",
        "not_constant",
        "not_null_proportion",
        "number_of_rows",
        "sequential_values",
        "stddev_in_range",
        "z_score",
    }
)


@dataclass(frozen=True)
class _NumberBound:
    """A comparison of a value with a number, such as `value > limit`."""

    kind: str
    value: TermKey
    limit: float
    is_upper: bool


@dataclass(frozen=True)
class _AuditCondition:
    """The condition that selects the wrong rows: its demands, alternatives, and bounds in both."""

    rest: tuple[object, ...]
    demands: Mapping[TermKey, _NumberBound | None]
    alternatives: Mapping[TermKey, _NumberBound | None]


def compare_audit_queries(old: str, new: str, dialect: str) -> Strictness:
    """Compares two versions of an audit's query; the same condition counts as stricter."""
    keys = KeyInterner()
    before, after = _parse_condition(old, dialect, keys), _parse_condition(new, dialect, keys)
    # All parts except the condition must be the same, otherwise there is no verdict.
    if before is None or after is None or before.rest != after.rest:
        return "unknown"
    # Fewer demands find more wrong rows, and more alternatives do so, too.
    verdict = _compare_inclusion(set(after.demands), set(before.demands))
    old_parts, new_parts = before.demands, after.demands
    if verdict is None and len(old_parts) == len(new_parts) == 1:
        old_parts, new_parts = before.alternatives, after.alternatives
        verdict = _compare_inclusion(set(old_parts), set(new_parts))
    return verdict or _compare_moved_bounds(old_parts, new_parts)


def bind_audit_arguments(text: str, arguments: Mapping[str, Any], dialect: str) -> str:
    """Replaces the variables of an audit's query by the values of a call, in SQLGlot's spelling.

    Returns the text unchanged if it cannot be parsed.
    """
    tree = _parse_audit(text, dialect)
    if tree is None:
        return text
    values = {name.lower(): value for name, value in arguments.items()}

    def bind_variable(node: exp.Expr) -> exp.Expr:
        value = values.get(node.name.lower()) if isinstance(node, d.MacroVar) else None
        return value.copy() if isinstance(value, Tree) else node

    return tree.transform(bind_variable).sql(dialect=dialect)


def _parse_audit(text: str, dialect: str) -> exp.Expr | None:
    try:
        return d.parse_one(text, dialect=dialect)
    except Exception:  # it is no SQL, or SQL on which the parser itself fails
        return None


def _compare_inclusion(less: set[TermKey], more: set[TermKey]) -> Strictness | None:
    if less <= more:
        return "stricter"
    return "weaker" if more < less else None


def _parse_condition(text: str, dialect: str, keys: KeyInterner) -> _AuditCondition | None:
    tree = _parse_audit(text, dialect)
    if not isinstance(tree, exp.Select) or tree.args.get("where") is None:
        return None
    try:
        reader = QueryTranslator({}, on_spark=is_spark_dialect(dialect))
        block = reader.translate_query(tree)
        terms, block.part.where = block.part.where, []
        # Both are numbered in the written order, so the conditions can be compared alone.
        sealer = KeySealer(keys)
        rest, names = sealer.seal_as_written(block)
        alternatives = _split_alternatives(terms)
        return _AuditCondition(
            (rest.rows, tuple(rest.outputs.items())),
            {keys.key_of_term(term, names): _find_bound(term, keys, names) for term in terms},
            {
                keys.key_of_term(term, names): _find_bound(term, keys, names)
                for term in alternatives
            },
        )
    except (RecursionError, QueryTooLargeError, KeyError):
        return None


def _split_alternatives(terms: list[Term]) -> list[Term]:
    only = terms[0] if len(terms) == 1 else None
    return list(only.parts) if isinstance(only, TermOperation) and only.op == "or" else terms


def _find_bound(term: Term, keys: KeyInterner, names: Any) -> _NumberBound | None:
    """Reads a comparison as a bound; None for any other term.

    Terms have only two comparisons, `lt` and `gte`, with the number on either side.
    """
    if not isinstance(term, TermOperation) or term.op not in {"lt", "gte"}:
        return None
    left, right = term.parts
    for value, limit, is_right in ((left, right, True), (right, left, False)):
        number = _read_number_of_term(limit)
        if number is not None:
            is_upper = is_right == (term.op == "lt")
            return _NumberBound(
                f"{term.op} {is_right}", keys.key_of_term(value, names), number, is_upper
            )
    return None


def _read_number_of_term(term: Term) -> float | None:
    if not isinstance(term, TermOperation):
        return None
    if term.op.startswith("neg("):
        number = _read_number_of_term(term.parts[0])
        return None if number is None else -number
    kind, _, text = term.op.partition(":")
    return float(text) if kind == "number" else None


def _compare_moved_bounds(
    old: Mapping[TermKey, _NumberBound | None], new: Mapping[TermKey, _NumberBound | None]
) -> Strictness:
    """Compares parts that compare the same values with other numbers."""
    gone = [old[key] for key in old if key not in new]
    added = [new[key] for key in new if key not in old]
    by_value = {(bound.kind, bound.value): bound for bound in added if bound is not None}
    verdicts: set[Strictness] = set()
    for bound in gone:
        later = by_value.pop((bound.kind, bound.value), None) if bound is not None else None
        if bound is None or later is None:
            return "unknown"
        more = later.limit > bound.limit if bound.is_upper else later.limit < bound.limit
        verdicts.add("stricter" if more else "weaker")
    return verdicts.pop() if len(verdicts) == 1 and len(gone) == len(added) else "unknown"


def _read_number_of_tree(node: exp.Expr | None) -> float | None:
    sign = 1.0
    if isinstance(node, exp.Neg):
        sign, node = -1.0, node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return sign * float(node.this)
    return None


def compare_audit_arguments(
    audit: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Strictness:
    """Compares two calls of the same audit; "unknown" if the audit is none of SQLMesh's own."""
    name = audit.removesuffix("_non_blocking")
    old, new = _drop_defaults(old), _drop_defaults(new)
    verdicts = {
        _compare_argument(name, argument, old.get(argument), new.get(argument))
        for argument in old.keys() | new.keys()
        if argument not in old
        or argument not in new
        or _render_audit_value(old[argument]) != _render_audit_value(new[argument])
    }
    if not verdicts:
        return "stricter"  # as strict as before
    return verdicts.pop() if len(verdicts) == 1 else "unknown"


def _drop_defaults(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drops arguments that have their default value: all rows, no bound, bounds included."""
    return {
        name: value
        for name, value in arguments.items()
        if not isinstance(value, exp.Null)
        and not (name == "condition" and _read_condition(arguments) is None)
        and not (name == "inclusive" and _parse_flag(value, True))
    }


def are_same_arguments(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two calls have the same arguments; their spelling may differ."""
    return set(old) == set(new) and all(
        _render_audit_value(old[name]) == _render_audit_value(new[name]) for name in old
    )


def _compare_argument(audit: str, name: str, old: Any, new: Any) -> Strictness:
    """Compares one argument of two calls; None means its default."""
    if name == "condition":
        return "unknown" if audit in _OF_ALL_ROWS else _compare_conditions(old, new)
    if (
        audit in _RANGES
        and (old is None or new is None)
        and name in {"inclusive", "min_v", "max_v"}
    ):
        return "weaker" if new is None else "stricter"
    if old is None or new is None:
        return "unknown"
    if (higher := _HIGHER.get((audit, name))) is not None:
        before, after = _read_number_of_tree(old), _read_number_of_tree(new)
        if before is None or after is None:
            return "unknown"
        return "stricter" if (after > before) == higher else "weaker"
    more = _MORE_MEMBERS.get((audit, name))
    return "unknown" if more is None else _compare_members(old, new, more_is_stricter=more)


def _compare_members(old: Any, new: Any, *, more_is_stricter: bool) -> Strictness:
    was, now = _list_members(old), _list_members(new)
    if not (was <= now or now <= was):
        return "unknown"
    return "stricter" if (was <= now) == more_is_stricter else "weaker"


def _compare_conditions(old: Any, new: Any) -> Strictness:
    """Compares the conditions of two calls; None means that the audit checks all rows."""
    if old is None or new is None:
        return "stricter" if new is None else "weaker"
    before, after = (exp.select("*").from_("t").where(value).sql() for value in (old, new))
    return compare_audit_queries(before, after, dialect="")


def _list_members(value: exp.Expr) -> set[str]:
    inner = value.unnest() if isinstance(value, exp.Expression) else value
    items = getattr(inner, "expressions", None) or [inner]
    return {_render_audit_value(item) for item in items}


def _render_audit_value(value: exp.Expr) -> str:
    """Renders a value as text: names in lower case, texts unchanged."""
    if not isinstance(value, exp.Expression):
        return str(value)
    spelled = value.copy()
    for name in spelled.find_all(exp.Identifier):
        name.replace(exp.to_identifier(name.name.lower()))
    return spelled.sql()
