"""Unit tests that are removed or weakened, and tests that pass today but may fail tomorrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ci_bot.jinja_text import EXPRESSION, list_templates
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.files.test_expectations import (
    ModelShape,
    ReadText,
    UnitTestCase,
    list_checks_lost_from_test_file,
    list_new_variables,
    read_case_of_test_file,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import list_renamed_models
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file, on_file_and_models
from ci_bot.worker.sql import plain_name
from ci_bot.yaml_reader import read_yaml_or_none

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# The files in which SQLMesh finds unit tests, and these tests, on both sides of a change.


FOLDER = "tests"
_TEST_FILE = re.compile(r"test.*\.ya?ml")
_COMMENT_OR_BLANK = re.compile(r"\s*(#.*)?")


@dataclass(frozen=True)
class WrittenTest:
    """A test case with its file and line."""

    path: str
    name: str
    case: UnitTestCase


@dataclass(frozen=True)
class TestSides:
    """The tests of the changed files before and after, and files that are now no plain YAML."""

    before: tuple[WrittenTest, ...]
    after: tuple[WrittenTest, ...]
    unreadable: frozenset[str]


def list_tests_of_touched_files(inputs: RuleInputs) -> TestSides:
    """Lists every test that the change may affect, also through a file that the test reads."""
    then = _make_test_file_reader(inputs, before=True)
    now = _make_test_file_reader(inputs, before=False)
    paths = list(_iterate_touched_test_files(inputs))
    return TestSides(
        before=tuple(case for path in paths for case in _read_cases(then(path), path, then)),
        after=tuple(case for path in paths for case in _read_cases(now(path), path, now)),
        unreadable=frozenset(path for path in paths if _is_test_file_unreadable(now(path))),
    )


def is_test_file(inputs: RuleInputs, path: str) -> bool:
    """Whether SQLMesh reads tests from a file: `test*.yaml` below the project's folder `tests`."""
    inside = PurePosixPath(inputs.find_path_in_project(path) or "")
    return inside.parts[:1] == (FOLDER,) and bool(_TEST_FILE.fullmatch(inside.name))


def _iterate_touched_test_files(inputs: RuleInputs) -> Iterator[str]:
    changed = inputs.changed_files or ()
    yield from (path for path in changed if is_test_file(inputs, path))
    data = {PurePosixPath(path).name for path in changed if not is_test_file(inputs, path)}
    for path in _list_test_files(inputs) if data else ():
        text = inputs.read_text_after(path) or ""
        if path not in changed and "path:" in text and any(name in text for name in data):
            yield path


def _list_test_files(inputs: RuleInputs) -> Iterator[str]:
    """Lists every test file of the head."""
    for project in inputs.projects:
        folder = inputs.repository / project / FOLDER
        for file in sorted(folder.rglob("*.y*ml")) if folder.is_dir() else ():
            path = file.relative_to(inputs.repository).as_posix()
            if is_test_file(inputs, path):
                yield path


def _make_test_file_reader(inputs: RuleInputs, *, before: bool) -> ReadText:
    """Makes a reader of one side's files, which takes a path in the repository or in a project."""
    changed = set(inputs.changed_files or ())

    def read_text_of_side(named: str) -> str | None:
        for root in (".", *inputs.projects):
            path = (PurePosixPath(root) / named).as_posix()
            # The base's reader has only the changed files; all others are the same on both sides.
            text = inputs.read_text_before(path) if before and path in changed else None
            if text is None and not (before and path in changed):
                text = inputs.read_text_after(path)
            if text is not None:
                return text
        return None

    return read_text_of_side


def _read_cases(text: str | None, path: str, read: ReadText) -> list[WrittenTest]:
    found = read_yaml_or_none(text) if text else None
    if not isinstance(found, dict):
        return []
    return [
        WrittenTest(path, str(name), read_case_of_test_file(body, read))
        for name, body in found.items()
        if isinstance(body, dict) and "model" in body
    ]


