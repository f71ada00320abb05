"""The columns that queries read: their types, and which of them have personal data.

Types are followed down to the tables that declare them. Columns with personal data are found by
their names and by the columns from which they are computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.worker.duckdb_trials import (
    SourceTable,
    UntriedError,
    ValueType,
    parse_duckdb_plainly,
    read_duckdb_columns,
    write_duckdb_query,
)
from ci_bot.worker.sql import (
    ModelQueries,
    ScopedQuery,
    ScopedSelect,
    plain_name,
    read_selects,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

TypesByColumn = Mapping[str, ValueType]
# SQLGlot's word for an unknown type.
_UNKNOWN = "unknown"
# Clauses of a SELECT that give no column its type.
_CHOOSING_CLAUSES = ("where", "having", "qualify", "order", "limit", "offset", "sort")
# The type of a column is followed through at most this many models.
_MOST_LEVELS = 6


class SourceTables:
    """The columns of tables: from SQLMesh, and then from the queries of their models.

    If no model declares a type, SQLMesh takes SQLGlot's type. SQLGlot knows no type for many
    expressions, and has a wrong type for some (a product of decimals has more digits in Spark). The
    judge on DuckDB knows Spark's types, so types come from a model's own query, down to tables with
    declared types.
    """

    def __init__(
        self, before: Mapping[str, Model], after: Mapping[str, Model], queries: ModelQueries
    ) -> None:
        self._before = before
        self._after = after
        self._queries = queries
        # The type of a column from a model's query, by model, column and levels that are left,
        # because many readers need the same columns.
        self._known: dict[tuple[int, str, int], ValueType | None] = {}

    def read_tables(
        self,
        models: Iterable[Model],
        queries: Iterable[exp.Expr],
        new_names: Mapping[str, str],
    ) -> dict[str, TypesByColumn]:
        """Reads the columns of all tables that models read, by the tables' names.

        If the change gives a column another type, the column has no type here.

        Args:
            models: the readers.
            queries: the readers' queries; only the columns that they name are followed.
            new_names: the new names of renamed models, by their old names.
        """
        used = _UsedColumns()
        for query in queries:
            used.add_query(query)
        return self._read_tables(models, used, new_names, _MOST_LEVELS)

    def _read_tables(
        self,
        models: Iterable[Model],
        used: _UsedColumns,
        new_names: Mapping[str, str],
        levels: int,
    ) -> dict[str, TypesByColumn]:
        found: dict[str, dict[str, ValueType]] = {}
        for model in self._list_with_embedded(models):
            for name, columns in iterate_schema_tables(model.mapping_schema):
                known = found.setdefault(new_names.get(name, name), {})
                for column, kind in read_duckdb_columns(columns).items():
                    if known.setdefault(column, kind) != kind:
                        known[column] = ValueType(f"{known[column]} and {kind}")
        for name, columns in found.items():
            guessed = used.list_to_verify(name, columns) if levels else set()
            if guessed:
                read = self._read_definitions(name, guessed, levels - 1)
                columns |= {one: read[one] for one in guessed if one in read}
        return dict(found)

    def _list_with_embedded(self, models: Iterable[Model]) -> list[Model]:
        """Lists the models and the embedded models whose queries theirs contain.

        A model's own schema has only the tables that the model itself names.
        """
        found: dict[int, Model] = {}
        pending = list(models)
        while pending:
            model = pending.pop(0)
            if id(model) in found:
                continue
            found[id(model)] = model
            for side in (self._before, self._after):
                parents = (side[name] for name in sorted(model.depends_on) if name in side)
                pending += [parent for parent in parents if parent.kind.is_embedded]
        return list(found.values())

    def _read_definitions(self, name: str, wanted: set[str], levels: int) -> dict[str, ValueType]:
        """Reads the types of columns from the queries of a model, if both versions agree."""
        sides = [
            self._read_definition(model, wanted, levels)
            for models in self._models_by_name
            if (model := models.get(name)) is not None
        ]
        if not sides:
            return {}
        return {
            column: kind
            for column, kind in sides[0].items()
            if all(side.get(column) == kind for side in sides)
        }

    def _read_definition(self, model: Model, wanted: set[str], levels: int) -> dict[str, ValueType]:
        """Reads the types of columns from a model's query; each type is derived once."""
        missing = {one for one in wanted if (id(model), one, levels) not in self._known}
        if missing:
            found = self._derive_types(model, missing, levels)
            if found is None and len(missing) > 1:
                # One column that the judge does not know must not hide the others.
                found = {}
                for column in sorted(missing):
                    found |= self._derive_types(model, {column}, levels) or {}
            self._known |= {(id(model), one, levels): (found or {}).get(one) for one in missing}
        known_types = {one: self._known[id(model), one, levels] for one in wanted}
        return {one: kind for one, kind in known_types.items() if kind is not None}

    def _derive_types(
        self, model: Model, wanted: set[str], levels: int
    ) -> dict[str, ValueType] | None:
        """Derives the types of some columns; None if the judge does not know all parts of them."""
        query = self._queries.query_of(model)
        # SQLMesh casts columns to the types that a model declares.
        if query is None or query.rendered_apart is None or model.columns_to_types_ is not None:
            return {}
        tree = _drop_conditions(_keep_read_columns_of_query(query.rendered_apart, wanted))
        used = _UsedColumns()
        used.add_query(tree)
        tables = self._read_tables([model], used, {}, levels)
        sources = {name: SourceTable(name, columns) for name, columns in tables.items()}
        try:
            written = write_duckdb_query(
                parse_duckdb_plainly(tree.sql(dialect="spark", comments=False)), sources
            )
        except UntriedError:
            return None
        return {name.lower(): kind for name, kind in written.columns}

    @cached_property
    def _models_by_name(self) -> list[dict[str, Model]]:
        """Holds the head's models, and the base's models that differ, each by plain name."""
        before, after = self._before, self._after
        changed = {name: model for name, model in before.items() if after.get(name) is not model}
        return [{plain_name(name): one for name, one in side.items()} for side in (after, changed)]


