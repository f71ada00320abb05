"""The cage with real processes: what a hostile worker tries, and that nothing of it is left.

With root, the worker really runs under another user; without, those tests are skipped with the
reason and the others run as the user, as on a laptop.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.sandbox.deadline import SandboxCancelToken, SandboxDeadline
from ci_bot.bot.sandbox.launch import (
    ENTER,
    MIB,
    SandboxIdentity,
    SandboxLaunch,
    SandboxLimits,
    SandboxVariables,
    build_sandboxed_environment,
    has_sandboxed_user_right,
    prepend_python_path_in_sandbox,
    read_free_space_for_sandbox,
)
from ci_bot.bot.sandbox.process_tree import SandboxedProcessEntry, read_table_of_sandboxed_processes
from ci_bot.bot.sandbox.requirements import install_requirements_in_sandbox
from ci_bot.bot.sandbox.run_directories import SandboxWorkspace, open_sandbox_workspace
from ci_bot.bot.sandbox.worker_run import (
    SandboxedWorkerCancelled,
    SandboxedWorkerTimedOut,
    SecondSandboxedQuestion,
    run_worker_in_sandbox,
)
from ci_bot.errors import BadInput, RunCancelled, WorkerFailed
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.messages import ApplyRequest, CleanupRequest, Owner, Progress
from ci_bot.redaction import Redactor
from tests.conftest import missing
from tests.worker import alive

REPOSITORY = Path(__file__).parents[2]
# No account of this machine, and no other test run's: what runs under it was started here.
WORKER = SandboxIdentity(uid=61_000 + os.getpid() % 4_000, gid=61_000)
TOKEN = "ghs_" + "0123456789abcdefghijklmnopqrstuvwxyz"
PASSWORD = "s3cret-of-the-warehouse"
PATIENCE = 20.0


def reachable(program: str) -> bool:
    path = Path(program).resolve()
    return path.exists() and all(
        has_sandboxed_user_right(part.stat(), WORKER, ENTER) for part in (path, *path.parents)
    )


def worker_python() -> str:
    """An interpreter that the worker's user can start; its packages may be the test run's."""
    for program in (sys.executable, "/usr/bin/python3.11", "/usr/local/bin/python3.11"):
        if reachable(program):
            return program
    missing("no Python 3.11 here can be started by another user")
    raise AssertionError


@dataclass
class Cage:
    """A workspace and a launch for one probe, and what it said."""

    workspace: SandboxWorkspace
    launch: SandboxLaunch
    cancel: SandboxCancelToken
    lines: list[str] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    on_progress: Callable[[Progress], None] = lambda _message: None
    asks: type[CleanupRequest] | type[ApplyRequest] = CleanupRequest

    def request(self, scenario: str) -> CleanupRequest | ApplyRequest:
        return self.asks(
            projects=["."],
            gateway=scenario,
            workplace=self.workspace.make_workplace(),
            owner=Owner(name="org/repo", pr_number=7),
            environment="pr_7",
        )

    def run(
        self,
        scenario: str,
        *,
        seconds: float = PATIENCE,
        second: SecondSandboxedQuestion | None = None,
        meanwhile: Callable[[], None] = lambda: None,
        **limits: Any,
    ) -> Any:
        def heard(message: Progress) -> None:
            self.progress.append(message)
            self.on_progress(message)

        return run_worker_in_sandbox(
            self.request(scenario),
            launch=replace(self.launch, limits=replace(self.launch.limits, **limits)),
            redactor=Redactor([TOKEN, PASSWORD]),
            on_progress=heard,
            on_log=self.lines.append,
            deadline=SandboxDeadline(seconds, clock=time.monotonic),
            cancel=self.cancel,
            clock=time.monotonic,
            meanwhile=meanwhile,
            second=second,
        )

    def beside(self, scenario: str, **bounds: int) -> SecondSandboxedQuestion:
        return SecondSandboxedQuestion(
            request=self.request(scenario), launch=replace(self.launch, bounds=bounds)
        )

    def found(self) -> Any:
        return json.loads((self.workspace.scratch_dir / "found.json").read_text("utf-8"))

    def pids(self) -> list[int]:
        return [int(pid) for pid in (self.workspace.scratch_dir / "pids").read_text().split()]

    def with_probe(self, value: str) -> None:
        variables = {**self.launch.variables, "SPARK_PROBE": value}
        self.launch = replace(self.launch, variables=variables)


@pytest.fixture
def ground() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="ci-bot-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def make_cage(
    ground: Path, identity: SandboxIdentity | None, token: SandboxCancelToken
) -> Iterator[Cage]:
    checkout = ground / "checkout"
    checkout.mkdir(exist_ok=True)
    (checkout / "model.sql").write_text("SELECT 1")
    (checkout / ".cache").mkdir()
    (checkout / ".cache" / "planted").write_text("pickle")
    probes = ground / "probes"
    probes.mkdir()
    shutil.copy(Path(__file__).with_name("worker_probe.py"), probes)
    python = worker_python() if identity else sys.executable
    with open_sandbox_workspace(
        checkout, parent=ground, identity=identity, copy=identity is not None
    ) as workspace:
        environment = build_sandboxed_environment(
            {
                **os.environ,
                "SPARK_PASSWORD": PASSWORD,
                "GITHUB_TOKEN": TOKEN,
                "PYTHONPATH": "/evil",
            },
            selection=SandboxVariables(),
            python=python,
            home=str(workspace.home),
            temporary=str(workspace.temporary),
            secrets=[TOKEN],
        )
        launch = SandboxLaunch(
            python=python,
            variables=environment.variables,
            directory=workspace.repository,
            channel_directory=workspace.channel,
            search_path=(str(probes), str(REPOSITORY), sysconfig.get_paths()["purelib"]),
            identity=identity,
            in_container=identity is not None,
            guarded=(),
            module="worker_probe",
            limits=SandboxLimits(grace_seconds=1.0),
        )
        yield Cage(workspace, launch, token)


@pytest.fixture
def token() -> Iterator[SandboxCancelToken]:
    made = SandboxCancelToken(clock=time.monotonic)
    yield made
    made.close()


@pytest.fixture
def laptop(ground: Path, token: SandboxCancelToken) -> Iterator[Cage]:
    """As outside the container: the user's own uid."""
    yield from make_cage(ground, None, token)


