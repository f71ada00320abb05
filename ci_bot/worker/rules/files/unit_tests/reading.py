"""The files in which SQLMesh finds unit tests, and the tests in them, on both sides of a change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ci_bot.worker.rules.files.unit_tests.expectations import Case, ReadText, case_of
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.words.yaml_data import load

FOLDER = "tests"
_TEST_FILE = re.compile(r"test.*\.ya?ml")
_COMMENT_OR_BLANK = re.compile(r"\s*(#.*)?")


@dataclass(frozen=True)
class Written:
    """A test case where it stands."""

    path: str
    name: str
    case: Case


@dataclass(frozen=True)
class Sides:
    """The tests of the changed files before and after; files that are no plain YAML after it."""

    before: tuple[Written, ...]
    after: tuple[Written, ...]
    unreadable: frozenset[str]


def tests_of(inputs: RuleInputs) -> Sides:
    """Every test that the change can have touched, also through a file that the test reads."""
    then, now = _reader(inputs, before=True), _reader(inputs, before=False)
    paths = list(_touched(inputs))
    return Sides(
        before=tuple(case for path in paths for case in _cases(then(path), path, then)),
        after=tuple(case for path in paths for case in _cases(now(path), path, now)),
        unreadable=frozenset(path for path in paths if _unreadable(now(path))),
    )


def is_test_file(inputs: RuleInputs, path: str) -> bool:
    """Whether SQLMesh looks for tests in it: `test*.yaml` below the project's folder `tests`."""
    inside = PurePosixPath(inputs.in_project(path) or "")
    return inside.parts[:1] == (FOLDER,) and bool(_TEST_FILE.fullmatch(inside.name))


def _touched(inputs: RuleInputs) -> Iterator[str]:
    changed = inputs.changed_files or ()
    yield from (path for path in changed if is_test_file(inputs, path))
    data = {PurePosixPath(path).name for path in changed if not is_test_file(inputs, path)}
    for path in _in_checkout(inputs) if data else ():
        text = inputs.text_after(path) or ""
        if path not in changed and "path:" in text and any(name in text for name in data):
            yield path


def _in_checkout(inputs: RuleInputs) -> Iterator[str]:
    """Every test file of the head."""
    for project in inputs.projects:
        folder = inputs.repository / project / FOLDER
        for file in sorted(folder.rglob("*.y*ml")) if folder.is_dir() else ():
            path = file.relative_to(inputs.repository).as_posix()
            if is_test_file(inputs, path):
                yield path


def _reader(inputs: RuleInputs, *, before: bool) -> ReadText:
    """Reads a file of one side by its path in the repository, or in one of the projects."""
    changed = set(inputs.changed_files or ())

    def text_of(named: str) -> str | None:
        for root in (".", *inputs.projects):
            path = (PurePosixPath(root) / named).as_posix()
            # A file that did not change is at hand on the side of the head only.
            text = inputs.text_before(path) if before and path in changed else None
            if text is None and not (before and path in changed):
                text = inputs.text_after(path)
            if text is not None:
                return text
        return None

    return text_of


def _cases(text: str | None, path: str, read: ReadText) -> list[Written]:
    found = load(text) if text else None
    if not isinstance(found, dict):
        return []
    return [
        Written(path, str(name), case_of(body, read))
        for name, body in found.items()
        if isinstance(body, dict) and "model" in body
    ]


def _unreadable(text: str | None) -> bool:
    """Whether there is something that a YAML parser does not read: Jinja around keys, mostly."""
    if text is None or all(_COMMENT_OR_BLANK.fullmatch(line) for line in text.splitlines()):
        return False
    return not isinstance(load(text), dict)
