"""The values that SQLMesh reads from a seed's text, and their changes.

SQLMesh reads a file with pandas (`sqlmesh.core.model.seed`) and casts columns to their declared
types afterwards. A text that pandas has read as a number, a missing value or a date stays one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.core.model.seed import CsvSeedReader, CsvSettings

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.redaction import redact_shapes, shorten_redacted
from ci_bot.worker.rules.changes.results import RETYPED, observe_retyped_columns
from ci_bot.worker.rules.files.seeds import (
    iterate_changed_seed_files,
    parse_seed_number,
    read_table_of_seed_file,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.declared_keys import list_grains
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change, on_file_and_models
from ci_bot.worker.sql import list_known_types
from ci_bot.worker.sqlmesh_compat import is_seed_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SeedModel

MISREAD = find_rule("seed-misread")
VALUES = find_rule("seed-values-changed")
_ISO = re.compile(r"^\d{4}-\d{2}-\d{2}")
_DAY_OR_MONTH = re.compile(r"^(\d{1,2})[./-](\d{1,2})[./-]\d{2,4}")
MONTHS = 12
_LEADING_ZERO = re.compile(r"^0\d+$")
_EXAMPLES = 3
LONGEST = 40


@on_file_and_models(MISREAD)
def find_misread_values(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds values that SQLMesh loads as another text than the file has, or as NULL."""
    for path, model in iterate_changed_seed_files(inputs):
        declared = (getattr(model, "columns_to_types_", None) or {}) if model is not None else {}
        after = read_table_of_seed_file(inputs, path, model, before=False)
        content = inputs.files_after(path)
        if model is None or not after or content is None:
            continue
        known = list_cells_of_seed_file(read_table_of_seed_file(inputs, path, model, before=True))
        read = _read_as_sqlmesh(content, model)
        for name, values in list_cells_of_seed_file(after).items():
            kind = next((k for column, k in declared.items() if column.lower() == name), None)
            new = set(values) - set(known.get(name, ()))
            description = ""
            if kind is None and not declared:
                description = _describe_inferred_changes(values, read.get(name), known.get(name))
            elif kind is not None and kind.this in exp.DataType.TEXT_TYPES:
                description = _describe_text_changes(values, read.get(name), known.get(name))
            elif kind is not None and kind.this in exp.DataType.TEMPORAL_TYPES:
                description = _describe_dates(new)
            if description:
                yield RuleObservation(
                    MISREAD,
                    f"`{name}` {description}",
                    "the values read as they are written: `csv_settings` of the seed keep them, "
                    "or the file writes them so that nothing else can be meant",
                    model=model,
                    path=path,
                    line=1,
                    subject=(name,),
                )


def list_cells_of_seed_file(rows: list[list[str]] | None) -> dict[str, list[str]]:
    """Maps each column's name in lower case to its values as they are written.

    Rows whose length is not that of the header are left out.
    """
    if not rows:
        return {}
    header = [name.strip().lower() for name in rows[0]]
    full = [row for row in rows[1:] if len(row) == len(header)]
    return {name: [row[index] for row in full] for index, name in enumerate(header)}


def _read_as_sqlmesh(content: bytes, model: Model) -> Mapping[str, list[str | None]]:
    """Reads the values with SQLMesh's own reader; empty if it refuses the file."""
    from sqlmesh.core.model.seed import CsvSeedReader, CsvSettings

    settings = getattr(model.kind, "csv_settings", None) or CsvSettings()
    encoding = getattr(settings, "encoding", None) or "utf-8"
    try:
        reader = CsvSeedReader(content.decode(encoding), model.dialect, settings)
        frames = list(reader.read())
    except Exception:  # pandas raises many types; `seed-broken` reports a file that it cannot read
        return {}
    read: dict[str, list[str | None]] = {}
    for frame in frames:
        for name in frame.columns:
            values = [None if value != value else str(value) for value in frame[name]]  # noqa: PLR0124 - NaN
            read.setdefault(str(name).lower(), []).extend(values)
    return read