@pytest.fixture
def container(ground: Path, token: SandboxCancelToken) -> Iterator[Cage]:
    """As inside the container: root broker, unprivileged worker."""
    if os.geteuid() != 0:
        missing("changing users needs root")
    yield from make_cage(ground, WORKER, token)


@pytest.fixture(params=["laptop", "container"])
def cage(request: pytest.FixtureRequest) -> Cage:
    made: Cage = request.getfixturevalue(request.param)
    return made


def list_children() -> list[SandboxedProcessEntry]:
    """This process's own."""
    return [
        entry
        for entry in read_table_of_sandboxed_processes().values()
        if entry.parent == os.getpid()
    ]


def started_from(ground: Path) -> list[str]:
    """Living processes whose arguments name the test's directory, as those of each probe do."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and str(ground).encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
    return found


# --- an ordinary run ------------------------------------------------------------------------------


def test_answer__comes_through(cage: Cage) -> None:
    answer = cage.run("answer")
    assert isinstance(answer, CleanupDocument)
    assert answer.environment == "pr_7"
    assert cage.lines == []


def test_work_meanwhile__is_done_once_while_the_worker_runs(laptop: Cage) -> None:
    seen: list[int] = []
    before = {process.pid for process in list_children()}  # of other tests, such as their JVM

    def look() -> None:
        seen.extend(alive([p.pid for p in list_children() if p.pid not in before]))

    laptop.run("answer", meanwhile=look)
    assert len(seen) == 1


def test_talk__output_is_log_and_progress_is_progress(cage: Cage) -> None:
    cage.run("talk")
    assert cage.lines == [
        "::add-mask::x",
        "plain and ##[error]more",
        "the password is ***",
        "\ufffd\ufffd",
        "(1 progress messages were left out)",
    ]
    assert [(item.phase, item.done, item.total) for item in cage.progress] == [
        ("apply", 1, 2),
        ("apply", 2, 2),
        ("work", None, None),
    ]
    assert cage.progress[1].message.startswith("*** x x x")
    assert len(cage.progress[1].message) < 4_001


def test_flood__a_slow_reader_holds_the_worker_and_not_the_memory(laptop: Cage) -> None:
    answer = laptop.run("flood", log_bytes=100_000, progress_lines=50)
    assert answer.environment == "pr_7"
    *lines, last, dropped = laptop.lines
    assert last == "(the worker printed more than is kept; the rest is left out)"
    assert sum(len(line) + 1 for line in lines) <= 100_001, "the last one is cut"
    assert len(laptop.progress) <= 50
    assert dropped.endswith("progress messages were left out)")


def test_mute__a_worker_may_close_its_output(cage: Cage) -> None:
    assert cage.run("mute").environment == "pr_7"


# --- a second question, answered before anything of the project is loaded --------------------------


@pytest.mark.by_day(1)
def test_second__has_ended_before_the_first_goes_on(cage: Cage) -> None:
    second = cage.beside("second", RLIMIT_CPU=30)

    assert cage.run("first_of_two", second=second).environment == "pr_7"

    assert cage.found()["ended"]
    assert isinstance(second.answer, CleanupDocument)
    bounds = json.loads((cage.workspace.scratch_dir / "second").read_text("utf-8"))
    assert bounds[0] == 30, "its own limits"
    assert cage.found()["bounds"][0] != 30, "and nobody else's"


@pytest.mark.by_day(3)
@pytest.mark.parametrize("first", ["first_that_dies", "first_that_never_ends"])
def test_second__is_answered_whatever_becomes_of_the_first(cage: Cage, first: str) -> None:
    second = cage.beside("second")

    with pytest.raises((WorkerFailed, SandboxedWorkerTimedOut)):
        cage.run(first, second=second, seconds=4, grace_seconds=0.1)

    assert second.started
    assert isinstance(second.answer, CleanupDocument)


@pytest.mark.parametrize(
    ("scenario", "bounds", "refusal"),
    [
        ("second_that_dies", {}, "killed by signal SIGKILL"),
        ("second_that_computes", {"RLIMIT_CPU": 1}, "killed by signal SIGXCPU"),
        ("second_that_writes", {"RLIMIT_FSIZE": 1_000_000}, "it is not JSON"),
    ],
)
def test_second__that_gives_no_answer__says_why_and_holds_nobody_up(
    cage: Cage, scenario: str, bounds: dict[str, int], refusal: str
) -> None:
    second = cage.beside(scenario, **bounds)

    assert cage.run("first_of_two", second=second).environment == "pr_7"

    assert second.answer is None
    assert refusal in second.refusal


# --- row 3: the environment -----------------------------------------------------------------------


def test_environment__is_exactly_what_was_built(cage: Cage) -> None:
    cage.with_probe("{}")
    cage.run("environment")
    facts = cage.found()
    assert facts["environ"] == dict(cage.launch.variables)
    assert TOKEN not in json.dumps(facts)
    assert facts["stdin"] == ""
    assert facts["cwd"] == str(cage.workspace.repository)
    assert facts["utf8"] == [1, "utf-8", "utf-8"]
    # 0 to 2, the three of the channel, and the one that lists them
    assert len(facts["descriptors"]) == 7
    assert "/evil" not in facts["path"]
    assert "" not in facts["path"]
    assert set(cage.launch.search_path) <= set(facts["path"])
    assert facts["status"]["NoNewPrivs"] == "1"
    assert facts["oom"] == "1000"


def test_environment__another_user_without_groups_and_rights(container: Cage) -> None:
    container.with_probe("{}")
    container.run("environment")
    facts = container.found()
    assert facts["ids"] == [WORKER.uid, WORKER.uid, WORKER.gid, WORKER.gid, []]
    assert {facts["status"][name] for name in ("CapPrm", "CapEff", "CapAmb", "CapInh")} == {
        "0" * 16
    }


def test_overlay__goes_first_and_our_package_last(cage: Cage) -> None:
    overlay = cage.workspace.overlay
    (overlay / "json").mkdir()
    # The checkout itself may be on the interpreter's own path, where the package is installed so.
    probes, *rest = cage.launch.search_path
    search_path = (probes, str(cage.workspace.overlay.parent / "of_ours"), *rest)
    cage.launch = replace(cage.launch, overlay=overlay, search_path=search_path)
    cage.with_probe("{}")
    cage.run("environment")
    path = cage.found()["path"]
    assert path[0] == str(overlay)
    ours = [path.index(directory) for directory in cage.launch.search_path[:2]]
    assert ours == sorted(ours)
    assert ours[0] > max(path.index(entry) for entry in path if "lib-dynload" in entry)


# --- rows 4 to 7: ways out ------------------------------------------------------------------------


def test_break_out__everything_is_closed(container: Cage, ground: Path) -> None:
    runner = ground / "file_commands"
    runner.mkdir()
    files = [
        runner / name for name in ("set_env", "set_output", "add_path", "save_state", "summary")
    ]
    for file in files:
        file.touch(mode=0o644)
    event = ground / "private.json"
    event.touch(mode=0o600)
    address = ground / "docker.sock"
    suid = ground / "suid"
    shutil.copy("/usr/bin/id", suid)
    suid.chmod(0o4755)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(address))
        server.listen()
        address.chmod(0o660)
        container.with_probe(
            json.dumps(
                {
                    "write": [*map(str, files), str(ground / "checkout" / "model.sql")],
                    "read": [str(event), str(container.workspace.channel)],
                    "sockets": [str(address)],
                    "programs": [],
                    "root": str(container.workspace.root),
                }
            )
        )
        container.run("break_out")
    facts = container.found()
    privileges = facts.pop("new privileges")
    assert privileges == "1"
    assert f"environ of {os.getpid()}" in facts
    assert {name: how for name, how in facts.items() if how.startswith("succeeded")} == {}
    assert all(file.read_bytes() == b"" for file in files)


def test_break_out__a_set_uid_program_gives_nothing(container: Cage, ground: Path) -> None:
    suid = ground / "suid"
    shutil.copy("/usr/bin/id", suid)
    suid.chmod(0o4755)
    targets = {"write": [], "read": [], "sockets": [], "programs": [str(suid)], "root": str(ground)}
    container.with_probe(json.dumps(targets))
    container.run("break_out")
    said = container.found()[f"set-uid {suid}"]
    assert f"uid={WORKER.uid}" in said
    assert "euid=0" not in said


def test_start__the_container_refuses_a_root_worker(container: Cage) -> None:
    container.launch = replace(container.launch, identity=SandboxIdentity(uid=0, gid=0))
    with pytest.raises(BadInput, match="as root"):
        container.run("answer")


# --- row 11: forged answers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("not json", "not JSON"),
        ('{"activity":"cleanup","environment":"pr_8"}', "contract"),
        ('{"a":1,"a":2}', "key twice"),
        ('{"a":NaN}', "number that is none"),
        ("[" * 50_000, "nested too deeply"),
    ],
)
def test_answer__forged_bytes(laptop: Cage, text: str, why: str) -> None:
    laptop.with_probe(text)
    with pytest.raises(WorkerFailed, match=why) as failure:
        laptop.run("raw")
    assert failure.value.reason_code == "answer_refused"


def test_answer__about_another_environment(cage: Cage) -> None:
    with pytest.raises(WorkerFailed, match="another environment"):
        cage.run("forge")


def test_answer__endless(cage: Cage) -> None:
    with pytest.raises(WorkerFailed, match="larger than 1 MiB"):
        cage.run("endless_answer", answer_bytes=MIB)


def test_answer__just_too_large(laptop: Cage) -> None:
    laptop.with_probe("x" * 2_000)
    with pytest.raises(WorkerFailed, match="larger than"):
        laptop.run("raw", answer_bytes=1_999)


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("crash", "ended with exit code 1 without an answer"),
        ("leave", "ended with exit code 0 without an answer"),
        ("die", "was killed by signal SIGKILL"),
    ],
)
def test_crash__one_sentence_and_the_log(cage: Cage, scenario: str, words: str) -> None:
    with pytest.raises(WorkerFailed, match=words) as failure:
        cage.run(scenario)
    assert failure.value.exit_code == 1
    if scenario == "crash":
        assert cage.lines[-1] == "RuntimeError: broken on purpose"


@pytest.mark.parametrize("python", ["/no/such/python", "/etc/passwd"])
def test_start__no_interpreter(cage: Cage, python: str) -> None:
    cage.launch = replace(cage.launch, python=python)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(WorkerFailed, match="could not be started") as failure:
        cage.run("answer")
    assert failure.value.reason_code == "worker_not_started"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# --- row 37: limits -------------------------------------------------------------------------------


def test_orphans__do_not_outlive_the_worker(cage: Cage) -> None:
    started = time.monotonic()
    assert cage.run("orphans", linger_seconds=0.1).environment == "pr_7"
    assert len(cage.pids()) == 3
    assert alive(cage.pids()) == []
    assert time.monotonic() - started < PATIENCE / 2


@pytest.mark.by_day(1)
def test_deadline__a_deaf_worker_and_its_family_are_killed(cage: Cage) -> None:
    with pytest.raises(SandboxedWorkerTimedOut, match="did not finish within 2 seconds") as failure:
        cage.run("deaf", seconds=2.0, grace_seconds=0.3)
    assert failure.value.reason_code == "timeout"
    assert failure.value.answer is None
    assert "timeout-minutes" in (failure.value.hint or "")
    assert len(cage.pids()) == 3
    assert alive(cage.pids()) == []


def test_deadline__the_last_words_are_kept(laptop: Cage) -> None:
    with pytest.raises(SandboxedWorkerTimedOut) as failure:
        laptop.run("polite", seconds=2.0)
    assert failure.value.answer is not None
    assert failure.value.answer.activity == "cleanup"


@pytest.mark.by_day(1)
def test_fork_storm__nothing_is_left(cage: Cage, ground: Path) -> None:
    with pytest.raises(SandboxedWorkerTimedOut):
        cage.run("fork_storm", seconds=3.0, grace_seconds=0.1)
    assert time.monotonic() < cage.found(), "it would have gone on"
    assert started_from(ground) == []


def test_fork_limit__counts_the_workers_processes(container: Cage, ground: Path) -> None:
    container.run("fork_limit", processes=40, linger_seconds=0.0)
    assert container.found() < 40
    assert started_from(ground) == []


def test_memory__of_the_whole_family(cage: Cage) -> None:
    with pytest.raises(WorkerFailed, match="needed more than 200 MiB") as failure:
        cage.run("devour", memory_bytes=200 * MIB)
    assert failure.value.reason_code == "memory_limit"


@pytest.mark.by_day(1)
def test_disk__is_not_filled(cage: Cage) -> None:
    """What the process beside it has found by then is kept."""
    free = read_free_space_for_sandbox(cage.workspace.root).bytes
    second = cage.beside("second")
    with pytest.raises(WorkerFailed, match=r"had less than [0-9,]+ MiB left") as failure:
        cage.run("fill_disk", second=second, disk_reserve_bytes=free - 100 * MIB)
    assert (failure.value.reason_code, failure.value.exit_code) == ("disk_limit", 1)
    assert "TMPDIR" in (failure.value.hint or "")
    assert isinstance(second.answer, CleanupDocument)
    assert read_free_space_for_sandbox(cage.workspace.root).bytes > free - 600 * MIB


def test_memory__reserved_address_space_does_not_count(laptop: Cage) -> None:
    assert laptop.run("reserve", memory_bytes=200 * MIB).environment == "pr_7"


# --- row 38: cancelling ---------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cancel__the_last_words_are_kept(cage: Cage, number: int, code: int) -> None:
    cage.on_progress = lambda _message: cage.cancel.cancel(number)
    started = time.monotonic()
    with pytest.raises(SandboxedWorkerCancelled) as failure:
        cage.run("polite", grace_seconds=5.0)
    assert failure.value.exit_code == code
    assert failure.value.answer is not None
    assert time.monotonic() - started < PATIENCE / 2


def test_cancel__a_deaf_worker_is_killed_after_its_grace(cage: Cage) -> None:
    cage.on_progress = lambda _message: cage.cancel.cancel(signal.SIGTERM)
    with pytest.raises(SandboxedWorkerCancelled):
        cage.run("deaf", grace_seconds=0.3)
    assert alive(cage.pids()) == []


def test_cancel__is_not_held_up_by_a_slow_listener(laptop: Cage) -> None:
    """A request to GitHub takes long; the kill happens meanwhile, in the watching thread."""
    seen: list[list[int]] = []

    def slow(_message: Progress) -> None:
        laptop.cancel.cancel(signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        while alive(laptop.pids()) and time.monotonic() < until:
            time.sleep(0.05)
        seen.append(alive(laptop.pids()))

    laptop.on_progress = slow
    with pytest.raises(SandboxedWorkerCancelled):
        laptop.run("deaf", grace_seconds=0.3)
    assert seen == [[]]


def test_cancel__the_caller_is_told_while_the_worker_lives(laptop: Cage) -> None:
    told: list[list[int]] = []
    laptop.on_progress = lambda _message: laptop.cancel.cancel(signal.SIGTERM)
    with pytest.raises(SandboxedWorkerCancelled):
        run_worker_in_sandbox(
            CleanupRequest(
                projects=["."],
                gateway="deaf",
                workplace=laptop.workspace.make_workplace(),
                owner=Owner(name="org/repo"),
                environment="pr_7",
            ),
            launch=laptop.launch,
            redactor=Redactor(),
            on_progress=laptop.on_progress,
            on_log=laptop.lines.append,
            deadline=SandboxDeadline(PATIENCE, clock=time.monotonic),
            cancel=laptop.cancel,
            clock=time.monotonic,
            on_cancel=lambda: told.append(alive(laptop.pids())),
        )
    assert [len(pids) for pids in told] == [2], "told once; the middle one of three has ended"


def test_cancel__before_the_start_nothing_is_started(laptop: Cage) -> None:
    laptop.cancel.cancel()
    with pytest.raises(RunCancelled):
        laptop.run("answer")
    assert laptop.lines == []


def test_listener_that_fails__leaves_no_process(cage: Cage) -> None:
    def broken(_message: Progress) -> None:
        raise ZeroDivisionError

    cage.on_progress = broken
    with pytest.raises(ZeroDivisionError):
        cage.run("deaf")
    assert alive(cage.pids()) == []


BOT = """
import json, os, signal, sys, time
from pathlib import Path
from ci_bot.protocol.messages import CleanupRequest, Owner
from ci_bot.errors import BotError, RunCancelled
from ci_bot.bot.sandbox.deadline import SandboxDeadline
from ci_bot.bot.sandbox.launch import SandboxIdentity
from ci_bot.bot.sandbox.launch import SandboxLaunch, SandboxLimits
from ci_bot.bot.sandbox.worker_run import run_worker_in_sandbox
from ci_bot.bot.sandbox.deadline import SandboxCancelToken, handle_signals_of_sandbox
from ci_bot.bot.sandbox.run_directories import open_sandbox_workspace
from ci_bot.redaction import Redactor

