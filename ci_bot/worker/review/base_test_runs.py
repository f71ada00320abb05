"""Whether the unit tests that fail in the pull request also fail on the base branch.

They run in a separate process, so that no code of the pull request is loaded beside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.messages import BaseTestsRequest
from ci_bot.protocol.review_inputs import BaseTests, TestName, TestOutcome
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project import load_alone, make_project_place, unit_tests
from ci_bot.worker.review.review_plan import ReviewPorts
from ci_bot.worker.runtime import imports

if TYPE_CHECKING:
    from sqlmesh.core.context import Context


def run_base_tests(request: BaseTestsRequest, ports: ReviewPorts) -> BaseTests:
    """Runs the tests that the request names, without state and plan.

    Raises:
        BadInput: the base branch's configuration cannot be read.
        NotLoaded: its project does not load.
    """
    base = Path(request.base_repository)
    imports.move_search_paths(
        request.workplace.python_path, Path(request.workplace.repository), base
    )
    place = make_project_place(request, request.projects, cache_name="base-tests", root=base)
    context = load_alone(place, ports.clock, ports.on_spark_start, name="base-tests")
    ports.progress("tests", f"running {len(request.tests)} unit tests on the base branch")
    chosen = {name: _find_base_test(context, name, place.repository) for name in request.tests}
    check = unit_tests.run_unit_tests_of(
        context, [test for test in chosen.values() if test is not None], place.repository
    )
    failed = {(failure.path, failure.name) for failure in check.failures}
    return BaseTests(
        outcomes=[
            TestOutcome(
                path=name.path,
                name=name.name,
                result="absent"
                if test is None
                else "failed"
                if (_test_path(test, place.repository), test.test_name) in failed
                else "passed",
            )
            for name, test in chosen.items()
        ]
    )


def _find_base_test(context: Context, wanted: TestName, repository: Path) -> Any:
    """Finds the test on the base branch: in the same file, else by its name in another one."""
    named = [
        test for test in sqlmesh_compat.list_loaded_tests(context) if test.test_name == wanted.name
    ]
    same = [test for test in named if _test_path(test, repository) == wanted.path]
    return next(iter(same or named), None)


def _test_path(test: Any, repository: Path) -> str | None:
    path = Path(test.path)
    return str(path.relative_to(repository)) if path.is_relative_to(repository) else path.name
