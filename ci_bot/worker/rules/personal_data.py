"""Columns with personal data, found by their names and by the columns that they come from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.worker.sql import ModelQueries, find_origins, list_outer_scopes

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope
    from sqlmesh.core.model import Model

# Usual names of columns that identify a person or hold sensitive facts: the identifiers of HIPAA's
# safe harbour (45 CFR 164.514(b)(2)) and the special categories of the GDPR (articles 4 and 9).
_PERSONAL = re.compile(
    r"(^|_)("
    r"e_?mail(_?addr(ess)?)?|phone(_?(no|number))?|mobile(_?(no|number))?|telephone|msisdn|fax|"
    r"(first|last|full|family|given|middle|maiden|sur|customer|patient|employee|person|contact|"
    r"user|holder|recipient)_?name|surname|firstname|lastname|fullname|nickname|"
    r"(street|home|postal|mailing|billing|shipping|delivery)(_?address)?|address(_?line)?_?\d?|"
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
    """Whether a column of that name holds personal data."""
    lowered = name.lower()
    return bool(_PERSONAL.search(lowered)) and not _SUFFIX.search(lowered)


def list_exposed_columns(model: Model, queries: ModelQueries | None = None) -> dict[str, str]:
    """Lists result columns with personal data, and the source column of each ("" if unknown)."""
    if model is None or model.kind.is_external:
        return {}
    query = (queries or ModelQueries()).query_of(model)
    if query is not None:
        words = (node.this for node in query.tree.find_all(exp.Identifier))
        if not any(is_personal(word) for word in words) and not query.hides_structure:
            return {}
    if query is not None and query.root is not None:
        found: dict[str, str] = {}
        for branch in list_outer_scopes(query.root):
            for item in branch.expression.expressions:
                source = _find_personal_source(item, branch)
                if source is not None and item.alias_or_name:
                    found.setdefault(item.alias_or_name.lower(), source)
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
    """Finds the (table, column) pairs from which each result column is computed."""
    query = (queries or ModelQueries()).query_of(model)
    found: dict[str, set[tuple[str, str]]] = {}
    if query is not None and query.root is not None:
        for branch in list_outer_scopes(query.root):
            for item in branch.expression.expressions:
                name = item.alias_or_name.lower()
                found.setdefault(name, set()).update(find_origins(branch, item.unalias()))
    return found


def _find_personal_source(item: exp.Expr, branch: Scope) -> str | None:
    inner = item.unalias()
    if _is_hidden(inner):
        return None
    for table, column in sorted(find_origins(branch, inner)):
        if is_personal(column) and not _hides_every_column(inner):
            return f"{table}.{column}" if table else column
    own = item.alias_or_name
    return "" if is_personal(own) and not isinstance(inner, exp.Literal | exp.Null) else None


def _is_hidden(node: exp.Expr) -> bool:
    if isinstance(node, _HIDES) or _is_mail_domain(node):
        return True
    if isinstance(node, exp.Anonymous | exp.Func) and node.sql_name().lower() in _HIDING_NAMES:
        return True
    if isinstance(node, exp.Anonymous) and node.name.lower() in _HIDING_NAMES:
        return True
    # A condition on a value does not show the value.
    return isinstance(node, exp.Predicate | exp.Boolean | exp.Not)


def _is_mail_domain(node: exp.Expr) -> bool:
    """Whether only the text after an @ remains: a mail provider, and no person."""
    if isinstance(node, exp.SplitPart):
        return (
            _is_at_sign(node.args.get("delimiter"))
            and _parse_number(node.args.get("part_index")) in _LAST
        )
    if isinstance(node, exp.SubstringIndex):
        return (
            _is_at_sign(node.args.get("delimiter")) and _parse_number(node.args.get("count")) == -1
        )
    if isinstance(node, exp.Bracket):
        split = node.this
        place = _parse_number(node.expressions[0]) if len(node.expressions) == 1 else None
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


def _parse_number(node: exp.Expr | None) -> int | None:
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
