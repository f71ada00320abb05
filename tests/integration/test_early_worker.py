"""A worker that starts before it is asked: the same report, the same cage, and no process left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.sandbox import early_worker
from ci_bot.bot.sandbox.deadline import SandboxCancelToken
from ci_bot.bot.sandbox.early_worker import (
    HANDED_OVER,
    EarlyWorker,
    end_early_worker,
    start_early_worker,
    start_early_worker_in_workflow,
    take_early_worker,
)
from ci_bot.bot.sandbox.launch import SandboxLaunch
from ci_bot.bot.worker_client import WorkerClientOptions, WorkListener, open_worker_client
from ci_bot.host import ContainerUser, make_process_machine
from ci_bot.redaction import Redactor
from ci_bot.worker import __main__ as worker_start
from tests.conftest import REPOSITORY, missing
from tests.integration.test_worker_process import WORKER, worker_python
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.repository import Repository, write_repository

pytestmark = pytest.mark.cold_worker

# What a changed macro finds when it runs, as code of a pull request would.
MACRO = """\
import json, os, resource, signal, sys, tempfile
from pathlib import Path
import sqlmesh.core.constants as constants
from sqlmesh import macro

PLACE = Path({place!r})


def kind(number):
    try:
        end = os.readlink(f"/proc/self/fd/{{number}}")
    except OSError:
        return "the list's own"
    return "unnamed file" if end.endswith("(deleted)") else end.partition(":")[0]


if not PLACE.exists():
    PLACE.write_text(json.dumps({{
        "arguments": len(sys.argv),
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "temporary": tempfile.gettempdir(),
        "path": sys.path,
        "home": str(constants.SQLMESH_PATH),
        "forks": constants.MAX_FORK_WORKERS,
        "descriptors": sorted(map(kind, os.listdir("/proc/self/fd"))),
        "limits": [
            resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")
        ],
        "session": os.getsid(0) == os.getpid(),
        "signals": [str(signal.getsignal(n)).split(" at ")[0] for n in (signal.SIGTERM, signal.SIGINT)],
        "rights": [
            line for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith(("NoNewPrivs", "Cap", "Uid", "Gid", "Groups", "Seccomp"))
        ],
        "oom": Path("/proc/self/oom_score_adj").read_text(),
    }}))


@macro()
def rate(evaluator):
    return 1
"""
EARLY = [sys.executable, "-m", "ci_bot"]
PLAIN = [sys.executable, "-c", "from ci_bot.bot.cli import main; main()"]


def write_change(root: Path, place: Path) -> Repository:
    """A pull request whose model uses a new macro; prod has the rest."""
    repository = write_repository(root, {"project/macros/__init__.py": ""})
    run_prod(repository.shop, "2024-01-11")
    sql = repository.read("project/models/revenue.sql")
    repository.change(
        {
            "project/macros/rate.py": MACRO.format(place=str(place)),
            "project/models/revenue.sql": sql.replace("SUM(o.amount)", "SUM(o.amount * @rate())"),
        }
    )
    return repository


def run_review(command: list[str], repository: Repository, place: Path) -> tuple[Any, Any]:
    """The report, and what the macro found.

    Each run gets the first free name in the temporary directory, so it has that directory for
    itself: tests of another process may run beside it.
    """
    place.unlink(missing_ok=True)
    temporary = repository.root.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    done = subprocess.run(
        [*command, "review", "project", "--base-ref", "HEAD^", "--format", "json"],
        cwd=repository.root,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "GITHUB_TOKEN": "ghs_" + "s" * 36,
            "PYTHONPATH": str(REPOSITORY),
            "TMPDIR": str(temporary),
        },
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    for part, name in (
        (report, "timings"),
        (report, "planned_at"),
        (report["checks"]["tests"], "seconds"),
    ):
        part.pop(name, None)
    return report, json.loads(place.read_text())


def test_review__is_the_same_and_so_is_what_the_projects_code_can_reach(tmp_path: Path) -> None:
    place = tmp_path / "found.json"
    repository = write_change(tmp_path / "shop", place)

    early, found_early = run_review(EARLY, repository, place)
    plain, found_plain = run_review(PLAIN, repository, place)

    # It was a worker that waits, and not one that was started when it was needed.
    assert found_early.pop("arguments") == found_plain.pop("arguments") + 2
    assert found_early == found_plain
    assert not any("s" * 36 in value for value in found_early["environment"].values())
    assert "R12-code-on-load" in {risk["rule"] for risk in early["risks"]}
    assert early == plain


def make_launch(here: Path, **changed: Any) -> SandboxLaunch:
    """The launch that the early worker of this process was started for."""
    fields: dict[str, Any] = {
        "python": sys.executable,
        "variables": {"HOME": "/", "PATH": "/usr/bin", "TMPDIR": str(here)},
        "directory": here,
        "channel_directory": here,
        "search_path": (str(REPOSITORY),),
        "traced": (here,),
    }
    return SandboxLaunch(**{**fields, **changed})


@pytest.fixture
def waiting() -> EarlyWorker:
    """A worker that waits in this process."""
    start_early_worker("review", {"HOME": "/", "PATH": "/usr/bin"})
    (found,) = early_worker._waiting
    return found


def test_take__the_worker_of_this_launch(waiting: EarlyWorker, tmp_path: Path) -> None:
    assert take_early_worker(make_launch(tmp_path)) is waiting
    assert waiting.process.poll() is None
    waiting.end_unused()


@pytest.mark.parametrize(
    "changed",
    [
        {"python": "/usr/bin/python3"},
        {"variables": {"HOME": "/", "PATH": "/usr/bin", "SPARK_PASSWORD": "p"}},
        {"variables": {"HOME": "/"}},
        {"variables": {"HOME": "/elsewhere", "PATH": "/usr/bin"}},
        {"overlay": Path("/pins")},
        {"search_path": ("/elsewhere",)},
        {"module": "another"},
        {"traced": ()},
        {"bounds": {"RLIMIT_CPU": 1}},
        {"directory": Path("/missing")},
    ],
    ids="-".join,
)
def test_take__ends_one_that_would_not_be_the_same(
    waiting: EarlyWorker, tmp_path: Path, changed: dict[str, Any]
) -> None:
    assert take_early_worker(make_launch(tmp_path, **changed)) is None
    assert waiting.process.returncode is not None
    assert not Path(f"/proc/{waiting.process.pid}").exists()


def test_end__leaves_no_process_and_no_descriptor(tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208
    start_early_worker("review", {"PATH": "/usr/bin"})
    (found,) = early_worker._waiting
    end_early_worker()
    assert found.process.returncode is not None
    assert sorted(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("caged", [False, True])
def test_workflow__starts_the_worker_that_its_review_needs(tmp_path: Path, caged: bool) -> None:
    if caged and os.geteuid() != 0:
        missing("changing users needs root")
    user = ContainerUser(uid=WORKER.uid, gid=WORKER.gid, java_home="/java") if caged else None
    machine = replace(
        make_process_machine(),
        worker_user=user,
        python=worker_python(),
        temporary=tmp_path,
        environ={**os.environ, "SPARK_CONF_DIR": "/conf", "GITHUB_TOKEN": "ghs_" + "s" * 36},
    )
    (tmp_path / "checkout").mkdir()
    start_early_worker_in_workflow("review", machine, worker_env="", secrets=["s" * 36])
    cancel = SandboxCancelToken(clock=time.monotonic)
    with open_worker_client(
        WorkerClientOptions(checkout=tmp_path / "checkout", projects=(".",)),
        machine,
        redactor=Redactor([]),
        cancel=cancel,
        listener=WorkListener(on_progress=lambda _step: None, on_log=lambda _line: None),
    ) as client:
        found = take_early_worker(replace(client._launch, traced=(tmp_path,)))
    cancel.close()
    assert found is not None
    assert not any("s" * 36 in value for value in found.variables.values())
    found.end_unused()


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_start__needs_the_standard_streams_whose_numbers_pipes_would_get(closed: int) -> None:
    program = (
        f"import os, sys; os.close({closed}); from ci_bot.bot.sandbox import early_worker as e;"
        "e.start_early_worker('review', {}); os._exit(len(e._waiting))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_bot_that_is_killed__takes_the_worker_with_it() -> None:
    program = (
        "import os, sys; from ci_bot.bot.sandbox import early_worker as e;"
        "e.start_early_worker('review', dict(os.environ));"
        "print(e._waiting[0].process.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as bot:
        assert bot.stdout is not None
        worker = Path("/proc", bot.stdout.readline().strip())
        assert worker.exists()
        bot.kill()
    until = time.monotonic() + 30
    while worker.exists() and "Z" not in (worker / "stat").read_text().rpartition(")")[2][:3]:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_imports__read_no_variable_that_is_handed_over_later() -> None:
    """Else a worker that was early would differ from one that starts with them."""
    groups = (group for pair in worker_start._IMPORTED_EARLY.values() for group in pair)
    names = [name for group in groups for name in group]
    program = """