def _keep_read_columns_of_query(query: exp.Query, wanted: set[str]) -> exp.Query:
    """Keeps only the wanted columns of a query, if the meaning of these stays the same."""
    kept = [item for item in query.selects if item.alias_or_name.lower() in wanted]
    if not isinstance(query, exp.Select) or query.args.get("distinct") or not kept:
        return query
    return query.select(*kept, append=False)


def _drop_conditions(query: exp.Query) -> exp.Query:
    """Copies a query without the clauses that choose and order rows.

    The type of no column depends on them, and each column in a condition would have to be followed
    through the models above.
    """
    copied = query.copy()
    for select in list(copied.find_all(exp.Select)):
        for clause in _CHOOSING_CLAUSES:
            select.set(clause, None)
        for join in select.args.get("joins") or ():
            if join.args.get("on") is not None:
                join.set("on", exp.true())
    return copied


class _UsedColumns:
    """The columns that queries use, by table; the table is `""` if it is unknown."""

    def __init__(self) -> None:
        self._named: dict[str, set[str]] = {}
        # Columns whose own digits count, because a query does more with them than to cast them to a
        # number.
        self._computed: dict[str, set[str]] = {}

    def add_query(self, query: exp.Expr) -> None:
        """Adds the columns of a query whose names are qualified, as SQLMesh renders it."""
        for select in read_selects(query).selects:
            for column in select.find_all(exp.Column):
                source = select.find_source(column)
                if isinstance(source, ScopedQuery):
                    continue
                table = table_name(source) if source is not None else ""
                self._named.setdefault(table, set()).add(column.name.lower())
                if not _is_cast_to_number(column.parent):
                    self._computed.setdefault(table, set()).add(column.name.lower())

    def list_to_verify(self, table: str, columns: TypesByColumn) -> set[str]:
        """Lists those of `columns` that a query uses and whose types SQLGlot may have guessed."""
        found: set[str] = set()
        for key in ("", table):
            named, computed = self._named.get(key, set()), self._computed.get(key, set())
            found |= {one for one in named & columns.keys() if columns[one].name == _UNKNOWN}
            found |= {one for one in computed & columns.keys() if columns[one].is_numeric}
        return found


def _is_cast_to_number(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Cast | exp.TryCast) and node.to.is_type(*exp.DataType.NUMERIC_TYPES)