ground, python, scenario, probe, seconds, uid, *search = sys.argv[1:]
identity = SandboxIdentity(uid=int(uid), gid=int(uid)) if int(uid) else None
token = SandboxCancelToken(clock=time.monotonic)
code = 0
try:
    with handle_signals_of_sandbox(token), open_sandbox_workspace(
        Path(ground) / "checkout", parent=Path(ground), identity=identity, copy=True
    ) as space, token.set_last_act(space.remove_in_background):
        if scenario == "wait":
            print("waiting", flush=True)
            time.sleep(600)
        run_worker_in_sandbox(
            CleanupRequest(projects=["."], gateway=scenario, workplace=space.make_workplace(),
                           owner=Owner(name="o"), environment="pr_7"),
            launch=SandboxLaunch(python=python, variables={"SPARK_PROBE": probe, "LC_ALL": "C.UTF-8"},
                          directory=space.repository, channel_directory=space.channel,
                          search_path=tuple(search), module="worker_probe", identity=identity,
                          limits=SandboxLimits(grace_seconds=5.0)),
            redactor=Redactor(), on_log=print,
            deadline=SandboxDeadline(float(seconds), clock=time.monotonic),
            on_progress=lambda _: print(
                "pids", *(Path(space.scratch_dir) / "pids").read_text().split()
                if scenario == "deaf" else [], flush=True),
            cancel=token, clock=time.monotonic,
        )
