"""Spark's SQL if the parser's tree is not enough: precedence of operators, and special functions.

SQLMesh sends the rendering of SQLGlot's tree, which only has the brackets of the file. If SQLGlot
gives an operator another precedence than Spark's grammar (`SqlBaseParser.g4`), its tree is not what
Spark computes: SQLGlot reads `a + b % 2` as `(a + b) % 2`. This module corrects such a tree, or
reports a gap. `tests/integration/test_spark_precedence.py` compares this with Spark's parser.
Special functions are random ones, those that depend on the order of rows, and those that generate
rows. An operation that is in none of these lists, and unknown to the parser, is not understood.
`tests/integration/test_same_result_on_spark.py` compares the lists with Spark's own facts about its
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlglot import exp

from ci_bot.worker.sqlmesh_compat import WITH, find_known_classes_of_sqlglot

# How tightly Spark binds operators without brackets, from the loosest.
_OR, _AND, _NOT, _PREDICATE, _COMPARISON = range(5)
_BIT_OR, _BIT_XOR, _BIT_AND, _SUM, _PRODUCT, _SIGN, _WHOLE = range(5, 12)

# Operators between two values: each of them groups from left to right.
_VALUES: dict[type, int] = {
    exp.EQ: _COMPARISON,
    exp.NEQ: _COMPARISON,
    exp.GT: _COMPARISON,
    exp.GTE: _COMPARISON,
    exp.LT: _COMPARISON,
    exp.LTE: _COMPARISON,
    exp.BitwiseOr: _BIT_OR,
    exp.BitwiseXor: _BIT_XOR,
    exp.BitwiseAnd: _BIT_AND,
    exp.Add: _SUM,
    exp.Sub: _SUM,
    exp.DPipe: _SUM,
    exp.Mul: _PRODUCT,
    exp.Div: _PRODUCT,
    exp.IntDiv: _PRODUCT,
    exp.Mod: _PRODUCT,
}
_CONNECTORS: dict[type, int] = {exp.And: _AND, exp.Or: _OR}
# Tests that follow a value and give true or false; a second one cannot follow. SQLGlot writes `<=>`
# as IS NOT DISTINCT FROM, which is one of them.
_PREDICATES = find_known_classes_of_sqlglot(
    "Between Escape Glob ILike In Is Like NullSafeEQ NullSafeNEQ RegexpLike"
)
_SIGNS: tuple[type, ...] = (exp.Neg, exp.BitwiseNot)
_COMPARED_AS_NULL_SAFE = find_known_classes_of_sqlglot("NullSafeEQ NullSafeNEQ")
# Expressions that have their own end, or that brackets or commas end.
_CLOSED: tuple[type, ...] = (exp.Dot, exp.Collate, exp.Kwarg, exp.PropertyEQ, exp.Func)
# The operand of these is directly before a part that binds most tightly.
_TIGHT: tuple[type, ...] = (exp.Bracket, exp.Collate, exp.Dot)

_SETS: dict[type, int] = {exp.Union: 0, exp.Except: 0, exp.Intersect: 1}
_END_OF_SET = (WITH, "order", "limit", "offset")


def is_spark_dialect(name: str) -> bool:
    """Whether a name is Spark's dialect, perhaps with settings after a comma, or Spark's engine."""
    return name.partition(",")[0].strip().lower() in {"spark", "spark2", "databricks"}


# The frame of a window that has an order and no frame.
UP_TO_PEERS = "RANGE UNBOUNDED PRECEDING CURRENT ROW"
_UP_TO_ROW = "ROWS UNBOUNDED PRECEDING CURRENT ROW"
_ONLY_FRAMES: dict[type, str] = {
    exp.RowNumber: _UP_TO_ROW,
    exp.Rank: _UP_TO_ROW,
    exp.DenseRank: _UP_TO_ROW,
    exp.PercentRank: _UP_TO_ROW,
    exp.Ntile: _UP_TO_ROW,
    exp.CumeDist: UP_TO_PEERS,
    exp.Lag: "",
    exp.Lead: "",
}
_FRAME = ("kind", "start", "start_side", "end", "end_side", "exclude")


def enter_expression(node: exp.Expr, *kinds: type[exp.Expr]) -> exp.Expr:
    """Returns what is inside wrappers of these kinds, such as casts and brackets."""
    while isinstance(node, kinds) and isinstance(node.this, exp.Expression):
        node = node.this
    return node


def enter_casts(node: exp.Expr) -> exp.Expr:
    """Returns what is inside casts and brackets."""
    return enter_expression(node, exp.Cast, exp.TryCast, exp.Paren)


def find_only_frame(function: exp.Expr) -> str | None:
    """Returns the only frame that Spark accepts for a window function, spelled as by `spell_frame`.

    Empty if Spark accepts no frame, and None if it accepts any. Spark refuses the function with
    another frame.
    """
    return _ONLY_FRAMES.get(type(enter_expression(function, exp.IgnoreNulls, exp.RespectNulls)))


def spell_frame(frame: exp.Expr) -> str:
    """Returns the words of a frame, which ends at the current row if it names no end."""
    given = [*map(frame.args.get, _FRAME), *([] if frame.args.get("end") else ["CURRENT ROW"])]
    words = [str(one) for one in given if one and not isinstance(one, exp.Expression)]
    return " ".join(words).upper()


@dataclass(frozen=True)
class SparkReading:
    """A query as Spark reads it.

    Attributes:
        tree: the given query if Spark reads the same; otherwise a copy.
        gaps: parts that Spark may read in another way, and that were not corrected, in words.
    """

    tree: exp.Expr
    gaps: tuple[str, ...] = ()


def read_as_spark(tree: exp.Expr) -> SparkReading:
    """Returns the tree that Spark makes of the text of `tree`."""
    if not any(_reads_differently(node) for node in _walk_tree(tree)):
        return SparkReading(tree)
    copied = _put_sets_right(tree.copy())
    for node in list(_walk_tree(copied)):
        if type(node) in _VALUES and _reads_differently(node):
            copied = _put_operators_right(node, copied)
    gaps = {_describe_gap(node) for node in _walk_tree(copied) if _reads_differently(node)}
    return SparkReading(copied, tuple(sorted(gaps)))


def _walk_tree(tree: exp.Expr) -> Iterator[exp.Expr]:
    queue = [tree]
    while queue:
        node = queue.pop()
        yield node
        queue.extend(node.iter_expressions())


def _binding_level(node: exp.Expr) -> int:
    """Returns how tightly the text of a node holds together."""
    kind = type(node)
    if kind in _VALUES:
        return _VALUES[kind]
    if kind in _CONNECTORS:
        return _CONNECTORS[kind]
    if isinstance(node, _PREDICATES):
        return _PREDICATE
    if isinstance(node, exp.Not):
        return _NOT
    return _SIGN if isinstance(node, _SIGNS) else _WHOLE


def _reads_differently(node: exp.Expr) -> bool:
    """Whether Spark may read the operands of a node in another way than the tree."""
    kind: Any = type(node)
    check = _make_operator_check(kind)
    return check is not None and check(node)


@cache
def _make_operator_check(kind: Any) -> Callable[[Any], bool] | None:
    for kinds, check in (
        (tuple(_VALUES), _differs_as_value),
        (tuple(_CONNECTORS), _differs_as_connector),
        (exp.SetOperation, _differs_as_set),
        (_PREDICATES, _differs_as_predicate),
        (exp.Not, lambda node: _binding_level(node.this) < _NOT),
        (_SIGNS, lambda node: _binding_level(node.this) < _SIGN),
        (exp.Interval, lambda node: node.this is not None and _binding_level(node.this) < _SIGN),
        (
            _TIGHT,
            lambda node: (
                isinstance(node.this, exp.Expression) and _binding_level(node.this) < _WHOLE
            ),
        ),
        (exp.Join, _is_comma_before_outer),
    ):
        if issubclass(kind, kinds):
            return check
    # It is not known how tightly another operator binds.
    is_operator = issubclass(kind, exp.Binary) and not issubclass(kind, _CLOSED)
    return (lambda node: True) if is_operator else None


def _differs_as_value(node: exp.Expr) -> bool:
    level = _VALUES[type(node)]
    return _binding_level(node.this) < level or _binding_level(node.expression) <= level


def _differs_as_connector(node: exp.Expr) -> bool:
    level = _CONNECTORS[type(node)]
    return _binding_level(node.this) < level or _binding_level(node.expression) < level


def _differs_as_predicate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Escape):  # it ends the LIKE that is its operand
        return not isinstance(node.this, _PREDICATES) or _binding_level(node.expression) < _WHOLE
    if isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null | exp.Boolean):
        return True
    # Versions of SQLGlot that write `<=>` give it the precedence of a comparison.
    least = _BIT_OR if isinstance(node, _COMPARED_AS_NULL_SAFE) else _COMPARISON
    operands = [node.this, *(node.args.get(name) for name in ("expression", "low", "high"))]
    return any(isinstance(one, exp.Expression) and _binding_level(one) < least for one in operands)


def _differs_as_set(node: exp.Expr) -> bool:
    level = _SETS[type(node)]
    for branch, least in ((node.this, level), (node.expression, level + 1)):
        if isinstance(branch, exp.SetOperation) and (
            _SETS[type(branch)] < least or any(branch.args.get(end) for end in _END_OF_SET)
        ):
            return True
    return False


def _is_comma_before_outer(join: exp.Join) -> bool:
    """Whether a join is written as a comma: Spark puts it after all joins that follow."""
    if any(value for name, value in join.args.items() if name != "this"):
        return False
    later = list(join.parent.args.get("joins") or ()) if join.parent is not None else []
    place = next((place for place, other in enumerate(later) if other is join), len(later))
    return any(other.side in {"RIGHT", "FULL"} for other in later[place + 1 :])


def _describe_gap(node: exp.Expr) -> str:
    if isinstance(node, exp.SetOperation):
        return "set operations without brackets"
    if isinstance(node, exp.Join):
        return "a comma beside an outer join"
    return f"{node.key} beside other operators without brackets"


def _put_operators_right(node: exp.Expr, tree: exp.Expr) -> exp.Expr:
    """Returns `tree` with the operators around `node` as Spark reads them, or unchanged."""
    root = node
    while root.parent is not None and type(root.parent) in _VALUES:
        root = root.parent
    items = list(_flatten_operators(root, _VALUES))
    if any(_binding_level(item) < _SIGN for item in items[::2]):
        return tree
    for above in _iterate_ancestors(root):  # they were computed from another tree
        above._type = None
    place = root.parent, root.arg_key, root.index
    built = _climb_operators(items, _COMPARISON, _VALUES)
    return _put_in_place(built, place, tree)


def _flatten_operators(node: exp.Expr, levels: Mapping[type, int]) -> Iterator[exp.Expr]:
    """Yields operands and operators in the order of the text."""
    if type(node) not in levels:
        yield node
        return
    yield from _flatten_operators(node.this, levels)
    yield node
    yield from _flatten_operators(node.expression, levels)


def _climb_operators(items: list[exp.Expr], least: int, levels: Mapping[type, int]) -> exp.Expr:
    """Builds the tree of `items` by Spark's levels, from the first; removes those it used."""
    found = items.pop(0)
    while items and levels[type(items[0])] >= least:
        operator = items.pop(0)
        right = _climb_operators(items, levels[type(operator)] + 1, levels)
        left_out = {"this", "expression", *_END_OF_SET}
        rest = {k: v for k, v in operator.args.items() if k not in left_out}
        found = type(operator)(this=found, expression=right, **rest)
    return found


