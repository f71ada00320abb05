"""Whether a review with `cache: base` says what one without it says, over a corpus.

    python -m tests.corpus.with_cache CORPUS [CASE ...]
    python -m tests.corpus.with_cache --history REPOSITORY [--most N] [CASE ...]

A case is one of a corpus, or what a commit of a public project's repository has changed.
The base of each case is prod in a state of its own, with nothing built. What its files define is noted
as a run on the default branch does, and the head is reviewed against that state with the notes and
without them. The worker's whole answers are compared, but for how long things took. Exit 1 where any
two differ, with the parts that do. That files are taken at all stands in the last line.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from tests.corpus.from_history import cases_of
from tests.corpus.labelled import Case, read_cases
from tests.corpus.runner import changed_between, request
from tests.security.forked import forked

UNTIL = "2024-06-01"
_OWN_STATE = """

from sqlmesh.core.config import DuckDBConnectionConfig

for gateway in config.gateways.values():
    gateway.state_connection = DuckDBConnectionConfig(database={state!r})
"""
# What differs between two runs of anything.
_OF_A_RUN = ("timings", "created_at", "seconds")


@dataclass(frozen=True)
class Compared:
    """One case.

    Attributes:
        noted: Files that the default branch's run noted; None: the base does not load.
        taken: Those of them that the review did not parse to load their models.
        differs: The parts of the answers that are not the same.
    """

    case: str
    noted: int | None
    taken: int = 0
    differs: Sequence[str] = ()


def compare(case: Case, folder: Path) -> Compared:
    """Reviews a case twice, in `folder`, which becomes the current directory."""
    case.write(folder)
    for name in ("home", "state"):
        (folder / name).mkdir()
    for name in ("base", "head"):
        _with_own_state(folder / name, folder / "state" / "own.db")
    os.chdir(folder)
    known = forked(lambda: _noted(folder), folder / "home")
    if known is None:
        return Compared(case.id, None)
    plain, _ = forked(lambda: _answer(folder, "plain", []), folder / "home")
    other, taken = forked(lambda: _answer(folder, "known", known), folder / "home")
    return Compared(
        case.id,
        len(known),
        taken,
        sorted(name for name in plain.keys() | other.keys() if plain.get(name) != other.get(name)),
    )


def _with_own_state(project: Path, state: Path) -> None:
    """Moves the state of a configuration, if it is one, from wherever a team has it."""
    file = project / "config.yaml"
    if (project / "config.py").is_file():
        with (project / "config.py").open("a", encoding="utf-8") as python:
            python.write(_OWN_STATE.format(state=str(state)))
        return
    try:
        config = yaml.safe_load(file.read_text("utf-8"))
        gateways = config["gateways"].values()
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        return
    for gateway in gateways:
        gateway["state_connection"] = {"type": "duckdb", "database": str(state)}
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def _noted(folder: Path) -> list[Any] | None:
    """The base as prod, and what a run on the default branch notes of it."""
    from sqlmesh.utils.date import to_timestamp

    from ci_bot.errors import BotError
    from ci_bot.protocol.messages import Owner, RememberRequest, Workplace
    from ci_bot.worker import sqlmesh_compat
    from ci_bot.worker.project import base_branch, opening
    from ci_bot.worker.project.configuration import make_project_place
    from ci_bot.worker.review import review_plan
    from ci_bot.worker.runtime.process import WorkerPhaseClock

    scratch, cache = _places(folder, "noting")
    base = folder / "base"
    asked = RememberRequest(
        projects=[str(base)],
        workplace=Workplace(repository=str(base), cache_dir=str(cache), scratch_dir=str(scratch)),
        owner=Owner(name="corpus"),
    )
    try:
        opened = opening.open_project_without_state(
            make_project_place(asked, asked.projects),
            clock=WorkerPhaseClock(),
            on_spark_start=_no_spark,
        )
    except BotError:
        return None
    (config,) = sqlmesh_compat.read_sqlmesh_configs([base]).values()
    state = sqlmesh_compat.make_throwaway_sqlmesh_state(
        Path(config.get_state_connection(None).database), opened.context
    )
    sqlmesh_compat.give_sqlmesh_state(opened.context, state)
    base_branch.promote_base_project_as_prod(opened.context, state, to_timestamp(UNTIL))
    state.close()
    return review_plan.note_base_cache_for_reviews(asked, WorkerPhaseClock(), _no_spark).files


def _answer(folder: Path, name: str, known: list[Any]) -> tuple[dict[str, Any], int]:
    """What the worker answers, without times, and how many files it took as known."""
    from ci_bot.worker.review import review_plan
    from ci_bot.worker.runtime.process import WorkerPhaseClock
    from ci_bot.worker.sqlmesh_compat import base_cache
    from ci_bot.worker.sqlmesh_compat.skipped_work import make_unparsed_sqlmesh_query

    scratch, cache = _places(folder, name)
    asked = request(
        folder,
        changed_between(folder / "base", folder / "head"),
        scratch=scratch,
        cache=cache,
        baseline="state",
        execution_time=UNTIL,
        known_files=known,
    )
    with patch.object(
        base_cache, "make_unparsed_sqlmesh_query", wraps=make_unparsed_sqlmesh_query
    ) as taken:
        try:
            facts = review_plan.review_plan(
                asked,
                review_plan.ReviewPorts(WorkerPhaseClock(), lambda phase, message: None, _no_spark),
            )
        except Exception as error:
            return {"error": repr(error)}, taken.call_count
    return _without_times(facts.model_dump(mode="json")), taken.call_count


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(part) for key, part in value.items() if key not in _OF_A_RUN}
    return [_without_times(part) for part in value] if isinstance(value, list) else value


def _places(folder: Path, name: str) -> tuple[Path, Path]:
    # The same names for all, because texts may repeat them.
    places = folder / "scratch", folder / "cache"
    for place in places:
        if place.exists():
            place.rename(folder / f"{place.name}-before-{name}")
        place.mkdir()
    return places


def _no_spark() -> None:
    raise RuntimeError("a statement reached Spark")


def main(cases: Iterable[Case], told: Callable[[str], Any]) -> int:
    """Compares the reviews of cases; 1 where a cache makes a difference."""
    os.environ["SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"] = "true"
    import sqlmesh  # noqa: F401 - imported once, so that every fork has it already

    found = []
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="cached-") as directory:
            one = compare(case, Path(directory))
            os.chdir("/")
        found.append(one)
        if one.differs or one.noted is None:
            told(f"{one.case}: {', '.join(one.differs) or 'the base does not load'}")
    differ = [one for one in found if one.differs]
    noted, taken = sum(one.noted or 0 for one in found), sum(one.taken for one in found)
    told(
        f"{len(found)} cases, {noted} files noted, {taken} taken, {len(differ)} with another answer, "
        f"{sum(one.noted is None for one in found)} whose base does not load"
    )
    return 1 if differ else 0


if __name__ == "__main__":
    asked = argparse.ArgumentParser(prog="python -m tests.corpus.with_cache", description=__doc__)
    asked.add_argument("corpus", type=Path)
    asked.add_argument("only", nargs="*", metavar="CASE")
    asked.add_argument("--history", action="store_true")
    asked.add_argument("--most", type=int, default=50)
    given = asked.parse_intermixed_args()
    place = given.corpus.resolve()
    found = cases_of(place, given.most) if given.history else read_cases(place)
    wanted = tuple(given.only) or ("",)
    sys.exit(main((case for case in found if case.id.startswith(wanted)), print))