except (BotError, RunCancelled) as error:
    print(error.message)
    code = error.exit_code
sys.exit(code)
"""


@dataclass
class Bot:
    """A bot in a process of its own."""

    process: subprocess.Popen[str]
    ground: Path

    def find_first_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()

    def left(self) -> set[str]:
        return {path.name for path in self.ground.iterdir()} - {"checkout", "probes", "bot.py"}


@pytest.fixture
def start_bot(ground: Path) -> Iterator[Callable[..., Bot]]:
    (ground / "checkout" / ".cache").mkdir(parents=True)
    (ground / "checkout" / ".cache" / "planted").write_text("pickle")
    (ground / "probes").mkdir()
    shutil.copy(Path(__file__).with_name("worker_probe.py"), ground / "probes")
    (ground / "bot.py").write_text(BOT)
    started: list[Bot] = []

    def start(scenario: str, *, probe: str = "", seconds: float = PATIENCE) -> Bot:
        identity = WORKER if os.geteuid() == 0 else None
        search = [str(ground / "probes"), str(REPOSITORY), sysconfig.get_paths()["purelib"]]
        python = worker_python() if identity else sys.executable
        uid = str(identity.uid) if identity else "0"
        process = subprocess.Popen(
            [
                sys.executable,
                ground / "bot.py",
                ground,
                python,
                scenario,
                probe,
                str(seconds),
                uid,
                *search,
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        started.append(Bot(process, ground))
        return started[-1]

    yield start
    for bot in started:
        bot.process.kill()
        bot.process.wait()
        if bot.process.stdout is not None:
            bot.process.stdout.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_bot__a_signal_between_two_workers_ends_it_at_once(
    start_bot: Callable[..., Bot], number: int, code: int
) -> None:
    bot = start_bot("wait")
    assert bot.find_first_line() == "waiting\n"
    sent = time.monotonic()
    bot.process.send_signal(number)
    assert bot.wait() == code
    assert time.monotonic() - sent < 5
    assert bot.left() == set()


@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGINT, signal.SIGTERM]])
def test_bot__the_second_signal_ends_everything_at_once(
    start_bot: Callable[..., Bot], signals: list[int]
) -> None:
    bot = start_bot("deaf")
    pids = [int(word) for word in bot.find_first_line().split()[1:]]
    assert len(alive(pids)) == 2
    sent = time.monotonic()
    bot.process.send_signal(signals[0])
    time.sleep(0.3)
    assert bot.process.poll() is None, "the first signal leaves the worker its seconds"
    bot.process.send_signal(signals[1])
    assert bot.wait() == 128 + signals[1]
    assert time.monotonic() - sent < 4
    assert alive(pids) == []
    until = time.monotonic() + PATIENCE
    while bot.left() and time.monotonic() < until:
        time.sleep(0.05)
    assert bot.left() == set()


def test_bot__killed_without_a_word_takes_the_worker_with_it(start_bot: Callable[..., Bot]) -> None:
    bot = start_bot("polite")
    assert bot.find_first_line() == "pids\n"
    workers = [
        process.pid
        for process in read_table_of_sandboxed_processes().values()
        if process.parent == bot.process.pid
    ]
    assert len(workers) == 1
    bot.process.kill()
    until = time.monotonic() + PATIENCE
    while alive(workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert alive(workers) == []


# --- row 10: the cache is private and never stays -------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "end", "code"),
    [("", None, 0), ("crash", None, 1), ("hang", signal.SIGINT, 130), ("hang", None, 1)],
    ids=["success", "failure", "signal", "timeout"],
)
def test_cache__is_gone_after_every_end(
    start_bot: Callable[..., Bot], mode: str, end: int | None, code: int
) -> None:
    bot = start_bot("cache", probe=mode, seconds=4.0 if end is None else PATIENCE)
    if end is not None:
        assert bot.find_first_line() == "pids\n"
        assert len(bot.left()) == 1
        bot.process.send_signal(end)
    assert bot.wait() == code
    assert bot.left() == set()
    assert (bot.ground / "checkout" / ".cache" / "planted").read_text() == "pickle"
    assert not (bot.ground / "checkout" / "left-behind").exists()


def test_cache__a_planted_one_is_not_there(container: Cage) -> None:
    container.run("cache")
    assert container.found() is False
    assert not (container.workspace.cache_dir / "planted").exists()


# --- requirements ---------------------------------------------------------------------------------


def wheel(directory: Path, name: str, version: str, code: str, needs: str = "") -> None:
    directory.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", textwrap.dedent(code))
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def install(cage: Cage, **more: Any) -> SandboxLaunch:
    return install_requirements_in_sandbox(
        cage.workspace.repository / "requirements.txt",
        overlay=cage.workspace.overlay,
        launch=cage.launch,
        redactor=Redactor([PASSWORD]),
        on_log=cage.lines.append,
        deadline=SandboxDeadline(120.0, clock=time.monotonic),
        cancel=cage.cancel,
        clock=time.monotonic,
        **more,
    )


def test_requirements__only_what_is_missing_and_as_the_worker(cage: Cage) -> None:
    wheels = cage.workspace.repository / "wheels"
    wheel(wheels, "ours", "1.5", "ANSWER = 42", needs="helper>=1")
    wheel(wheels, "helper", "1.0", "")
    wheel(wheels, "helper", "2.0", "")
    (cage.workspace.repository / "requirements.txt").write_text(
        "--no-index\n--find-links wheels\nours==1.5\nhelper<2\npip\n"
    )
    launch = install(cage)
    installed = {path.name for path in cage.workspace.overlay.iterdir()}
    assert {"ours.py", "helper.py", "ours-1.5.dist-info", "helper-1.0.dist-info"} <= installed
    assert "pip" not in installed, "it is there already"
    assert "requirements: 2 packages to install" in cage.lines
    owners = {path.stat().st_uid for path in cage.workspace.overlay.rglob("*")}
    assert owners == {cage.launch.identity.uid if cage.launch.identity else os.getuid()}
    assert launch.overlay == cage.workspace.overlay
    assert launch.variables["PYTHONPATH"] == str(cage.workspace.overlay)


def test_requirements__come_after_the_project_s_own_modules(laptop: Cage) -> None:
    modules = laptop.workspace.repository / "lib"
    modules.mkdir()
    (modules / "pip.py").write_text("raise SystemExit('the project spoke')\n")
    wheel(laptop.workspace.repository / "wheels", "ours", "1.5", "")
    (laptop.workspace.repository / "requirements.txt").write_text(
        "--no-index\n--find-links wheels\nours==1.5\n"
    )
    variables = prepend_python_path_in_sandbox(laptop.launch.variables, [str(modules)])
    laptop.launch = replace(laptop.launch, variables=variables)
    launch = install(laptop)
    assert launch.variables["PYTHONPATH"] == f"{modules}:{laptop.workspace.overlay}"


def test_requirements__a_source_package_is_not_built(cage: Cage, ground: Path) -> None:
    wheels = cage.workspace.repository / "wheels"
    wheels.mkdir()
    evidence = ground / "evidence"
    package = ground / "evil-1.0"
    package.mkdir()
    (package / "setup.py").write_text(f"open({str(evidence)!r}, 'w')\n")
    shutil.make_archive(str(wheels / "evil-1.0"), "gztar", ground, "evil-1.0")
    (cage.workspace.repository / "requirements.txt").write_text(
        "--no-index\n--find-links wheels\nevil==1.0\n"
    )
    with pytest.raises(BadInput, match="could not be installed") as failure:
        install(cage)
    assert failure.value.reason_code == "requirements_failed"
    assert "Only wheels" in (failure.value.hint or "")
    assert not evidence.exists()
    assert any("evil" in line for line in cage.lines)


def test_requirements__refused_before_anything_starts(laptop: Cage) -> None:
    (laptop.workspace.repository / "requirements.txt").write_text("-e .\n")
    with pytest.raises(BadInput, match="cannot be used"):
        install(laptop)
    assert laptop.lines == []


def test_requirements__cancelled(laptop: Cage) -> None:
    (laptop.workspace.repository / "requirements.txt").write_text("six\n")
    laptop.cancel.cancel(signal.SIGTERM)
    with pytest.raises(RunCancelled) as failure:
        install(laptop)
    assert failure.value.exit_code == 143


# --- the numbers ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_isolation__costs_little_on_a_repository_of_200_megabytes(
    ground: Path, record_property: Callable[[str, object], None]
) -> None:
    """Bytes that are copied, which no load on the machine changes; the seconds are reported."""
    if os.geteuid() != 0:
        missing("changing users needs root")
    checkout = ground / "checkout"
    block = os.urandom(1024) * 100
    for number in range(2_000):
        path = checkout / f"models{number % 40}" / f"model_{number}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(block[:4_000])
    for number in range(120):
        path = checkout / "data" / f"part_{number}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(block * 16)
    total = sum(path.stat().st_size for path in checkout.rglob("*") if path.is_file())
    assert total > 200_000_000
    started = time.monotonic()
    with open_sandbox_workspace(checkout, parent=ground, identity=WORKER, copy=True) as workspace:
        seconds = time.monotonic() - started
        held = sum(
            path.lstat().st_size
            for path in workspace.root.rglob("*")
            if stat.S_ISREG(path.lstat().st_mode)
        )
    record_property("isolation seconds", round(seconds, 3))
    assert held <= 30_000_000
