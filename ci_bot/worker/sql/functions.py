"""What functions do beside giving a value: draw lots, look at the order of rows, make rows.

An operation that stands in none of these lists, and is no function that the parser knows, is not
understood. `tests/integration/test_same_result_on_spark.py` holds the lists against what Spark
says of its functions.
"""

from __future__ import annotations

from sqlglot import exp

from ci_bot.worker.sqlmesh_compat import find_known_classes

# Another value at each evaluation, or from a model that somebody else runs.
_DRAWN = find_known_classes(
    """
AIAgg AIClassify AIEmbed AIForecast AIGenerate AISimilarity AISummarizeAgg GenerateBool
GenerateDouble GenerateEmbedding GenerateInt GenerateTable GenerateText Generator NextValueFor
Normal Rand Randn Randstr Seq1 Seq2 Seq4 Seq8 Uniform Uuid Zipf
"""
)
# A value that depends on which row comes first where the order leaves ties, or none is given.
_ORDERED = find_known_classes(
    """
AnyValue ApproxPercentileAccumulate ApproxPercentileCombine ApproxQuantile ApproxQuantiles
ApproxTopK ApproxTopKAccumulate ApproxTopKCombine ApproxTopSum ArgMax ArgMin ArrayAgg
ArrayConcatAgg ArrayUnionAgg ArrayUniqueAgg First FirstValue GroupConcat JSONArrayAgg
JSONBObjectAgg JSONObjectAgg Lag Last LastValue Lead Mode NthValue Ntile ObjectAgg RowNumber
"""
)
# Aggregates by the parser's tree that only windows have: they total nothing.
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
# Functions of Spark that the parser does not know: each gives one value for each row, the same for
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

# Parts of expressions that are no functions, and mean what their parts mean.
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


# They make a structure, whose fields are called as what they are made of.
_STRUCTURES = find_known_classes("ArraysZip Struct Tuple")
# A row in brackets is compared or listed there, and its fields have no names.
_WITHOUT_FIELDS = find_known_classes("Cube Group GroupingSets In Rollup Values")


def list_field_names(node: exp.Expr) -> tuple[str, ...]:
    """The names that the value of `node` takes over from the columns that it is made of."""
    if type(node) not in _STRUCTURES or isinstance(node.parent, _WITHOUT_FIELDS):
        return ()
    parts = [node.this] if isinstance(node.this, exp.Expression) else []
    return tuple(_read_function_name(part) for part in (*parts, *node.expressions))


def _read_function_name(part: exp.Expr) -> str:
    while isinstance(part, exp.Paren | exp.Cast):
        part = part.this
    if isinstance(part, exp.PropertyEQ):
        return str(part.this.name)
    return str(part.output_name)


def is_known(node: exp.Expr) -> bool:
    """Whether the value of `node` follows from its parts and the rows that it stands on."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _NAMED
    if isinstance(node, exp.AnonymousAggFunc | exp.CombinedAggFunc | exp.ParameterizedAgg):
        return False
    return isinstance(node, _PLAIN) or (isinstance(node, exp.Func) and not isinstance(node, _DRAWN))


def looks_at_order(node: exp.Expr) -> bool:
    """Whether the value may change with the order in which rows come."""
    return isinstance(node, _ORDERED)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function makes one value of the rows of a group."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _TOTALS
    return isinstance(node, exp.AggFunc) and not isinstance(node, _PLACES)


def makes_rows(node: exp.Expr) -> bool:
    """Whether a function in a list of results makes another number of rows."""
    return isinstance(node, _GENERATORS)
