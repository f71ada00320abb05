"""Seed files: encoding, declared columns and types, size, and the keys on which readers join."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.declared_keys import list_grains
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_file_and_models
from ci_bot.worker.sql import read_audit_promises
from ci_bot.worker.sqlmesh_compat import is_seed_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SeedModel

    from ci_bot.protocol.plan import Severity

NOT_UTF8 = find_rule("seed-not-utf8")
BROKEN = find_rule("seed-broken")
TOO_LARGE = find_rule("seed-too-large")
KEYS = find_rule("seed-keys-changed")
MAX_BYTES = 100_000_000
LARGE_BYTES = 10_000_000
_SAMPLE_BYTES = 1_000_000
# SQLMesh keeps the rows of a seed in its state and inserts them as literals. That is fine for lists
# that people keep by hand.
MANY_ROWS, MAX_ROWS = 20_000, 100_000
# The parts of a seed model's block, in their order.
_MODEL, _NAME, _SEED = (
    re.compile(part, re.IGNORECASE)
    for part in (r"MODEL\s*\(", r"\bname\s+([\w.]+)", r"\bkind\s+SEED\b")
)
_BOM = b"\xef\xbb\xbf"
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_NUMBER = _WHOLE | {"DECIMAL", "DOUBLE", "FLOAT"}
_NUMERIC = re.compile(r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$")


def iterate_changed_seed_files(inputs: RuleInputs) -> Iterator[tuple[str, SeedModel | None]]:
    """Yields changed CSV files, each with its seed model from the side that knows it."""
    sides = [_SeedReaders(inputs, side) for side in (inputs.after, inputs.before)]
    for path in inputs.changed_files or ():
        pure = PurePosixPath(path)
        if pure.suffix.lower() not in {".csv", ".tsv"}:
            continue
        model = next(
            (found for side in sides if (found := side.find_reader(pure)) is not None), None
        )
        if model is not None or "seeds" in pure.parts:
            yield path, model


class _SeedReaders:
    """The seed models of one side, by the file that they read; fast enough for large changes."""

    def __init__(self, inputs: RuleInputs, side: Mapping[str, Model]) -> None:
        self._by_path: dict[tuple[str, ...], SeedModel] = {}
        self._by_tail: dict[tuple[str, ...], SeedModel] = {}
        for model in side.values():
            if not is_seed_model(model):
                continue
            own = PurePosixPath(str(model.kind.path))
            defined = inputs.find_path(model)
            if defined is not None and not own.is_absolute() and "$root" not in str(own):
                joined = PurePosixPath(defined).parent / own
                self._by_path.setdefault(tuple(_normalize_seed_path_parts(joined.parts)), model)
            else:
                # A model from the state does not know its file, so the end of the path is compared.
                tail = tuple(part for part in own.parts if part not in {"..", ".", "/", "$root"})
                self._by_tail.setdefault(tail, model)
        self._lengths = sorted({len(tail) for tail in self._by_tail})

    def find_reader(self, path: PurePosixPath) -> SeedModel | None:
        """Finds the model that reads a file; None if there is none."""
        found = self._by_path.get(path.parts)
        tails = (self._by_tail.get(path.parts[-length:]) for length in self._lengths)
        return found if found is not None else next((m for m in tails if m is not None), None)


def _normalize_seed_path_parts(parts: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for part in parts:
        if part == ".." and found:
            found.pop()
        elif part not in {".", ".."}:
            found.append(part)
    return found


@on_file_and_models(NOT_UTF8)
def find_unreadable_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds files that SQLMesh cannot decode. A byte order mark is fine: its reader skips it."""
    for path, model in iterate_changed_seed_files(inputs):
        content = inputs.files_after(path)
        if content is None:
            continue
        encoding = _read_encoding(model)
        try:
            content.decode(encoding)
        except (UnicodeDecodeError, LookupError) as error:
            start = getattr(error, "start", 0)
            line = content.count(b"\n", 0, start) + 1
            yield RuleObservation(
                NOT_UTF8,
                f"Line {line} has a byte that is no {encoding.upper()}, so the project does not "
                "load.",
                "the file is saved as UTF-8",
                model=model,
                model_name=None if inputs.loaded else _find_model_of_seed_file(inputs, path),
                path=path,
                line=line,
            )


def _find_model_of_seed_file(inputs: RuleInputs, path: str) -> str | None:
    """Finds the name of the seed model that names this file, in the texts of the project.

    None if no text names it.
    """
    for project in inputs.projects:
        for file in sorted((inputs.repository / project / "models").rglob("*.sql")):
            text = file.read_text(encoding="utf-8", errors="replace")
            name = _read_seed_model_name(text) if PurePosixPath(path).name in text else None
            if name is not None:
                return name
    return None