import importlib, json, os, sys, tempfile, traceback
SET_AGAIN = ("multiprocessing/process.py", "rich/__init__.py")
read = {}
class Environment(type(os.environ)):
    def __getitem__(self, key):
        lines = [f"{f.filename}" for f in traceback.extract_stack()[:-1]]
        read.setdefault(key, []).append(lines)
        return super().__getitem__(key)
old = os.environ
os.environ = Environment(old._data, old.encodekey, old.decodekey, old.encodevalue, old.decodevalue)
from ci_bot.worker.runtime import delay_import_work
delay_import_work()
def get_directory(get=os.getcwd):
    if not any(frame.filename.endswith(SET_AGAIN) for frame in traceback.extract_stack()):
        sys.exit("an import asks for the current directory")
    return get()
os.getcwd = get_directory
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
assert tempfile.tempdir is None
print(json.dumps({name: read.get(name, []) for name in json.loads(sys.argv[2])}))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, json.dumps(names), json.dumps(HANDED_OVER)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    allowed = "/platform.py"  # it runs `uname` with a copy of all variables
    readers = {
        name: [lines for lines in found if not any(line.endswith(allowed) for line in lines)]
        for name, found in json.loads(done.stdout).items()
    }
    assert not any(readers.values()), readers


def test_worker__has_all_its_work_imported_and_still_answers(tmp_path: Path) -> None:
    """As in an action: the bot takes longer than the imports, and only then asks."""
    shop = write_duck_shop(tmp_path / "shop")
    run_prod(shop, "2024-01-11")
    program = (
        "import os, sys, time; from ci_bot.bot.sandbox import early_worker as e;"
        "e.start_early_worker_on_laptop(['review'], os.environ);"
        "stat = open(f'/proc/{e._waiting[0].process.pid}/stat');\n"
        "while stat.read().rpartition(')')[2].split()[0] != 'S': stat.seek(0); time.sleep(0.1)\n"
        "time.sleep(3)\n"
        "from ci_bot.bot.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "review", "project", "--format", "json"],
        cwd=shop.root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert json.loads(done.stdout)["failure"] is None, done.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["--version"], ["doctor"], ["review", "--help"], ["apply", "-h"], ["run"]]
)
def test_laptop__starts_nothing_for_a_command_without_a_review(arguments: list[str]) -> None:
    early_worker.start_early_worker_on_laptop(arguments, os.environ)
    assert early_worker._waiting == []
