"""A project's unit tests: run, and told why they fail and whose doing that may be."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_bot.contracts.documents.plan import TestFailure, TestsCheck
from ci_bot.worker import compat
from ci_bot.worker.project.model_files import files_of, reaches_every_model
from ci_bot.worker.project.testing.causes import cause
from ci_bot.worker.words.names import Names, file_name_or_last
from ci_bot.worker.words.problems import sentence

NO_MESSAGE = "the test failed without a message"


def unit_tests(context: Any, repository: Path) -> TestsCheck:
    """Runs the project's unit tests on its test connection (DuckDB unless configured)."""
    return run(context, compat.loaded_tests(context), repository)


def run(context: Any, tests: Sequence[Any], repository: Path) -> TestsCheck:
    """Runs `tests`, which the context has loaded.

    SQLMesh builds all tests before it runs the first, so that one broken definition stops them all;
    then they are run one by one.

    Raises:
        BadInput: they run on Spark, which cannot start here.
    """
    if not tests:
        return TestsCheck(status="none")
    compat.announce_tests_on_spark(context, tests)
    results, broken = [], []
    # Building a test changes its definition, and a second time that can fail.
    bodies = [copy.deepcopy(test.body) for test in tests]
    try:
        results.append(_result(context, tests))
    except Exception:
        for test, body in zip(tests, bodies, strict=True):
            test.body.clear()
            test.body.update(body)
            try:
                results.append(_result(context, [test]))
            except Exception as error:
                broken.append(_broken(context, test, error, repository))
    failures = broken + [
        _failure(context, test, error[1], repository)
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


def _result(context: Any, tests: Sequence[Any]) -> Any:
    names = [test.fully_qualified_test_name for test in tests]
    return context.test(tests=names, stream=io.StringIO())


def _called(context: Any, model: Any) -> str | None:
    """How reports call a test's model."""
    names = Names(context.default_catalog, context.default_dialect)
    return names.of(model.fqn) if model else None


def _failure(context: Any, test: Any, error: BaseException | None, repository: Path) -> TestFailure:
    return TestFailure(
        name=str(getattr(test, "test_name", test)),
        model=_called(context, getattr(test, "model", None)),
        path=file_name_or_last(getattr(test, "path", None), repository),
        message=_message(error, repository),
        cause=cause(_full_message(error, repository)),
    )


def _broken(context: Any, test: Any, error: Exception, repository: Path) -> TestFailure:
    """A test that could not even be built."""
    model = context.get_model(test.model_name) if test.model_name else None
    return TestFailure(
        name=str(test.test_name),
        model=_called(context, model) or str(test.model_name) or None,
        path=file_name_or_last(test.path, repository),
        message=_message(error, repository),
        cause=cause(_full_message(error, repository)),
    )


def _message(error: BaseException | None, repository: Path) -> str:
    return _inside(sentence(error or RuntimeError(NO_MESSAGE)), repository)


def _full_message(error: BaseException | None, repository: Path) -> str:
    """The whole message; its tables are read by their columns, so that no space may go."""
    return _inside(str(error) if error else NO_MESSAGE, repository)


def _inside(text: str, repository: Path) -> str:
    return text.replace(f"{repository}/", "")


def with_touched(
    check: TestsCheck,
    models: Mapping[str, Any],
    changed_files: Sequence[str] | None,
    repository: Path,
    names: Names,
) -> TestsCheck:
    """The same check; each failure says whether the pull request can have caused it."""
    return check.model_copy(
        update={
            "failures": [
                failure.model_copy(
                    update={"touched": _touched(failure, models, changed_files, repository, names)}
                )
                for failure in check.failures
            ]
        }
    )


def _touched(
    failure: TestFailure,
    models: Mapping[str, Any],
    changed_files: Sequence[str] | None,
    repository: Path,
    names: Names,
) -> bool | None:
    """Whether the test's file, its model, one that it reads, or code for all of them changed."""
    if changed_files is None:
        return None
    if failure.path in changed_files or any(_is_code(path) for path in changed_files):
        return True
    tested = next((m for m in models.values() if names.of(m.fqn) == failure.model), None)
    if tested is None:
        return None
    changed = {str(repository / path) for path in changed_files}
    pending, seen = [tested.fqn], set()
    while pending:
        name = pending.pop()
        if name in seen or name not in models:
            continue
        seen.add(name)
        if changed & files_of(models[name]):
            return True
        pending.extend(models[name].depends_on)
    return False


def _is_code(path: str) -> bool:
    return path.endswith(".py") or reaches_every_model(path)
