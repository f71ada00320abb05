"""What of an edited model changes that its query does not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ci_bot.contracts.lineage.impact import HowChanged
from ci_bot.worker.review.column_impact.impact_definitions import (
    OF_THE_RUN,
    definition_of,
    own_statements,
)
from ci_bot.worker.rules.files.seed_rows import SeedRows
from ci_bot.worker.rules.sql.columns import known_types, retyped
from ci_bot.worker.statements.row_effects import statements_change_rows

_SAME_DATA = frozenset({"FULL", "VIEW", "EMBEDDED"})  # other storage, the same content
_WITHOUT_DATA = (
    *("partitioned_by", "clustered_by", "table_format", "storage_format", "physical_properties"),
    *("physical_schema", "physical_version", "virtual_environment_mode", "optimize_query"),
    "stamp",  # it is built again on request
    *("python_env", "jinja_macros", "columns_to_types_"),
)


_OF_INTERVALS = {
    "lookback": "Its lookback changes.",
    "interval_unit": "Its interval changes.",
}
_DECIDING = {"gateway": "It runs on another gateway."}


def changed_columns(
    before: Any, after: Any, seed_rows: SeedRows | None = None
) -> Iterator[tuple[str, HowChanged]]:
    """Columns that get another type, and those of a seed that hold other values.

    Args:
        seed_rows: how the rows of a seed differ, where its former text is known.
    """
    old, new = known_types(before) or {}, known_types(after) or {}
    for name, kind in old.items():
        if name in new and retyped(kind, new[name]) is not None:
            yield name, "retyped"
    if seed_rows is not None:
        yield from ((name, "computed") for name in seed_rows.columns)
    elif before.is_seed and after.is_seed:
        hashes = before.column_hashes, after.column_hashes
        yield from ((name, "computed") for name in _differing(*hashes))


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [name.lower() for name in old if name in new and old[name] != new[name]]


def beside_query(before: Any, after: Any, seed_rows: SeedRows | None = None) -> str | None:
    """What besides the query decides about a model's data and differs, as a sentence.

    Args:
        seed_rows: how the rows of a seed differ, where its former text is known.
    """
    kinds = {before.kind.model_kind_name.value, after.kind.model_kind_name.value}
    if before.kind.data_hash_values != after.kind.data_hash_values and not kinds <= _SAME_DATA:
        return "Its kind changes."
    if seed_rows is not None:
        return seed_rows.sentence
    if before.is_seed and after.is_seed:
        same = before.column_hashes.items() & after.column_hashes.items()
        return None if same or before.column_hashes == after.column_hashes else "Its rows change."
    deciding = _DECIDING if kinds <= _SAME_DATA else _DECIDING | _OF_INTERVALS
    found = next((told for name, told in deciding.items() if _differ(before, after, name)), None)
    statements = own_statements(before), own_statements(after)
    if found is None and statements_change_rows(*statements, after.dialect):
        found = "Statements before or after its query change, and they can change rows or values."
    if found is None and _hidden_code(before, after):
        found = "A macro changes that computes with the times of a run."
    seen = statements[0] != statements[1] or any(
        _differ(before, after, name) for name in ("query_", "kind", *_OF_INTERVALS, *_WITHOUT_DATA)
    )
    if found is None and not seen and not before.kind.is_external:
        found = "Something besides its query changes."
    return found


def _differ(before: Any, after: Any, name: str) -> bool:
    return bool(getattr(before, name, None) != getattr(after, name, None))


def _hidden_code(before: Any, after: Any) -> bool:
    """Whether code differs whose effect a rendering at loading time need not show."""
    old, new = (dict(node.python_env or {}) for node in (before, after))
    texts = [
        str(getattr(env.get(name), "payload", ""))
        for name in {*old, *new}
        if old.get(name) != new.get(name)
        for env in (old, new)
    ]
    definitions = [
        [item.sql() for item in getattr(node, "macro_definitions", ())] for node in (before, after)
    ]
    if definitions[0] != definitions[1]:
        texts += [*definitions[0], *definitions[1]]
    jinja = [_jinja_code(node) for node in (before, after)]
    if jinja[0] != jinja[1] and any(map(_is_jinja_of_the_run, (before, after))):
        return True
    return any(OF_THE_RUN.search(text) for text in texts)


def _jinja_code(node: Any) -> tuple[Any, ...]:
    """The macros of a model's Jinja and what they can read.

    What dbt says of the model itself (`model`: its path, checksum, time of parsing) differs with
    every edit and is no macro. Nor is what a registry keeps of its parsing, which counts for `==`.
    """
    registry = getattr(node, "jinja_macros", None)
    if registry is None:
        return ()
    read = {name: value for name, value in registry.global_objs.items() if name != "model"}
    return registry.packages, registry.root_macros, read


def _is_jinja_of_the_run(node: Any) -> bool:
    definition = definition_of(node)
    return definition.text is not None