def _iterate_ancestors(node: exp.Expr | None) -> Iterator[exp.Expr]:
    while node is not None and not isinstance(node, exp.Query):
        yield node
        node = node.parent


def _put_sets_right(tree: exp.Expr) -> exp.Expr:
    """Returns `tree` with INTERSECT before UNION and EXCEPT."""
    roots = [
        node
        for node in _walk_tree(tree)
        if isinstance(node, exp.SetOperation) and not isinstance(node.parent, exp.SetOperation)
    ]
    for root in roots:
        items = list(_flatten_operators(root, _SETS))
        if not any(_differs_as_set(item) for item in items[1::2]) or any(
            item.args.get(end) for item in items[1::2] if item is not root for end in _END_OF_SET
        ):
            continue
        ends = {
            name: value
            for name, value in root.args.items()
            if name in _END_OF_SET and value is not None
        }
        place = root.parent, root.arg_key, root.index
        built = _climb_operators(items, 0, _SETS)
        for name, value in ends.items():
            built.set(name, value)
        tree = _put_in_place(built, place, tree)
    return tree


def _put_in_place(built: exp.Expr, place: tuple[Any, Any, Any], tree: exp.Expr) -> exp.Expr:
    parent, name, index = place
    if parent is None:
        return built
    parent.set(name, built, index)
    return tree


