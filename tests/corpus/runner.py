"""Reviews every case of a corpus of labelled changes and writes one report for each.

    python -m tests.corpus.runner CORPUS OUT [CASE ...]

The README beside this file says what a corpus is. Each case is written out as two projects, its
base is taken for prod (`--baseline base-branch`), and its head is reviewed by the worker's own code
and judged by the bot's. No JVM starts. Each case runs in a fork of its own, one at a time, so that
macros, models and .env files of one case do not reach the next.
"""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tests.corpus.labelled import read_cases

if TYPE_CHECKING:
    from ci_bot.protocol.messages import ReviewRequest

T = TypeVar("T")

CASE_SECONDS = 300
# After its answer a fork has a list of modules to write.
_ENDING_SECONDS = 10
# A case's own macros and models are modules, too, and must not reach the next case.
_SHARED_PACKAGES = ("ci_bot", "duckdb", "numpy", "pandas", "ruamel", "sqlglot", "sqlmesh")


def run(corpus: Path, out: Path, only: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Reviews the cases; yields id and decision (or the error) of each as it is done."""

    def review(folder: Path) -> str:
        try:
            report = _review(folder)
            place = out / folder.name
            place.mkdir(parents=True, exist_ok=True)
            (place / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
            return str(report["decision"])
        except BaseException:
            return traceback.format_exc()[-2_000:]

    for case, told in run_in_forks(corpus, review, only):
        yield case, "no answer" if told is None else told


def run_in_forks(
    corpus: Path, work_on: Callable[[Path], T], only: Sequence[str] = ()
) -> Iterator[tuple[str, T | None]]:
    """What `work_on` gives for each case, by the case's id; None if it gives nothing in time.

    Args:
        work_on: Takes the case's directory, in a quiet fork of its own.
        only: What the ids of the wanted cases begin with; empty: all.
    """
    # As in the worker's environment. With analytics on, every fork waits at its end to send them.
    os.environ["SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"] = "true"
    # In forks the cases are reviewed, so one process for all of a small project's models is enough.
    os.environ.setdefault("MAX_FORK_WORKERS", "1")
    import sqlmesh  # noqa: F401 - imported once, so that every fork has it already

    work = Path(tempfile.mkdtemp(prefix="corpus-"))
    fork = multiprocessing.get_context("fork")
    try:
        for case in read_cases(corpus):
            if only and not any(case.id.startswith(prefix) for prefix in only):
                continue
            folder, modules = work / case.id, work / "modules"
            case.write(folder)
            given, taken = fork.Pipe(duplex=False)
            child = fork.Process(target=_in_child, args=(work_on, folder, taken, modules))
            child.start()
            taken.close()
            found: T | None = None
            with suppress(EOFError):  # it ended without an answer
                # Before its end is waited for: who sends a large answer waits for its reader.
                found = given.recv() if given.poll(CASE_SECONDS) else None
            child.join(_ENDING_SECONDS)
            if child.is_alive():
                child.terminate()
                child.join()
            yield case.id, found
            if modules.exists():
                _import_what_a_fork_needed(modules.read_text("utf-8").split())
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _import_what_a_fork_needed(names: Sequence[str]) -> None:
    """Imports the modules that a case's fork had to import, which takes it longer than the review."""
    for name in names:
        # A submodule may be known by a name that only its package gives it.
        with suppress(ImportError):
            importlib.import_module(name)


def _in_child(work_on: Callable[[Path], object], folder: Path, found: Any, modules: Path) -> None:
    known = set(sys.modules)
    gc.disable()  # as in the worker
    quiet = StringIO()
    os.chdir(folder)
    try:
        with redirect_stdout(quiet), redirect_stderr(quiet):
            answer = work_on(folder)
        found.send(answer)
    finally:
        new = [name for name in sys.modules if name not in known]
        shared = [name for name in new if name.partition(".")[0] in _SHARED_PACKAGES]
        modules.write_text("\n".join(shared), encoding="utf-8")


def changed_between(base: Path, head: Path) -> list[str]:
    """Paths that differ, as a git diff without renames would list them."""
    names = {
        file.relative_to(root).as_posix()
        for root in (base, head)
        for file in root.rglob("*")
        if file.is_file() or file.is_symlink()
    }
    return sorted(name for name in names if _content(base / name) != _content(head / name))


def _content(path: Path) -> bytes | None:
    """A file's bytes, or where a link leads, as git has it."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else None


def request(
    folder: Path, changed: list[str], *, scratch: Path, cache: Path, **more: Any
) -> ReviewRequest:
    """What a worker is asked about a case, with its base as baseline unless `more` says otherwise."""
    from ci_bot.protocol.messages import Owner, ReviewRequest, Workplace

    base, head = folder / "base", folder / "head"
    asked = {
        "projects": [str(head)],
        "workplace": Workplace(
            repository=str(head), cache_dir=str(cache), scratch_dir=str(scratch)
        ),
        "owner": Owner(name="corpus"),
        "environment": "pr_1",
        "baseline": "base-branch",
        "base_repository": str(base),
        "base_projects": [str(base)],
        "before_dir": str(base),
        "changed_files": changed,
    }
    return ReviewRequest(**{**asked, **more})


def _review(folder: Path) -> dict[str, Any]:
    from ci_bot.bot.decision import BotFacts, JudgedFile, decide_on_review, list_risky_code_on_load
    from ci_bot.bot.sandbox.worker_output import SandboxedTraceReader, list_files_opened_in_sandbox
    from ci_bot.protocol.messages import ScanRequest
    from ci_bot.worker import sqlmesh_compat
    from ci_bot.worker.review import review_plan, scan
    from ci_bot.worker.runtime import load_trace
    from ci_bot.worker.runtime.process import WorkerPhaseClock

    base, head = folder / "base", folder / "head"
    changed = changed_between(base, head)
    scratch, cache = folder / "scratch", folder / "cache"
    scratch.mkdir()
    cache.mkdir()
    ask = request(folder, changed, scratch=scratch, cache=cache)

    scanned = scan.scan_files_before_review(
        ScanRequest(
            projects=ask.projects,
            workplace=ask.workplace,
            owner=ask.owner,
            changed_files=changed,
            before_dir=ask.before_dir,
        ),
        time.monotonic,
    )
    sqlmesh_compat.guard_sqlmesh_macro_evaluation()
    trace, told = SandboxedTraceReader(), (scratch / "trace").open("w+b", buffering=0)
    load_trace.install_load_trace(told.fileno(), [str(head)])

    def no_spark() -> None:
        raise RuntimeError("a statement reached Spark")

    try:
        facts = review_plan.review_plan(
            ask, review_plan.ReviewPorts(WorkerPhaseClock(), lambda phase, message: None, no_spark)
        )
    except Exception as error:
        facts = _failed(error, ask)
    found = [*facts.findings, *scanned.findings]
    found += scanned.without_plan if facts.failure is not None else []
    facts = facts.model_copy(update={"findings": found})
    trace.feed_bytes((scratch / "trace").read_bytes())
    loaded = list_files_opened_in_sandbox(changed, [trace], roots=(head,), checkout=head)

    def mentioned(word: str, path: str) -> bool:
        return any(
            re.search(rf"\b{re.escape(word)}\b", file.read_text("utf-8", "replace"), re.IGNORECASE)
            for file in head.rglob("*")
            if file.is_file() and file.relative_to(head).as_posix() != path
        )

    files = [JudgedFile(name, _content(base / name), _content(head / name)) for name in changed]
    on_load = list_risky_code_on_load(files, loaded, ["."], mentioned)
    bot = BotFacts(
        changed_files=tuple(changed),
        code_on_load=tuple(on_load),
        removed_code=tuple(name for name in on_load if not (head / name).exists()),
    )
    judgement = decide_on_review(facts, bot=bot)
    return {
        "decision": judgement.decision,
        "reasons": list(judgement.reasons),
        "risks": [risk.model_dump() for risk in judgement.risks],
        "timings": facts.timings,
    }


def _failed(error: Exception, asked: Any) -> Any:
    """What the bot makes of a worker that failed."""
    from ci_bot.bot.decision import (
        combine_load_failures_for_decision,
        sort_load_failures_for_decision,
    )
    from ci_bot.bot.worker_client.review_facts import (
        make_facts_of_failed_request,
        make_facts_of_unplanned_request,
    )
    from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits, WorkerReviewOptions
    from ci_bot.worker.__main__ import make_failed_answer

    options = WorkerReviewOptions(
        environment="pr_1", owner=asked.owner, commits=RequestedReviewCommits()
    )
    answer = make_failed_answer(error, asked)
    found = sort_load_failures_for_decision(
        answer.failures or [answer.failure], answer.base_failures, asked.changed_files
    )
    if found.new:
        told = combine_load_failures_for_decision(found, base_is_broken=bool(answer.base_failures))
        return make_facts_of_failed_request(told, options, projects=["."], gateway=None)
    return make_facts_of_unplanned_request(
        found.old, options, projects=["."], gateway=None, baseline="base-branch"
    )


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2:
        sys.stderr.write("usage: python -m tests.corpus.runner CORPUS OUT [CASE ...]\n")
        return 2
    corpus, out = (Path(name).resolve() for name in arguments[:2])
    for name, outcome in run(corpus, out, arguments[2:]):
        sys.stdout.write(f"{name} {outcome}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