def _read_seed_model_name(text: str) -> str | None:
    model = _MODEL.search(text)
    name = _NAME.search(text, model.end()) if model is not None else None
    is_seed = name is not None and _SEED.search(text, name.end()) is not None
    return name[1] if name is not None and is_seed else None


def _measure_seed_file(inputs: RuleInputs, path: str, content: bytes | None) -> tuple[int, int]:
    """Measures a file in (bytes, rows).

    The rows are estimated from a part if the content is not given; both are 0 if there is no file.
    """
    if content is not None:
        return len(content), content.count(b"\n")
    file = inputs.repository / path
    if file.is_symlink() or not file.is_file():
        return 0, 0
    with file.open("rb") as opened:
        size, part = os.fstat(opened.fileno()).st_size, opened.read(_SAMPLE_BYTES)
    return size, int(part.count(b"\n") * size / max(len(part), 1))


def _read_encoding(model: SeedModel | None) -> str:
    settings = getattr(getattr(model, "kind", None), "csv_settings", None)
    return str(getattr(settings, "encoding", None) or "utf-8")


def read_table_of_seed_file(
    inputs: RuleInputs, path: str, model: SeedModel | None, *, before: bool
) -> list[list[str]] | None:
    content = (inputs.files_before if before else inputs.files_after)(path)
    if content is None or len(content) > LARGE_BYTES:
        return None
    try:
        text = content.removeprefix(_BOM).decode(_read_encoding(model))
    except (UnicodeDecodeError, LookupError):
        return None
    settings = getattr(getattr(model, "kind", None), "csv_settings", None)
    delimiter = str(
        getattr(settings, "delimiter", None) or ("\t" if path.endswith(".tsv") else ",")
    )
    quote = str(getattr(settings, "quotechar", None) or '"')
    try:
        return [
            row
            for row in csv.reader(io.StringIO(text), delimiter=delimiter[:1], quotechar=quote[:1])
            if row
        ]
    except csv.Error:
        return None