# Functions with another value at each evaluation, or with the answer of an AI model.
_DRAWN = find_known_classes_of_sqlglot(
    """
AIAgg AIClassify AIEmbed AIForecast AIGenerate AISimilarity AISummarizeAgg GenerateBool
GenerateDouble GenerateEmbedding GenerateInt GenerateTable GenerateText Generator NextValueFor
Normal Rand Randn Randstr Seq1 Seq2 Seq4 Seq8 Uniform Uuid Zipf
"""
)
# Functions whose value depends on the first row, if the order has ties or there is no order.
_ORDERED = find_known_classes_of_sqlglot(
    """
AnyValue ApproxPercentileAccumulate ApproxPercentileCombine ApproxQuantile ApproxQuantiles
ApproxTopK ApproxTopKAccumulate ApproxTopKCombine ApproxTopSum ArgMax ArgMin ArrayAgg
ArrayConcatAgg ArrayUnionAgg ArrayUniqueAgg First FirstValue GroupConcat JSONArrayAgg
JSONBObjectAgg JSONObjectAgg Lag Last LastValue Lead Mode NthValue Ntile ObjectAgg RowNumber
"""
)
# The parser calls these aggregates, but only windows use them: they do not total rows.
_PLACES: tuple[type, ...] = (
    exp.CumeDist,
    exp.DenseRank,
    exp.Lag,
    exp.Lead,
    exp.NthValue,
    exp.Ntile,
    exp.PercentRank,
    exp.Rank,
    exp.RowNumber,
)
_GENERATORS: tuple[type, ...] = (
    exp.UDTF,
    exp.Inline,
    exp.ExplodingGenerateSeries,
    exp.Aliases,
)
_NAMED_GENERATORS = frozenset({"flatten", "inline_outer", "json_tuple", "stack"})
# Functions of Spark that the parser does not know: one value for each row, and the same value for
# the same arguments.
_SCALARS = """
aes_decrypt array_repeat array_union arrays_overlap bigint bin binary bround btrim cardinality
conv crc32 date_part datepart decimal e expm1 find_in_set forall format_number from_csv from_json
get hash hypot isnotnull isnull json_array_length log1p luhn_check make_date make_dt_interval
make_timestamp_ltz make_timestamp_ntz make_ym_interval map_concat map_entries map_filter
map_values map_zip_with mask nanvl negative now octet_length pmod positive printf regexp
regexp_substr rint schema_of_csv schema_of_json sentences shiftrightunsigned smallint
timestamp_micros timestamp_millis timestamp_seconds tinyint to_csv to_timestamp_ltz
to_timestamp_ntz to_varchar transform_keys transform_values try_aes_decrypt try_to_binary
try_to_number try_to_timestamp url_decode url_encode weekday xpath xpath_boolean xpath_double
xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64 zip_with
"""
_TOTALS = frozenset({"every", "mean", "some", "std", "try_avg", "try_sum"})
_NAMED = frozenset(_SCALARS.split()) | _TOTALS