def iterate_schema_tables(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields (name, columns by name) from SQLMesh's mapping of catalogs, schemas and tables."""
    for name, inner in schema.items():
        if not isinstance(inner, Mapping):
            continue
        if any(isinstance(one, Mapping) for one in inner.values()):
            for rest, columns in iterate_schema_tables(inner):
                yield f"{plain_name(name)}.{rest}", columns
        else:
            yield plain_name(name), inner


# Usual names of columns that identify a person or hold sensitive facts: the identifiers of HIPAA's
# safe harbour (45 CFR 164.514(b)(2)) and the special categories of the GDPR (articles 4 and 9).
_PERSONAL = re.compile(
    r"(^|_)("
    r"e_?mail(_?addr(ess)?)?|phone(_?(no|number))?|mobile(_?(no|number))?|telephone|msisdn|fax|"
    r"(first|last|full|family|given|middle|maiden|sur|customer|patient|employee|person|contact|"
    r"user|holder|recipient|student|pupil|teacher|member|guest|passenger|driver|rider|client|"
    r"subscriber|applicant|tenant|inspector|technician|nurse|doctor|physician|therapist|cashier|"
    r"clerk|donor|visitor|attendee|manager|supervisor|instructor|trainer|mechanic|cardholder|"
    r"spouse)_?name|surname|firstname|lastname|fullname|nickname|"
    r"street(_?(address|name|no|number))?|"
    r"(home|postal|mailing|billing|shipping|delivery)_?address|address(_?line)?_?\d?|"
    r"(post|postal|zip)_?codes?|zip|"
    r"birth_?(date|day|place)|(date|place)_of_birth|dob|date_of_death|death_?date|"
    r"ssn|social_security(_?(no|number))?|(passport|visa)(_?(no|number))?|"
    r"(national|citizen|resident)_id|tax_?(id|no|number)|vat_?id|national_insurance(_?(no|number))?|"
    r"(insurance|health_?plan|beneficiary|member|policy)_?(no|number)|nhs_?(no|number)|mrn|"
    r"iban|bic|(credit_?)?card_?(no|number)|account_?(no|number)|pan|cvv|"
    r"ip_?address|ip_?addr|mac_?address|imei|imsi|idfa|gaid|advertising_?id|device_?(id|serial)|"
    r"license_?plate|(number|licen[cs]e)_?plate|vin|drivers?_?licen[cs]e|"
    r"salary|wage|income|credit_?score|"
    r"religion|ethnicity|race|nationality|citizenship|marital_?status|sexual_orientation|"
    r"political_(party|view|opinion)|union_member(ship)?|disability|"
    r"diagnos(is|es)|icd(_?10)?(_?code)?|medical_record|blood_?(type|group)|prescription|"
    r"gender|sex|biometric|finger_?print|face_?(id|print)|"
    r"geo_?(lat|lon)|gps|latitude|longitude"
    r")($|_(raw|clean|norm|normalized|lower|upper|hash_source|plain|text)$)",
    re.IGNORECASE,
)
_OF_CONTRACT = re.compile(r"(\w+_)?(member|policy)_?(no|number)", re.IGNORECASE)
# Facts that only a natural person has: in such a table, `name` is the name of a person.
_OF_PEOPLE = re.compile(
    r"(^|_)(birth_?(date|day|place)|(date|place)_of_birth|dob|first_?name|last_?name|surname|"
    r"ssn|passport(_?(no|number))?|gender|marital_?status|nationality)$",
    re.IGNORECASE,
)
# A digest, a count or a flag of personal data does not show the data.
_HIDES = (exp.MD5, exp.MD5Digest, exp.SHA, exp.SHA2, exp.Count, exp.CountIf, exp.Is, exp.Length)
_HIDING_NAMES = frozenset(
    {"hash", "xxhash64", "sha", "sha1", "sha2", "sha256", "md5", "mask", "crc32", "tokenize",
     "encrypt", "aes_encrypt", "hmac", "anonymize", "redact"}
)  # fmt: skip
_SUFFIX = re.compile(
    r"_(hash|hashed|sha\d*|md5|masked|token|count|cnt|flag|valid|verified|opt_in)$"
)


def is_personal(name: str) -> bool:
    """Whether the name of a column shows that it holds personal data."""
    lowered = name.lower()
    return bool(_PERSONAL.search(lowered)) and not _SUFFIX.search(lowered)


def is_number_of_contract(name: str) -> bool:
    """Whether the name of a column says that it has the number of a member or of a policy."""
    return _OF_CONTRACT.fullmatch(name) is not None


def list_exposed_columns(model: Model, queries: ModelQueries | None = None) -> dict[str, str]:
    """Maps result columns with personal data to their source columns, or "" if unknown."""
    if model is None or model.kind.is_external:
        return {}
    query = (queries or ModelQueries()).query_of(model)
    people = _list_tables_of_people(model)
    if query is not None:
        words = {str(node.this) for node in query.tree.find_all(exp.Identifier)}
        named = bool(people) and "name" in map(str.lower, words)
        if not (named or any(map(is_personal, words)) or query.hides_structure):
            return {}
    if query is not None and query.root:
        found: dict[str, str] = {}
        for branch in query.root.branches:
            for name, item in branch.results:
                source = _find_personal_source(name, item, branch, people)
                if source is not None and name:
                    found.setdefault(name, source)
        return found
    return {name.lower(): "" for name in model.columns_to_types or {} if is_personal(name)}


def list_query_names(model: Model | None, queries: ModelQueries | None = None) -> set[str]:
    """Lists every name in a model's query, in lower case; empty without a query."""
    query = (queries or ModelQueries()).query_of(model) if model is not None else None
    return (
        {str(node.this).lower() for node in query.tree.find_all(exp.Identifier)} if query else set()
    )


def trace_column_sources(
    model: Model, queries: ModelQueries | None = None
) -> dict[str, set[tuple[str, str]]]:
    """Maps each result column to the (table, column) pairs from which it is computed."""
    query = (queries or ModelQueries()).query_of(model)
    branches = query.root.branches if query is not None else ()
    names = {name for branch in branches for name in branch.names}
    return {name: query.root.find_origins(name) for name in names} if query is not None else {}


def _list_tables_of_people(model: Model) -> frozenset[str]:
    """Lists the tables that a model reads and that have a row for each natural person."""
    return frozenset(
        name.lower()
        for name, columns in iterate_schema_tables(model.mapping_schema)
        if any(_OF_PEOPLE.search(column) for column in columns)
    )


def _find_personal_source(
    own: str, inner: exp.Expr, branch: ScopedSelect, people: frozenset[str]
) -> str | None:
    if _is_hidden(inner):
        return None
    for table, column in sorted(branch.find_origins(inner)):
        named = column.lower() == "name" and table.lower() in people
        if (named or is_personal(column)) and not _hides_every_column(inner):
            return f"{table}.{column}" if table else column
    return "" if is_personal(own) and not isinstance(inner, exp.Literal | exp.Null) else None


def _is_hidden(node: exp.Expr) -> bool:
    if isinstance(node, _HIDES) or _is_mail_domain(node):
        return True
    if isinstance(node, exp.Anonymous | exp.Func) and node.sql_name().lower() in _HIDING_NAMES:
        return True
    if isinstance(node, exp.Anonymous) and node.name.lower() in _HIDING_NAMES:
        return True
    # A condition shows no value.
    return isinstance(node, exp.Predicate | exp.Boolean | exp.Not)


def _is_mail_domain(node: exp.Expr) -> bool:
    """Whether only the text after an @ remains: a mail provider, but no person."""
    if isinstance(node, exp.SplitPart):
        return (
            _is_at_sign(node.args.get("delimiter"))
            and _read_literal_number(node.args.get("part_index")) in _LAST
        )
    if isinstance(node, exp.SubstringIndex):
        return (
            _is_at_sign(node.args.get("delimiter"))
            and _read_literal_number(node.args.get("count")) == -1
        )
    if isinstance(node, exp.Bracket):
        split = node.this
        place = _read_literal_number(node.expressions[0]) if len(node.expressions) == 1 else None
        first = node.args.get("offset") or 0
        return (
            isinstance(split, exp.Split | exp.RegexpSplit)
            and _is_at_sign(split.args.get("expression"))
            and place is not None
            and (place == -1 or place - first == 1)
        )
    if isinstance(node, exp.RegexpExtract):
        return str(node.expression.name).lstrip("^.*").startswith(("@(", "(?<=@)"))
    if isinstance(node, exp.Substring):
        start = node.args.get("start")
        found = start.this if isinstance(start, exp.Add) else None
        return isinstance(found, exp.StrPosition) and _is_at_sign(found.args.get("substr"))
    return False


_LAST = frozenset({2, -1})


def _is_at_sign(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and node.name == "@"


def _read_literal_number(node: exp.Expr | None) -> int | None:
    sign = -1 if isinstance(node, exp.Neg) else 1
    bare = node.this if isinstance(node, exp.Neg) else node
    return sign * int(bare.name) if isinstance(bare, exp.Literal) and bare.is_int else None


def _hides_every_column(node: exp.Expr) -> bool:
    """Whether every column of an expression is inside a function that hides it."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(_is_hidden_inside(column, node) for column in columns)


def _is_hidden_inside(column: exp.Column, root: exp.Expr) -> bool:
    current = column.parent
    while current is not None:
        if _is_hidden(current):
            return True
        if isinstance(current, exp.Case | exp.If):
            return False
        if current is root:
            return False
        current = current.parent
    return False