@on_file_and_models(TOO_LARGE, BROKEN)
def find_content_faults_of_seed_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds large files, rows of different lengths, missing columns, and values of a wrong type."""
    for path, model in iterate_changed_seed_files(inputs):
        content = inputs.files_after(path)
        size, rows_count = _measure_seed_file(inputs, path, content)
        if size > LARGE_BYTES or rows_count > MANY_ROWS:
            huge = size > MAX_BYTES or rows_count > MAX_ROWS
            yield RuleObservation(
                TOO_LARGE,
                f"{size / 1e6:,.0f} MB, about {rows_count:,} rows: SQLMesh keeps seeds in "
                "its state and reads them whole.",
                "the data are loaded by an ETL tool and read as an external model",
                severity=None if huge else "medium",
                model=model,
                path=path,
                line=1,
            )
        rows = read_table_of_seed_file(inputs, path, model, before=False)
        if rows is not None:
            yield from _find_shape_faults(inputs, path, model, rows)


def _find_shape_faults(
    inputs: RuleInputs, path: str, model: SeedModel | None, rows: list[list[str]]
) -> Iterator[RuleObservation]:
    def make_fault(
        what: str, evidence: str, line: int, severity: Severity | None = None
    ) -> RuleObservation:
        return RuleObservation(
            BROKEN,
            evidence,
            "the file has the columns and types that the model declares",
            severity=severity,
            model=model,
            model_name=_find_model_of_seed_file(inputs, path) if model is None else None,
            path=path,
            line=line,
            subject=(what,),
        )

    if not rows:
        yield make_fault("rows", "The file is empty.", 1)
        return
    header = [name.strip() for name in rows[0]]
    for number, row in enumerate(rows[1:], start=2):
        if len(row) > len(header):
            yield make_fault(
                "fields", f"Row {number} has {len(row)} fields, the header {len(header)}.", number
            )
            return
        if len(row) < len(header):
            yield make_fault(
                "fields",
                f"Row {number} has {len(row)} fields, the header {len(header)}: the rest is NULL.",
                number,
                "high",
            )
            return
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        yield make_fault("header", f"The header repeats {quote_names(repeated)}.", 1)
    declared = (getattr(model, "columns_to_types_", None) or {}) if model is not None else {}
    lowered = [name.lower() for name in header]
    gone = [name for name in declared if name.lower() not in lowered]
    if gone:
        yield make_fault(
            "columns", f"The model declares {quote_names(gone)}, which the header does not have.", 1
        )
    yield from _find_type_faults(declared, lowered, rows, make_fault)
    if model is not None:
        before = read_table_of_seed_file(inputs, path, model, before=True)
        yield from _find_empty_seed_values(model, before or [], rows, make_fault)


def _find_type_faults(
    declared: Any, header: list[str], rows: list[list[str]], make_fault: Any
) -> Iterator[RuleObservation]:
    for name, kind in declared.items():
        if name.lower() not in header or kind.this.value not in _NUMBER:
            continue
        index = header.index(name.lower())
        for number, row in enumerate(rows[1:], start=2):
            value = row[index].strip()
            if (
                value
                and value.lower() not in {"null", "nan", "na", "n/a"}
                and (not _NUMERIC.match(value))
            ):
                yield make_fault(
                    name, f"Row {number}: the value of `{name}` is no {kind.sql()}.", number, "high"
                )
                break


def _find_empty_seed_values(
    model: SeedModel, before: list[list[str]], after: list[list[str]], make_fault: Any
) -> Iterator[RuleObservation]:
    """Finds new empty values, which are NULL, in columns whose audit allows no NULL."""
    if getattr(model.kind.csv_settings, "keep_default_na", None) is False:
        return
    had = _find_first_empty_seed_rows(before)
    new = {name: row for name, row in _find_first_empty_seed_rows(after).items() if name not in had}
    promised = read_audit_promises(model).not_null if new else {}
    for name, row in new.items():
        stops = promised.get(name)
        if stops is not None:
            effect = "stops the plan" if stops else "warns"
            yield make_fault(
                f"{name} is empty",
                f"Row {row}: `{name}` is empty, so it is NULL, and the audit not_null {effect}.",
                row,
                "high",
            )


def _find_first_empty_seed_rows(rows: list[list[str]]) -> dict[str, int]:
    """Maps each column, in lower case, to the first row in which it is empty."""
    found: dict[str, int] = {}
    header = [name.strip().lower() for name in rows[0]] if rows else []
    for number, row in enumerate(rows[1:], start=2):
        for name, value in zip(header, row, strict=False):
            if not value.strip():
                found.setdefault(name, number)
    return found


@on_file_and_models(KEYS)
def find_key_faults_of_seed_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds keys that are repeated now, and lost keys on which readers may still join."""
    for path, model in iterate_changed_seed_files(inputs):
        if model is None:
            continue
        grains = [grain for grain in list_grains(model) if grain]
        after = read_table_of_seed_file(inputs, path, model, before=False)
        if not grains or not after:
            continue
        numbers = {
            name.lower()
            for name, kind in (model.columns_to_types_ or {}).items()
            if kind.this.value in _NUMBER
        }
        new = _list_seed_row_keys(after, grains[0], numbers)
        if new is None:
            continue
        repeated = [key for key, count in Counter(new).items() if count > 1]
        if repeated:
            yield RuleObservation(
                KEYS,
                f"1 key ({quote_names(grains[0])}) occurs more than once: joins on it multiply "
                "rows."
                if len(repeated) == 1
                else f"{len(repeated)} keys ({quote_names(grains[0])}) occur more than once: joins "
                "on them multiply rows.",
                "each key occurs once",
                model=model,
                path=path,
                line=1,
                subject=("repeated",),
            )
        before = read_table_of_seed_file(inputs, path, model, before=True)
        old = _list_seed_row_keys(before, grains[0], numbers) if before else None
        gone = set(old or ()) - set(new)
        if old and gone:
            share = len(gone) / len(set(old))
            yield RuleObservation(
                KEYS,
                f"{len(gone)} of {len(set(old))} keys ({quote_names(grains[0])}) are gone or "
                "renamed: rows that join on them find no partner.",
                "the readers' data use the new keys, or the old ones stay",
                severity=None if share >= 0.2 else "medium",  # noqa: PLR2004 - fewer may be corrections
                model=model,
                path=path,
                line=1,
                subject=("gone",),
            )


def parse_seed_number(text: str) -> Decimal | None:
    """Parses the number of a text, so 1000.0 equals 1000.00; None if it is no number."""
    return Decimal(text.strip()) if _NUMERIC.match(text) else None


def _list_seed_row_keys(
    rows: list[list[str]], grain: Iterable[str], numbers: Collection[str]
) -> list[tuple[str | Decimal, ...]] | None:
    """Lists the key of each row; None if a column of the grain is missing.

    A column that is declared as a number counts by its value: 1000.0 is 1000.00.
    """
    header = [name.strip().lower() for name in rows[0]]
    if not all(name in header for name in grain):
        return None
    places = [(header.index(name), name in numbers) for name in sorted(grain)]
    return [
        tuple(
            text if not is_number or (number := parse_seed_number(text)) is None else number
            for place, is_number in places
            for text in [row[place].strip()]
        )
        for row in rows[1:]
        if len(row) == len(header)
    ]