def _describe_text_changes(
    written: list[str], read: list[str | None] | None, known: list[str] | None
) -> str:
    """Describes texts that are now read as another value than the file has.

    Empty if there are none.
    """
    if read is None or len(read) != len(written):
        return ""
    pairs = dict.fromkeys((was, now) for was, now in zip(written, read, strict=True) if was != now)
    lost = [was for was, now in pairs if now is None and was.strip() and was not in (known or ())]
    other = [(was, now) for was, now in pairs if now is not None and was.strip() != now]
    if other and known is not None and _are_seed_values_numbers(known):
        other = []  # they were read like this before
    if lost:
        return (
            f"is NULL where the file says {quote_examples(lost)}, "
            "which the reader takes for missing."
        )
    if other:
        texts = [
            f"{_quote_seed_value(was)} as {_quote_seed_value(now)}"
            for was, now in other[:_EXAMPLES]
        ]
        return f"reads {', '.join(texts)}: all of its values look like numbers now."
    return ""


def _describe_inferred_changes(
    written: list[str], read: list[str | None] | None, known: list[str] | None
) -> str:
    """Describes values that are read as numbers because the model declares no types.

    Empty if there is nothing to report. A value with a leading zero is a code: nobody writes a
    number that way.
    """
    if not _are_seed_values_numbers([value or "" for value in read or ()]):
        return _describe_text_changes(written, read, known)
    if known is not None and any(_LEADING_ZERO.match(value.strip()) for value in known):
        return ""  # they were read like this before, or the change of type is reported
    codes = sorted({value for value in written if _LEADING_ZERO.match(value.strip())})
    if not codes:
        return ""
    return (
        f"reads {quote_examples(codes)} as numbers, without the zeros in front: "
        "no type is declared."
    )


