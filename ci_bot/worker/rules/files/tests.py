"""Unit tests that are taken away, and tests that pass on one day and fail on the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.pair import renamed
from ci_bot.worker.rules.place import line_of
from ci_bot.worker.rules.queries import plain, short
from ci_bot.worker.rules.registry import rule
from ci_bot.worker.rules.sight import Sight, names
from ci_bot.worker.rules.yaml_text import load

REMOVED = rule("unit-test-removed", "A unit test was removed", "high", "project")
WEAKENED = rule(
    "unit-test-weakened", "A unit test checks less, or something else", "medium", "project"
)
MOVING = rule("moving-date-test", "A unit test depends on the day it runs", "medium", "project")

_MOVING = re.compile(
    r"(?i)\b(current_date|current_timestamp|now|getdate|sysdate|localtimestamp)\s*\(\s*\)|"
    r"\bcurrent_(date|timestamp)\b(?!\w)|\b\d+\s+(day|week|month|hour|year)s?\s+ago\b|"
    r":\s*['\"]?(today|yesterday|tomorrow|now)['\"]?\s*[,}\n]|"
    r"\{\{.*\b(now|today|datetime|modules\.datetime)\b.*\}\}"
)


def _tests(text: str | None) -> dict[str, Mapping[str, Any]]:
    """The test cases of a file by name; nothing where it is no YAML."""
    if not text:
        return {}
    found = load(text)
    if not isinstance(found, dict):
        return {}
    return {
        str(name): case
        for name, case in found.items()
        if isinstance(case, dict) and "model" in case
    }


def _test_files(inputs: RuleInputs) -> Iterator[str]:
    for path in inputs.changed_files or ():
        parts = PurePosixPath(path)
        if parts.suffix.lower() in {".yaml", ".yml"} and "tests" in parts.parts:
            yield path


def removed(inputs: RuleInputs) -> Iterator[Sight]:
    """Test cases that are gone although the model that they tested is still there."""
    before: dict[str, tuple[str, Mapping[str, Any]]] = {}
    after: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for path in _test_files(inputs):
        before.update({n: (path, c) for n, c in _tests(inputs.text_before(path)).items()})
        after.update({n: (path, c) for n, c in _tests(inputs.text_after(path)).items()})
        text = inputs.text_after(path)
        if text and not _tests(text) and _tests(inputs.text_before(path)):
            continue
    moved = {plain(old): plain(new) for old, new in renamed(inputs)}
    for name, (path, case) in sorted(before.items()):
        tested = str(case["model"]).lower()
        model = _model(inputs, tested)
        if model is None and inputs.loaded and not _moved(tested, moved):
            continue  # the model went too, and that is said elsewhere
        if name in after:
            yield from _weakened(inputs, name, case, after[name], model)
            continue
        if any(_equal(case, other) for _, other in after.values()):
            continue  # renamed
        yield Sight(
            REMOVED,
            f"The unit test `{name}` of {short(tested)} is gone, and the model is still there.",
            "the test is back, or its owner says what replaces it",
            model=model,
            path=path,
            line=1,
        )


def _moved(tested: str, moved: Mapping[str, str]) -> bool:
    return any(old.endswith(tested) for old in moved)


def _model(inputs: RuleInputs, name: str) -> Any:
    for side in (inputs.after, inputs.before) if not inputs.loaded else (inputs.after,):
        for fqn, model in side.items():
            known = plain(fqn)
            if known == name or known.endswith(f".{name}"):
                return model
    return None


def _equal(case: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    keys = ("inputs", "outputs", "vars")
    return all(case.get(key) == other.get(key) for key in keys)


def _weakened(
    inputs: RuleInputs,
    name: str,
    old: Mapping[str, Any],
    found: tuple[str, Mapping[str, Any]],
    model: Any,
) -> Iterator[Sight]:
    path, new = found
    told: list[str] = []
    if not _partial(old) and _partial(new):
        told.append("it compares some columns only (partial)")
    if len(_rows(new)) < len(_rows(old)):
        told.append("it expects fewer rows")
    elif _lost_rows(old, new):
        told.append("it expects other values")
    if set(_parts(old)) - set(_parts(new)):
        told.append(f"it no longer checks {names(set(_parts(old)) - set(_parts(new)))}")
    if told:
        yield Sight(
            WEAKENED,
            f"The unit test `{name}` checks otherwise than before: {'; '.join(told)}.",
            "the test is as strict as before, or its owner agrees",
            model=model,
            path=path,
            line=line_of(inputs.text_after(path) or "", (name,)),
        )


def _rows(case: Mapping[str, Any]) -> list[Any]:
    part = case.get("outputs")
    query = part.get("query") if isinstance(part, dict) else None
    rows = query.get("rows") if isinstance(query, dict) else query
    return rows if isinstance(rows, list) else []


def _lost_rows(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a row that was expected before is expected no more."""
    kept = _rows(new)
    return any(row not in kept for row in _rows(old))


def _partial(case: Mapping[str, Any]) -> bool:
    outputs = case.get("outputs")
    return isinstance(outputs, dict) and bool(outputs.get("partial"))


def _parts(case: Mapping[str, Any]) -> list[str]:
    outputs = case.get("outputs")
    if not isinstance(outputs, dict):
        return []
    parts = [key for key in ("query",) if key in outputs]
    ctes = outputs.get("ctes")
    return parts + (list(ctes) if isinstance(ctes, dict) else [])


def moving_dates(inputs: RuleInputs) -> Iterator[Sight]:
    """Dates in tests that follow the clock."""
    for path in _test_files(inputs):
        after = inputs.text_after(path)
        if after is None:
            continue
        known = set((inputs.text_before(path) or "").splitlines())
        for number, line in enumerate(after.splitlines(), start=1):
            code = line.split(" #")[0]
            if line in known or code.lstrip().startswith("#"):
                continue
            found = _MOVING.search(f"{code}\n")
            if found:
                yield Sight(
                    MOVING,
                    f"Line {number} follows the clock (`{found.group(0).strip(' :,}')}`), so the "
                    "test passes today and may fail tomorrow.",
                    "the test uses fixed dates (and `vars: execution_time` where it needs one)",
                    path=path,
                    line=number,
                )
                break