# Parts of expressions that are no functions and add no meaning of their own.
_PLAIN: tuple[type, ...] = (
    exp.AtTimeZone,
    exp.Binary,
    exp.Boolean,
    exp.Bracket,
    exp.ByteString,
    exp.Cast,
    exp.DataType,
    exp.Distinct,
    exp.Filter,
    exp.FromTimeZone,
    exp.HexString,
    exp.Identifier,
    exp.IgnoreNulls,
    exp.Interval,
    exp.JSONPath,
    exp.JSONPathPart,
    exp.Lambda,
    exp.Null,
    exp.Order,
    exp.RawString,
    exp.RespectNulls,
    exp.Slice,
    exp.Tuple,
    exp.Unary,
    exp.Var,
    exp.Where,
    exp.WithinGroup,
)


# They make a structure, whose fields take the names of the columns inside.
_STRUCTURES = find_known_classes_of_sqlglot("ArraysZip Struct Tuple")
# In these a row in brackets is compared or listed, and its fields have no names.
_WITHOUT_FIELDS = find_known_classes_of_sqlglot("Cube Group GroupingSets In Rollup Values")


def list_field_names(node: exp.Expr) -> tuple[str, ...]:
    """Lists the field names that a structure takes from the columns inside."""
    if type(node) not in _STRUCTURES or isinstance(node.parent, _WITHOUT_FIELDS):
        return ()
    parts = [node.this] if isinstance(node.this, exp.Expression) else []
    return tuple(_read_field_name(part) for part in (*parts, *node.expressions))


def _read_field_name(part: exp.Expr) -> str:
    part = enter_expression(part, exp.Paren, exp.Cast)
    if isinstance(part, exp.PropertyEQ):
        return str(part.this.name)
    return str(part.output_name)


def is_known(node: exp.Expr) -> bool:
    """Whether the value of `node` depends only on its parts and on the rows of the query."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _NAMED
    if isinstance(node, exp.AnonymousAggFunc | exp.CombinedAggFunc | exp.ParameterizedAgg):
        return False
    return isinstance(node, _PLAIN) or (isinstance(node, exp.Func) and not isinstance(node, _DRAWN))


def depends_on_order(node: exp.Expr) -> bool:
    """Whether the value may change if the order of rows changes."""
    return isinstance(node, _ORDERED)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function computes one value from the rows of a group."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _TOTALS
    return isinstance(node, exp.AggFunc) and not isinstance(node, _PLACES)


def generates_rows(node: exp.Expr) -> bool:
    """Whether a function in a SELECT list changes the number of rows."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _NAMED_GENERATORS
    return isinstance(node, _GENERATORS)