def _are_seed_values_numbers(values: list[str]) -> bool:
    def is_number(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True

    filled = [value for value in values if value.strip()]
    return bool(filled) and all(is_number(value) for value in filled)


def _describe_dates(new: set[str]) -> str:
    """Describes dates whose day and month can be confused; empty if there are none."""
    doubtful = sorted(
        value
        for value in (text.strip() for text in new)
        if not _ISO.match(value) and (parts := _DAY_OR_MONTH.match(value))
        # A number above twelve can only be a day; pandas then swaps day and month.
        if parts and int(parts[1]) != int(parts[2]) and min(int(parts[1]), int(parts[2])) <= MONTHS
    )
    if not doubtful:
        return ""
    return (
        f"has dates such as {quote_examples(doubtful)}, whose day and month the reader guesses, "
        "value by value."
    )


def quote_examples(values: list[str]) -> str:
    return ", ".join(_quote_seed_value(value) for value in values[:_EXAMPLES])


def _quote_seed_value(value: str) -> str:
    return f"`{shorten_redacted(redact_shapes(value.strip()), LONGEST)}`"


@on_file_and_models(VALUES)
def find_overwritten_rows(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds rows with the same key and other values, and rows that are added."""
    for path, model in iterate_changed_seed_files(inputs):
        before, after = (
            read_table_of_seed_file(inputs, path, model, before=side) for side in (True, False)
        )
        if model is None or not before or not after:
            continue
        key = _choose_seed_row_key(model, before, after)
        if key is None:
            continue
        old, new = _map_seed_rows_by_key(before, key), _map_seed_rows_by_key(after, key)
        changed: dict[str, list[tuple[str, str]]] = {}
        for value in old.keys() & new.keys():
            for name, cell in new[value].items():
                if name in old[value] and old[value][name] != cell:
                    changed.setdefault(name, []).append((old[value][name], cell))
        texts = {name for name in changed if _is_text_in_seed(name, model, before, after)}
        # SQLMesh reads 0.190 and 0.19 as one number, and builds nothing again.
        rewritten = {
            name
            for name in changed.keys() - texts
            if all(
                parse_seed_number(a) == parse_seed_number(b) is not None for a, b in changed[name]
            )
        }
        # `seed-broken` reports a value that is no number any more.
        broken = {
            name
            for name in changed.keys() - texts
            if _are_seed_values_numbers(list_cells_of_seed_file(before).get(name, []))
            and not _are_seed_values_numbers(list_cells_of_seed_file(after).get(name, []))
        }
        rows = len(old)
        for is_text in (False, True):
            columns = [
                name
                for name in changed
                if (name in texts) is is_text and name not in broken | rewritten
            ]
            if columns:
                most = max(len(changed[name]) for name in columns)
                yield RuleObservation(
                    VALUES,
                    f"{quote_names(columns)} {'has' if len(columns) == 1 else 'have'} other "
                    f"{'texts' if is_text else 'values'} in {most} of {rows} rows: "
                    + (
                        "what compares with the old texts finds them no more."
                        if is_text
                        else "what is computed from them changes for all of the past."
                    ),
                    "the old values were always wrong, or the new ones have rows of their own, "
                    "with the day from which they count",
                    severity="low" if is_text else None,
                    model=model,
                    path=path,
                    line=1,
                    subject=tuple(sorted(columns)),
                )
        added = len(new.keys() - old.keys())
        if added:
            yield RuleObservation(
                VALUES,
                f"{added} {'row is' if added == 1 else 'rows are'} added.",
                "nothing to do",
                severity="info",
                model=model,
                path=path,
                line=1,
                subject=("added",),
            )


def _choose_seed_row_key(model: Model, *sides: list[list[str]]) -> tuple[str, ...] | None:
    """Chooses the columns that identify a row on both sides: the grain, or the first common column.

    None if neither is unique on both sides.
    """
    headers = [[name.strip().lower() for name in side[0]] for side in sides]
    both = [name for name in headers[0] if all(name in header for header in headers)]
    grains = [tuple(sorted(grain)) for grain in list_grains(model) if grain]
    for key in [*grains[:1], *((name,) for name in both[:1])]:
        if set(key) <= set(both) and all(
            len(_map_seed_rows_by_key(side, key)) == len(side) - 1 for side in sides
        ):
            return key
    return None


def _map_seed_rows_by_key(
    rows: list[list[str]], key: tuple[str, ...]
) -> dict[tuple[str, ...], dict[str, str]]:
    header = [name.strip().lower() for name in rows[0]]
    found = {}
    for row in rows[1:]:
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=False)}
        found[tuple(cells.get(name, "") for name in key)] = cells
    return found


def _is_text_in_seed(name: str, model: Model, *sides: list[list[str]]) -> bool:
    declared = getattr(model, "columns_to_types_", None) or {}
    kind = next((kind for column, kind in declared.items() if column.lower() == name), None)
    if kind is not None:
        return kind.this in exp.DataType.TEXT_TYPES
    cells = [value for side in sides for value in list_cells_of_seed_file(side).get(name, [])]
    return not _are_seed_values_numbers(cells)


# Rows of a seed that are added, removed or changed, if both versions of its file are known.


@dataclass(frozen=True)
class SeedRows:
    """The differences of a seed's rows.

    Attributes:
        columns: columns with other values, in lower case, if the number of rows is the same.
        added, removed: number of rows that the file did not have, or no longer has.
    """

    columns: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0

    @property
    def rows_description(self) -> str | None:
        """Describes added and removed rows in one sentence; None if there are none."""
        parts = []
        if self.added:
            parts.append(f"gets {self.added:,} more row{choose_plural_suffix(self.added)}")
        if self.removed:
            parts.append(f"loses {self.removed:,} row{choose_plural_suffix(self.removed)}")
        return f"It {' and '.join(parts)}." if parts else None


def choose_plural_suffix(number: int) -> str:
    return "" if number == 1 else "s"


def compare_seed_rows(inputs: RuleInputs) -> dict[str, SeedRows]:
    """Compares the rows of changed seeds whose old rows are known.

    Prod may have another version than the base branch: the old text counts only if its hashes are
    those of prod's snapshot.

    Returns:
        The differences by the model's fully qualified name.
    """
    found = {}
    for path, model in iterate_changed_seed_files(inputs):
        old = inputs.before.get(model.fqn) if model is not None else None
        if model is None or old is None or not is_seed_model(old):
            continue
        before, after = (
            read_table_of_seed_file(inputs, path, model, before=side) for side in (True, False)
        )
        if before and after and _is_content_of_seed(inputs, path, old):
            rows = _compare_seed_rows(before, after)
            if rows is not None:
                found[model.fqn] = rows
    return found


def _is_content_of_seed(inputs: RuleInputs, path: str, model: SeedModel) -> bool:
    """Whether the old seed was loaded from the file before the change."""
    content = inputs.files_before(path)
    settings = model.kind.csv_settings or CsvSettings()
    try:
        text = (content or b"").decode(settings.encoding or "utf-8")
        hashes = CsvSeedReader(text, model.dialect, settings).column_hashes
    except Exception:  # pandas raises many types; a file that it cannot read is not compared
        return False
    return bool(hashes == model.column_hashes)


def _compare_seed_rows(before: list[list[str]], after: list[list[str]]) -> SeedRows | None:
    """Compares the rows of both versions; None if the header is not clear."""
    old, new = (_read_records(rows) for rows in (before, after))
    if old is None or new is None:
        return None
    common = [name for name in old.header if name in new.header]
    left, right = old.list_row_values(common), new.list_row_values(common)
    gone, come = Counter(left) - Counter(right), Counter(right) - Counter(left)
    if len(left) != len(right):
        return SeedRows((), come.total(), gone.total())
    # The number of rows is the same: the first lost row became the first new row, and so on.
    pairs = list(zip(_take_seed_rows(left, gone), _take_seed_rows(right, come), strict=True))
    differ = [any(one[i] != other[i] for one, other in pairs) for i in range(len(common))]
    return SeedRows(tuple(name for name, yes in zip(common, differ, strict=True) if yes))


def _take_seed_rows(
    rows: list[tuple[str, ...]], wanted: Counter[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Lists the rows that `wanted` counts, in the order of the file."""
    left = Counter(wanted)
    taken = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
            taken.append(row)
    return taken


@dataclass(frozen=True)
class _SeedRecords:
    header: Mapping[str, int]
    rows: list[list[str]]

    def list_row_values(self, names: list[str]) -> list[tuple[str, ...]]:
        return [tuple(row[self.header[name]] for name in names) for row in self.rows]


def _read_records(rows: list[list[str]]) -> _SeedRecords | None:
    header = [name.strip().lower() for name in rows[0]]
    whole = all(len(row) == len(header) for row in rows[1:])
    return (
        _SeedRecords(dict(zip(header, range(len(header)), strict=True)), rows[1:])
        if whole
        else None
    )


# The types of a seed without declared types: its values decide them, so one new value can change
# them.


_WHOLE_NUMBER = re.compile(r"^[+-]?\d+$")
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_TRUTH = re.compile(r"^(true|false)$", re.IGNORECASE)


@on_change(RETYPED)
def find_inferred_type_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds columns with another type, and the value that is the cause."""
    if not pair.has_inferred_types:
        return
    for found in observe_retyped_columns(pair, inputs):
        columns = found.subject
        yield replace(
            found,
            evidence=found.described_text + _describe_cause(pair.after, columns, inputs),
            clears=f"{found.clears}, or the seed's model declares its `columns`",
            severity=found.severity
            if any(_does_reader_need_whole_numbers(pair, name) for name in columns)
            else "medium",
        )


def _describe_cause(model: Model, columns: Iterable[str], inputs: RuleInputs) -> str:
    """Describes the values that change the types of a seed that declares none."""
    sentence = " The model declares no `columns`, so SQLMesh takes the types from the values"
    found = next((one for one in iterate_changed_seed_files(inputs) if one[1] is model), None)
    if found is None:
        return f"{sentence}."
    path, seed = found
    before, after = (
        list_cells_of_seed_file(read_table_of_seed_file(inputs, path, seed, before=side))
        for side in (True, False)
    )
    # All old values have a shape that a new value does not have.
    for name in columns:
        was = [value for value in before.get(name, ()) if value.strip()]
        for shape in (_WHOLE_NUMBER, _NUMBER, _TRUTH):
            if was and all(shape.match(value.strip()) for value in was):
                others = {v.strip() for v in after.get(name, ()) if not shape.match(v.strip())}
                if others:
                    which = (
                        "an empty one" if others == {""} else quote_examples(sorted(others - {""}))
                    )
                    return f"{sentence}, and all of them change with {which}."
                break
    return f"{sentence}."


def _does_reader_need_whole_numbers(pair: ModelPair, name: str) -> bool:
    """Whether a reader of the column breaks or changes its result if its numbers get fractions."""
    old, new = list_known_types(pair.before) or {}, list_known_types(pair.after) or {}
    if not (old[name].this in exp.DataType.INTEGER_TYPES and new[name].is_type("DOUBLE")):
        return True
    if any(name in grain for grain in list_grains(pair.after)):
        return True
    for reader in pair.readers:
        query = pair.queries.query_of(reader)
        for column in query.rendered_tree.find_all(exp.Column) if query is not None else ():
            cast = column.find_ancestor(exp.Cast, exp.TryCast)
            if column.name.lower() == name and (
                column.find_ancestor(exp.Join, exp.Concat, exp.ConcatWs, exp.DPipe) is not None
                or (cast is not None and cast.to.this in exp.DataType.TEXT_TYPES)
            ):
                return True
    return False