def _is_test_file_unreadable(text: str | None) -> bool:
    """Whether a YAML parser cannot read the text, usually because of Jinja around keys."""
    if text is None or all(_COMMENT_OR_BLANK.fullmatch(line) for line in text.splitlines()):
        return False
    return not isinstance(read_yaml_or_none(text), dict)


REMOVED = find_rule("unit-test-removed")
WEAKENED = find_rule("unit-test-weakened")
MOVING = find_rule("moving-date-test")

_MOVING = re.compile(
    r"(?i)\b(current_date|current_timestamp|now|getdate|sysdate|localtimestamp)\s*\(\s*\)|"
    r"\bcurrent_(date|timestamp)\b(?!\w)|\b\d+\s+(day|week|month|hour|year)s?\s+ago\b|"
    r":\s*['\"]?(today|yesterday|tomorrow|now)['\"]?\s*[,}\n]"
)
_CLOCK = re.compile(r"\b(now|today|datetime)\b", re.IGNORECASE)
_MODEL = re.compile(r"\s+model:\s*['\"]?([\w.]+)")


@on_file_and_models(REMOVED, WEAKENED)
def find_tests_removed_from_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds tests that are gone or check less, although their model still exists."""
    sides = list_tests_of_touched_files(inputs)
    moved = {plain_name(old): plain_name(new) for old, new in list_renamed_models(inputs)}
    for test in sides.before:
        model = _find_model_of_unit_test(inputs.after, test.case.model)
        tested = _find_new_model(test.case.model, moved)
        if model is None and inputs.loaded and tested == test.case.model:
            continue  # the model is gone, too, and another rule reports that
        if test.path in sides.unreadable:
            continue
        model = (
            model
            or _find_model_of_unit_test(inputs.after, tested)
            or _find_model_of_unit_test(inputs.before, test.case.model)
        )
        yield from _judge_changed_unit_test(inputs, test, sides.after, tested, model)
    for path in sorted(sides.unreadable & {test.path for test in sides.before}):
        yield RuleObservation(
            WEAKENED,
            f"`{path}` is no plain YAML any more, so what its tests check cannot be compared.",
            "the file is plain YAML again, or its owner has compared the tests",
            path=path,
            line=1,
        )


def _judge_changed_unit_test(
    inputs: RuleInputs,
    test: WrittenTest,
    after: tuple[WrittenTest, ...],
    tested: str,
    model: Model | None,
) -> Iterator[RuleObservation]:
    shape = _read_model_shape(inputs, model)
    case = replace(test.case, model=tested)
    same_model = [other for other in after if _is_same_model(other.case.model, tested)]
    if any(
        not list_checks_lost_from_test_file(case, other.case, shape)
        for other in same_model
        if other.name != test.name
    ):
        return  # renamed, moved to another file, or covered by another test
    named = [other for other in same_model if other.name == test.name]
    # Several files may have a test of this name; the test's own file comes first.
    twin = min(named, key=lambda other: other.path != test.path, default=None)
    if twin is None:
        yield RuleObservation(
            REMOVED,
            f"The unit test `{test.name}` of {inputs.names.short_name(test.case.model)} is gone, "
            "and the model is still there.",
            "the test is back, or its owner says what replaces it",
            model=model,
            path=test.path,
            line=1,
            subject=(test.name,),
        )
        return
    lost_checks = list_checks_lost_from_test_file(case, twin.case, shape) + _describe_new_variables(
        inputs, test, twin, model
    )
    if lost_checks:
        yield RuleObservation(
            WEAKENED,
            f"The unit test `{test.name}` no longer checks what it did: {'; '.join(lost_checks)}.",
            "the test is as strict as before, or its owner agrees",
            model=model,
            path=twin.path,
            line=find_anchor_line(inputs.read_text_after(twin.path) or "", (test.name,)),
            subject=(test.name,),
        )


def _describe_new_variables(
    inputs: RuleInputs, old: WrittenTest, new: WrittenTest, model: Model | None
) -> list[str]:
    """Describes new variables of a test that the model read before the change.

    With them the test may run differently.
    """
    path = inputs.find_path(model) or ""
    changed = path in (inputs.changed_files or ())
    text = (inputs.read_text_before(path) if changed else inputs.read_text_after(path)) or ""
    return [
        f"the variable `{name}` is set to {value} now"
        for name, value in list_new_variables(old.case, new.case)
        if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
    ]


def _find_new_model(tested: str, moved: Mapping[str, str]) -> str:
    """Finds the name of the tested model after the change."""
    return next((new for old, new in moved.items() if _is_same_model(old, tested)), tested)


def _is_same_model(one: str, other: str) -> bool:
    """Whether two names mean one model; one of them may have no catalog."""
    one, other = plain_name(one), plain_name(other)
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")


def _find_model_of_unit_test(models: Mapping[str, Model], name: str) -> Model | None:
    return next((model for fqn, model in models.items() if _is_same_model(fqn, name)), None)


def _read_model_shape(inputs: RuleInputs, model: Model | None) -> ModelShape:
    """Reads the columns and CTEs of the tested model, and the columns of models that it reads."""
    if model is None or not inputs.loaded:
        return ModelShape()
    query = getattr(model, "query", None)
    found = getattr(query, "ctes", None)
    before = inputs.before.get(model.fqn)
    return ModelShape(
        columns=_list_columns_of_tested_model(model),
        same=before is not None and before.data_hash == model.data_hash,
        ctes=None if found is None else {cte.alias.lower() for cte in found},
        upstream={
            plain_name(name): columns
            for name in model.depends_on
            if name in inputs.after
            and (columns := _list_columns_of_tested_model(inputs.after[name])) is not None
        },
    )


def _list_columns_of_tested_model(model: Model) -> set[str] | None:
    known = model.columns_to_types
    return None if not known or "*" in known else {column.lower() for column in known}


def _list_yaml_files(inputs: RuleInputs) -> Iterator[str]:
    """Lists changed YAML files below a folder `tests`: test files, and files that they read."""
    for path in inputs.changed_files or ():
        parts = PurePosixPath(path)
        if parts.suffix.lower() in {".yaml", ".yml"} and "tests" in parts.parts:
            yield path


@on_file(MOVING)
def find_moving_dates_in_test_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds dates in tests that depend on the clock."""
    for path in _list_yaml_files(inputs):
        after = inputs.read_text_after(path)
        if after is None:
            continue
        known = set((inputs.read_text_before(path) or "").splitlines())
        for number, line in enumerate(after.splitlines(), start=1):
            code = line.split(" #")[0]
            if line in known or code.lstrip().startswith("#"):
                continue
            found = _find_clock_in_test_line(code)
            if found is not None:
                yield RuleObservation(
                    MOVING,
                    f"Line {number} follows the clock (`{found.strip(' :,}')}`), so the "
                    "test passes today and may fail tomorrow.",
                    "the test uses fixed dates (and `vars: execution_time` where it needs one)",
                    path=path,
                    line=number,
                    model_name=_find_tested_model(after.splitlines(), number - 1),
                )
                break


def _find_clock_in_test_line(line: str) -> str | None:
    """Finds the part of a line that follows the clock; None if there is none."""
    found = _MOVING.search(f"{line}\n")
    if found is not None:
        return found[0]
    templates = (line[start:end] for start, end in list_templates(line, (EXPRESSION,)))
    return next((template for template in templates if _CLOCK.search(template)), None)


def _find_tested_model(lines: list[str], place: int) -> str | None:
    """Finds the name of the model that is tested around a line; None if there is none.

    A test begins at a line without indent.
    """
    begins = [n for n, line in enumerate(lines) if re.match(r"[^\s#]", line)]
    first = max((n for n in begins if n <= place), default=0)
    last = min((n for n in begins if n > place), default=len(lines))
    named = (_MODEL.match(line) for line in lines[first:last])
    return next((found[1] for found in named if found), None)
