"""What SQLMesh's reader of seeds makes of their text.

It reads a file as pandas does (`sqlmesh.core.model.seed`) and gives columns their declared types
afterwards: what pandas has taken for a number, a missing value or a date by then stays so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.secrets import hide
from ci_bot.secrets.cutting import shortened
from ci_bot.worker.rules.files.seeds import seeds_changed, table
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation
from ci_bot.worker.rules.registry import on_file_and_models

MISREAD = rule("seed-misread")

_ISO = re.compile(r"^\d{4}-\d{2}-\d{2}")
_DAY_OR_MONTH = re.compile(r"^(\d{1,2})[./-](\d{1,2})[./-]\d{2,4}")
MONTHS = 12
_EXAMPLES = 3
LONGEST = 40


@on_file_and_models(MISREAD)
def misread(inputs: RuleInputs) -> Iterator[Observation]:
    """Values that are loaded as another text than the file has, or as nothing."""
    for path, model in seeds_changed(inputs):
        declared = (getattr(model, "columns_to_types_", None) or {}) if model is not None else {}
        after = table(inputs, path, model, before=False)
        content = inputs.files_after(path)
        if not declared or not after or content is None:
            continue
        known = _cells(table(inputs, path, model, before=True))
        read = _read(content, model)
        for name, values in _cells(after).items():
            kind = next((k for column, k in declared.items() if column.lower() == name), None)
            if kind is None:
                continue
            new = set(values) - set(known.get(name, ()))
            told = (
                _texts(values, read.get(name), known.get(name))
                if kind.this in exp.DataType.TEXT_TYPES
                else _dates(new)
                if kind.this in exp.DataType.TEMPORAL_TYPES
                else ""
            )
            if told:
                yield Observation(
                    MISREAD,
                    f"`{name}` {told}",
                    "the values read as they are written: `csv_settings` of the seed keep them, "
                    "or the file writes them so that nothing else can be meant",
                    model=model,
                    path=path,
                    line=1,
                    subject=(name,),
                )


def _cells(rows: list[list[str]] | None) -> dict[str, list[str]]:
    """The values of each column, as they are written."""
    if not rows:
        return {}
    header = [name.strip().lower() for name in rows[0]]
    full = [row for row in rows[1:] if len(row) == len(header)]
    return {name: [row[index] for row in full] for index, name in enumerate(header)}


def _read(content: bytes, model: Any) -> Mapping[str, list[str | None]]:
    """The same values as SQLMesh's own reader gives them; nothing where it refuses the file."""
    from sqlmesh.core.model.seed import CsvSeedReader, CsvSettings

    settings = getattr(model.kind, "csv_settings", None) or CsvSettings()
    encoding = getattr(settings, "encoding", None) or "utf-8"
    try:
        reader = CsvSeedReader(content.decode(encoding), model.dialect, settings)
        frames = list(reader.read())
    except Exception:  # pandas has many; a file that it cannot read is told by `seed-broken`
        return {}
    read: dict[str, list[str | None]] = {}
    for frame in frames:
        for name in frame.columns:
            values = [None if value != value else str(value) for value in frame[name]]  # noqa: PLR0124 - NaN
            read.setdefault(str(name).lower(), []).extend(values)
    return read


def _texts(written: list[str], read: list[str | None] | None, known: list[str] | None) -> str:
    """What becomes of text, where it is not what is written and was not before."""
    if read is None or len(read) != len(written):
        return ""
    pairs = dict.fromkeys((was, now) for was, now in zip(written, read, strict=True) if was != now)
    lost = [was for was, now in pairs if now is None and was.strip() and was not in (known or ())]
    other = [(was, now) for was, now in pairs if now is not None and was.strip() != now]
    if other and known is not None and _all_numbers(known):
        other = []  # they were read like this before
    if lost:
        return f"is NULL where the file says {_some(lost)}, which the reader takes for missing."
    if other:
        texts = [f"{_quoted(was)} as {_quoted(now)}" for was, now in other[:_EXAMPLES]]
        return f"reads {', '.join(texts)}: all of its values look like numbers now."
    return ""


def _all_numbers(values: list[str]) -> bool:
    def number(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True

    filled = [value for value in values if value.strip()]
    return bool(filled) and all(number(value) for value in filled)


def _dates(new: set[str]) -> str:
    """Dates in which day and month can be taken for each other."""
    doubtful = sorted(
        value
        for value in (text.strip() for text in new)
        if not _ISO.match(value) and (parts := _DAY_OR_MONTH.match(value))
        # One that is above twelve can be a day only; pandas then reads it the other way round.
        if parts and int(parts[1]) != int(parts[2]) and min(int(parts[1]), int(parts[2])) <= MONTHS
    )
    if not doubtful:
        return ""
    return (
        f"has dates such as {_some(doubtful)}, whose day and month the reader guesses, value by "
        "value."
    )


def _some(values: list[str]) -> str:
    return ", ".join(_quoted(value) for value in values[:_EXAMPLES])


def _quoted(value: str) -> str:
    return f"`{shortened(hide(value.strip()), LONGEST)}`"
