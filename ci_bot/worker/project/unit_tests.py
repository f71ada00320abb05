"""A project's unit tests: runs them, and finds why they fail and whether the pull request can be
the cause.
"""

from __future__ import annotations

import copy
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.plan import TestFailure, TestsCheck
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import (
    MessageNames,
    extract_sentence_of_error,
    name_file_in_message_or_last_part,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model
    from sqlmesh.core.test import ModelTestMetadata, ModelTextTestResult

# Why a unit test fails, in one sentence, from the message that SQLMesh gives.
#
# SQLMesh prints the tables of pandas, in which numbers and names are aligned to the right in their
# columns. (`sqlmesh.core.test.definition.ModelTest.assert_equal`, `_raise_if_unexpected_columns`)


MAX_CAUSE = 500

_VALUES_DIFFER = re.compile(r"Data (?:mismatch|differs) \(exp: expected, act: actual\)")

_ROWS_DIFFER = re.compile(r"Data (?:mismatch|differs) \(rows are different\)")

_UNKNOWN = re.compile(r"^Unknown column\(s\):\s*(.+)$", re.MULTILINE)

_EXPECTED = re.compile(r"^Expected column\(s\):\s*(.+)$", re.MULTILINE)

_WHERE_NOT_WHAT = re.compile(r"^Failed to (?:run|create) test\b.*$", re.MULTILINE)

_SIDE = re.compile(r"\b(?:exp|act)\b")

_WHOLE_NUMBER = re.compile(r"-?\d+\.0+")

_TITLES = {"Missing rows:": "is missing", "Unexpected rows:": "is not expected"}

_COLUMNS_SHOWN = 6


def describe_unit_test_failure(message: str) -> str:
    """Describes a failed test: the first wrong value, row or column, and how many more there
    are.
    """
    return (
        _describe_wrong_unit_test_values(message)
        or _describe_wrong_unit_test_rows(message)
        or _describe_wrong_unit_test_columns(message)
        or _find_first_unit_test_reason(message)
    )[:MAX_CAUSE]


def _find_first_unit_test_reason(message: str) -> str:
    """Returns the first line that names the problem and not the place."""
    rest = _WHERE_NOT_WHAT.sub("", message).strip() or message.strip()
    return next((line.strip() for line in rest.splitlines() if line.strip()), "it fails")


def _describe_wrong_unit_test_columns(message: str) -> str | None:
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return None
    named = _join_unit_test_names(unknown.group(1))
    known = _EXPECTED.search(message)
    many = "," in unknown.group(1)
    text = f"the test has the unknown {'columns' if many else 'column'} {named}"
    return f"{text}; there are {_join_unit_test_names(known.group(1))}" if known else text


def _join_unit_test_names(names: str) -> str:
    every = [name.strip() for name in names.split(",")]
    shown = ", ".join(f"`{name}`" for name in every[:_COLUMNS_SHOWN])
    rest = len(every) - _COLUMNS_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def _describe_wrong_unit_test_values(message: str) -> str | None:
    if not _VALUES_DIFFER.search(message):
        return None
    lines = _read_unit_test_table(message.splitlines(), 1)
    differences = list(_iterate_unit_test_differences(lines)) if len(lines) > 2 else []  # noqa: PLR2004 - 2 headers
    if not differences:
        return "the expected and the actual values differ"
    column, expected, actual = differences[0]
    more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
    return f"`{column}`: expected {expected}, actual {actual}{more}"


def _iterate_unit_test_differences(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yields column, expected and actual value of each unequal cell; pandas shows equal cells as
    NaN on both sides.
    """
    names, sides, *rows = lines
    edges = [found.end() for found in _SIDE.finditer(sides)]
    margin = _measure_unit_test_margin(rows)
    for row in rows:
        for left in range(0, len(edges) - 1, 2):
            start = edges[left - 1] if left else margin
            column = names[start : edges[left]].strip()
            expected = _show_unit_test_cell(row[start : edges[left]])
            actual = _show_unit_test_cell(row[edges[left] : edges[left + 1]])
            if column and expected != actual:
                yield column, expected, actual


def _measure_unit_test_margin(rows: Sequence[str]) -> int:
    """Returns the width of the row numbers at the left."""
    return max((len(row.split(maxsplit=1)[0]) for row in rows if row.strip()), default=0)


def _show_unit_test_cell(cell: str) -> str:
    text = cell.strip()
    if text in ("NaN", "None", "NaT", "<NA>"):
        return "NULL"
    # pandas shows whole numbers as decimals if another cell of the column is empty.
    return text.partition(".")[0] if _WHOLE_NUMBER.fullmatch(text) else text


@dataclass(frozen=True)
class _TitledRowsOfUnitTest:
    """The rows below one title."""

    fate: str
    first: str
    count: int


def _describe_wrong_unit_test_rows(message: str) -> str | None:
    if not _ROWS_DIFFER.search(message):
        return None
    lines = message.splitlines()
    found = [
        rows
        for number, line in enumerate(lines)
        if (fate := _TITLES.get(line.strip()))
        and (rows := _read_unit_test_rows(_read_unit_test_table(lines, number + 1), fate))
    ]
    if not found:
        return "the number of rows differs"
    return "; ".join(
        f"the row {rows.first} {rows.fate}"
        + (f", and {rows.count - 1} more like it" if rows.count > 1 else "")
        for rows in found
    )


def _read_unit_test_rows(lines: Sequence[str], fate: str) -> _TitledRowsOfUnitTest | None:
    if len(lines) < 2:  # noqa: PLR2004 - a header and a row
        return None
    header, first = lines[0], lines[1]
    edges = [found.end() for found in re.finditer(r"\S+", header)]
    starts = [_measure_unit_test_margin(lines[1:]), *edges]
    cells = [
        f"`{header[start:end].strip()}` {_show_unit_test_cell(first[start:end])}"
        for start, end in zip(starts, edges, strict=False)
    ]
    shown = ", ".join(cells[:_COLUMNS_SHOWN])
    return _TitledRowsOfUnitTest(fate, shown, len(lines) - 1)


def _read_unit_test_table(lines: Sequence[str], start: int) -> list[str]:
    """Returns the lines of the table that begins at or after `start`; a blank line ends it."""
    found: list[str] = []
    for line in lines[start:]:
        if line.strip():
            # A wide table continues in further blocks; the first block is enough for a sentence.
            found.append(line.removesuffix("\\"))
        elif found:
            break
    return found


# Which files of a project define which of its models.


# A change in one of these can change any model, so no difference counts as drift.
_REACHES_EVERY_MODEL = ("config.yaml", "config.yml", "config.py", "sqlmesh.yaml", "sqlmesh.yml")

_SHARED_FOLDERS = ("macros", "audits", "signals", "materializations", "linter")


def is_file_of_every_project_model(path: str) -> bool:
    """Whether a change of this file can change any model: configuration, macros and the like."""
    pure = PurePosixPath(path)
    return pure.name in _REACHES_EVERY_MODEL or bool(set(pure.parts) & set(_SHARED_FOLDERS))


def list_files_that_define_model(node: Any) -> set[str]:
    """Lists the files that define a model: its own, and a seed's data."""
    if not node._path:
        return set()
    found = {str(node._path)}
    kind = getattr(node, "kind", None)
    data = getattr(kind, "path", None) if getattr(kind, "is_seed", False) else None
    if data:
        found.add(str((Path(node._path).parent / data).resolve()))
    return found


NO_MESSAGE = "the test failed without a message"


def run_unit_tests(context: Context, repository: Path) -> TestsCheck:
    """Runs the project's unit tests on its test connection (DuckDB unless configured)."""
    return run_unit_tests_of(
        context, sqlmesh_compat.list_tests_that_sqlmesh_loaded(context), repository
    )


def run_unit_tests_of(
    context: Context, tests: Sequence[ModelTestMetadata], repository: Path
) -> TestsCheck:
    """Runs `tests`, which the context has loaded.

    SQLMesh builds all tests before it runs the first, so one broken definition stops them all. In
    that case they run one by one.

    Raises:
        BadInput: they run on Spark, which cannot start here.
    """
    if not tests:
        return TestsCheck(status="none")
    sqlmesh_compat.announce_sqlmesh_tests_on_spark(context, tests)
    results, broken = [], []
    # Building a test changes its definition, and a second time that can fail.
    bodies = [copy.deepcopy(test.body) for test in tests]
    try:
        results.append(_run_project_unit_tests(context, tests))
    except Exception:
        for test, body in zip(tests, bodies, strict=True):
            test.body.clear()
            test.body.update(body)
            try:
                results.append(_run_project_unit_tests(context, [test]))
            except Exception as error:
                broken.append(_make_broken_unit_test(context, test, error, repository))
    failures = broken + [
        _make_unit_test_failure(context, test, error[1], repository)
        for result in results
        for test, error in [*result.original_failures, *result.original_errors]
    ]
    return TestsCheck(
        status="failed" if failures else "passed",
        run=sum(int(result.testsRun) for result in results) + len(broken),
        failed=len({(failure.path, failure.name) for failure in failures}),
        seconds=round(sum(float(result.duration or 0.0) for result in results), 3),
        failures=failures,
    )


def _run_project_unit_tests(
    context: Context, tests: Sequence[ModelTestMetadata]
) -> ModelTextTestResult:
    names = [test.fully_qualified_test_name for test in tests]
    return context.test(tests=names, stream=io.StringIO())


def _name_unit_test_model(context: Context, model: Model | None) -> str | None:
    """Returns the name that reports use for a test's model."""
    names = MessageNames(context.default_catalog, context.default_dialect)
    return names.short_name(model.fqn) if model else None


def _make_unit_test_failure(
    context: Context, test: Any, error: BaseException | None, repository: Path
) -> TestFailure:
    return TestFailure(
        name=str(getattr(test, "test_name", test)),
        model=_name_unit_test_model(context, getattr(test, "model", None)),
        path=name_file_in_message_or_last_part(getattr(test, "path", None), repository),
        message=_describe_unit_test_error(error, repository),
        cause=describe_unit_test_failure(_render_full_unit_test_message(error, repository)),
    )


def _make_broken_unit_test(
    context: Context, test: ModelTestMetadata, error: Exception, repository: Path
) -> TestFailure:
    """Makes the failure of a test that SQLMesh could not build."""
    model = context.get_model(test.model_name) if test.model_name else None
    return TestFailure(
        name=str(test.test_name),
        model=_name_unit_test_model(context, model) or str(test.model_name) or None,
        path=name_file_in_message_or_last_part(test.path, repository),
        message=_describe_unit_test_error(error, repository),
        cause=describe_unit_test_failure(_render_full_unit_test_message(error, repository)),
    )


def _describe_unit_test_error(error: BaseException | None, repository: Path) -> str:
    return _shorten_paths_in_unit_test_message(
        extract_sentence_of_error(error or RuntimeError(NO_MESSAGE)), repository
    )


def _render_full_unit_test_message(error: BaseException | None, repository: Path) -> str:
    """Returns the whole message. Its tables are read by column, so every space is kept."""
    return _shorten_paths_in_unit_test_message(str(error) if error else NO_MESSAGE, repository)


def _shorten_paths_in_unit_test_message(text: str, repository: Path) -> str:
    return text.replace(f"{repository}/", "")


def mark_unit_tests_touched_by_change(
    check: TestsCheck,
    models: Mapping[str, Model],
    changed_files: Sequence[str] | None,
    repository: Path,
    names: MessageNames,
) -> TestsCheck:
    """Returns the check in which each failure says whether the pull request can have caused it."""
    return check.model_copy(
        update={
            "failures": [
                failure.model_copy(
                    update={
                        "touched": _is_unit_test_touched(
                            failure, models, changed_files, repository, names
                        )
                    }
                )
                for failure in check.failures
            ]
        }
    )


def _is_unit_test_touched(
    failure: TestFailure,
    models: Mapping[str, Model],
    changed_files: Sequence[str] | None,
    repository: Path,
    names: MessageNames,
) -> bool | None:
    """Whether the test's file, a model that it needs, or shared code changed; None if unknown."""
    if changed_files is None:
        return None
    if failure.path in changed_files or any(_is_code_of_project(path) for path in changed_files):
        return True
    tested = next((m for m in models.values() if names.short_name(m.fqn) == failure.model), None)
    if tested is None:
        return None
    changed = {str(repository / path) for path in changed_files}
    pending, seen = [tested.fqn], set()
    while pending:
        name = pending.pop()
        if name in seen or name not in models:
            continue
        seen.add(name)
        if changed & list_files_that_define_model(models[name]):
            return True
        pending.extend(models[name].depends_on)
    return False


def _is_code_of_project(path: str) -> bool:
    return path.endswith(".py") or is_file_of_every_project_model(path)
