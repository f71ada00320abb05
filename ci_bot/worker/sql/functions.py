"""Functions with more than a plain value: random ones, ones that depend on the order of rows, and
ones that make rows.

An operation in none of these lists, and unknown to the parser, is not understood.
`tests/integration/test_same_result_on_spark.py` compares the lists with Spark's own facts about its
functions.
"""

from __future__ import annotations

from sqlglot import exp

from ci_bot.worker.sqlmesh_compat import find_known_classes

# Another value at each evaluation, or the answer of an AI model.
_DRAWN = find_known_classes(
    """
AIAgg AIClassify AIEmbed AIForecast AIGenerate AISimilarity AISummarizeAgg GenerateBool
GenerateDouble GenerateEmbedding GenerateInt GenerateTable GenerateText Generator NextValueFor
Normal Rand Randn Randstr Seq1 Seq2 Seq4 Seq8 Uniform Uuid Zipf
"""
)
# A value that depends on the first row, if the order has ties or there is no order.
_ORDERED = find_known_classes(
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
_GENERATORS: tuple[type, ...] = (exp.UDTF, exp.Inline, exp.ExplodingGenerateSeries)
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


# They make a structure. Its fields take the names of the columns inside.
_STRUCTURES = find_known_classes("ArraysZip Struct Tuple")
# There a row in brackets is compared or listed, and its fields have no names.
_WITHOUT_FIELDS = find_known_classes("Cube Group GroupingSets In Rollup Values")


def list_field_names(node: exp.Expr) -> tuple[str, ...]:
    """Lists the field names that a structure takes from the columns inside."""
    if type(node) not in _STRUCTURES or isinstance(node.parent, _WITHOUT_FIELDS):
        return ()
    parts = [node.this] if isinstance(node.this, exp.Expression) else []
    return tuple(_read_field_name(part) for part in (*parts, *node.expressions))


def _read_field_name(part: exp.Expr) -> str:
    while isinstance(part, exp.Paren | exp.Cast):
        part = part.this
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
    """Whether the value may change if rows come in another order."""
    return isinstance(node, _ORDERED)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function computes one value from the rows of a group."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _TOTALS
    return isinstance(node, exp.AggFunc) and not isinstance(node, _PLACES)


def generates_rows(node: exp.Expr) -> bool:
    """Whether a function in a SELECT list changes the number of rows."""
    return isinstance(node, _GENERATORS)
