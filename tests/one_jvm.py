"""The worker's activities in one process with one JVM, asked one after the other.

A JVM of its own for every apply and cleanup is what people get, and other tests start it. Here a
story of twenty steps would mostly wait for Spark to start. The code is the worker's own, from the
request to the answer; only the process around it lives longer. Between two steps nothing is open
but Spark, so a test may look into state and files, and edit the project.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cleanup_report import CleanupDocument, EnvironmentList, SweepDocument
from ci_bot.protocol.messages import (
    ANSWER,
    REQUEST,
    AnyAnswer,
    AnyRequest,
    ApplyRequest,
    CleanupRequest,
    FailedAnswer,
    ListRequest,
    Owner,
    SweepRequest,
    Workplace,
)
from tests.projects import Shop
from tests.shared_jvm import LENT, alone

REPOSITORY = Path(__file__).parent.parent
OWNER = "octo/shop"


class OneJvm:
    """The parent's end. Methods raise AssertionError where the other end fails."""

    def __init__(
        self, shop: Shop, process: subprocess.Popen[str], scratch: Path, owner: str
    ) -> None:
        self.shop = shop
        self._owner = owner
        self._process = process
        self._scratch = scratch
        self._count = 0
        self.progress: list[str] = []
        self.kept: list[AnyAnswer] = []

    def apply(self, environment: str, **fields: Any) -> ApplyDocument:
        answer = self.ask(
            ApplyRequest(environment=environment, **self._place(environment), **fields)
        )
        assert isinstance(answer, ApplyDocument), answer
        return answer

    def cleanup(self, environment: str, **fields: Any) -> CleanupDocument:
        place = self._place(environment)
        if fields.get("claim"):
            place["owner"] = Owner(name=self._owner)  # only a person can claim, and no workflow
        answer = self.ask(CleanupRequest(environment=environment, **place, **fields))
        assert isinstance(answer, CleanupDocument), answer
        return answer

    # The two halves of a sweep, as the bot asks for them (`WorkerClient`).
    gateway: str | None = None

    @property
    def project_directories(self) -> list[str]:
        return [str(self.shop.project)]

    @property
    def workplace(self) -> Workplace:
        self._count += 1
        here = self._scratch / str(self._count)
        (here / "cache").mkdir(parents=True, mode=0o700)
        return Workplace(
            repository=str(self.shop.project), cache_dir=str(here / "cache"), scratch_dir=str(here)
        )

    def make_request(self, kind: Any, **fields: Any) -> Any:
        return kind(
            projects=self.project_directories,
            gateway=self.gateway,
            workplace=self.workplace,
            **fields,
        )

    def request_environments(self, ask: ListRequest) -> EnvironmentList | Failure:
        answer = self.ask(ask)
        return answer.failure if isinstance(answer, FailedAnswer) else answer  # type: ignore[return-value]

    def request_sweep(self, ask: SweepRequest) -> SweepDocument | Failure:
        answer = self.ask(ask)
        return answer.failure if isinstance(answer, FailedAnswer) else answer  # type: ignore[return-value]

    def ask(self, ask: AnyRequest) -> AnyAnswer:
        """Any request. `progress` has what was told meanwhile, and `kept` what would have been the
        answer if the worker had ended at one of these steps."""
        told = self._step("ask", ask=ask.to_json())
        self.progress = told["progress"]
        self.kept = [ANSWER.validate_json(document) for document in told["kept"]]
        return ANSWER.validate_json(told["answer"])

    def meanwhile(self, words: str, step: str, **arguments: Any) -> None:
        """Another step, in the middle of the next request: where its progress says so. Several come
        one after the other."""
        self._step("meanwhile", words=words, then=step, arguments=arguments)

    def plan_by_hand(self, environment: str) -> None:
        """An environment that a person makes with plain SQLMesh, which no ledger knows of."""
        self._step("plan_by_hand", environment=environment)

    @contextmanager
    def views_looked_at_anew(self) -> Iterator[None]:
        """As where an environment has more views than a session keeps what it knows of."""
        before = self._step("keep_views", most=0)["before"]
        try:
            yield
        finally:
            self._step("keep_views", most=before)

    def sql(self, *statements: str) -> list[list[list[str]]]:
        """The rows of each statement, as text."""
        rows: list[list[list[str]]] = self._step("sql", statements=statements)["rows"]
        return rows

    def hive_sql(self, statement: str) -> None:
        """A statement for the metastore itself, which lets properties through that Spark guards."""
        self._step("hive_sql", statement=statement)

    def plan_prod(self, until: str) -> None:
        """Plans prod like a person at a terminal, and leaves the plan open."""
        self._step("plan_prod", until=until)

    def apply_prod(self) -> None:
        """Applies the plan that is open."""
        self._step("apply_prod")

    def run_prod(self, until: str) -> None:
        """`sqlmesh run`, as of a moment: the scheduler, and the janitor as of now."""
        self._step("run_prod", until=until)

    def _place(self, environment: str) -> dict[str, Any]:
        return {
            "projects": self.project_directories,
            "workplace": self.workplace,
            "owner": Owner(name=self._owner, pr_number=int(environment.rpartition("_")[2])),
        }

    def _step(self, name: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"step": name, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process with the JVM has ended; its log is above"
        told: dict[str, Any] = json.loads(line)
        assert "error" not in told, told["error"]
        return told


@contextmanager
def one_jvm(
    shop: Shop, owner: str = OWNER, *, prod_until: str | None = None, alone_there: bool = True
) -> Iterator[OneJvm]:
    """A process that serves steps on the project of a repository until the block ends.

    Args:
        prod_until: The moment up to which prod is built first; None: it is not.
        alone_there: Whether nobody else asks Spark about the project afterwards. Then its JVM is
            one that others have had before.
    """
    with (
        tempfile.TemporaryDirectory(prefix="one-jvm-") as scratch,
        LENT.environment() if alone_there else nullcontext(alone()) as environment,
        subprocess.Popen(
            [sys.executable, "-m", "tests.one_jvm", str(shop.project)],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            made = OneJvm(shop, process, Path(scratch), owner)
            if prod_until is not None:
                made.plan_prod(prod_until)
                made.apply_prod()
            yield made
        finally:
            process.kill()
            process.wait()


class _Serving:
    """The other end: what a step does. It stands in for the worker's channel, too."""

    is_requested = False

    def __init__(self, project: Path) -> None:
        self._project = project
        self._told: list[str] = []
        self._kept: list[str] = []
        self._then: list[tuple[str, str, dict[str, Any]]] = []
        self._prod: Any = None

    def serve(self, request: dict[str, Any]) -> dict[str, Any]:
        step = request.pop("step")
        result: dict[str, Any] = getattr(self, step)(**request)
        return result

    def keep_views(self, most: int) -> dict[str, Any]:
        from ci_bot.worker.apply import evidence

        before, evidence.MOST_KEPT = evidence.MOST_KEPT, most
        return {"before": before}

    def meanwhile(self, words: str, then: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._then.append((words, then, arguments))
        return {}

    def send_progress(self, phase: str, message: str, *_: Any) -> None:
        self._told.append(f"{phase}: {message}")
        if self._then and self._then[0][0] in self._told[-1]:
            step, arguments = self._then.pop(0)[1:]
            getattr(self, step)(**arguments)

    def write_last_words(self, document: Any) -> None:
        self._kept.append(document.to_json())

    def at_the_end(self, action: Any) -> None:
        """What is done after a stop; nothing is stopped here."""

    def write_answer(self, answer: Any) -> None:
        """What a sweep tells on the way; here only the last word counts."""

    def ask(self, ask: str) -> dict[str, Any]:
        from ci_bot.worker.__main__ import make_failed_answer, perform_request

        self._told, self._kept = [], []
        request = REQUEST.validate_json(ask)
        try:
            answer = perform_request(request, self, self, lambda _words: None)
        except Exception as error:
            answer = make_failed_answer(error, request)
        return {"answer": answer.to_json(), "progress": self._told, "kept": self._kept}

    def sql(self, statements: list[str]) -> dict[str, Any]:
        from tests.projects.spark_sql import run

        return {"rows": run(self._project, statements)}

    def hive_sql(self, statement: str) -> dict[str, Any]:
        spark: Any = self._context(load=False).engine_adapter.spark
        catalog = spark._jsparkSession.sharedState().externalCatalog().unwrapped()
        # Spark keeps this door for its own tests, and asks whether it is one.
        system = spark._jvm.java.lang.System
        system.setProperty("spark.testing", "true")
        try:
            catalog.client().runSqlHive(statement)
        finally:
            system.clearProperty("spark.testing")
        return {}

    def plan_prod(self, until: str) -> dict[str, Any]:
        context = self._context()
        plan = context.plan_builder("prod", execution_time=until, skip_tests=True).build()
        self._prod = (context, plan)
        return {}

    def apply_prod(self) -> dict[str, Any]:
        context, plan = self._prod
        context.apply(plan)
        context.close()
        self._prod = None
        return {}

    def plan_by_hand(self, environment: str) -> dict[str, Any]:
        context = self._context()
        context.apply(context.plan_builder(environment, skip_tests=True).build())
        context.close()
        return {}

    def move_prod(self, files: dict[str, str], until: str, unlink: str) -> dict[str, Any]:
        """Somebody plans prod with other files of the project; and a file in the way goes."""
        self.unlink(unlink)
        before = {name: (self._project / name).read_text("utf-8") for name in files}
        for name, text in files.items():
            (self._project / name).write_text(text, "utf-8")
        self.plan_prod(until)
        self.apply_prod()
        for name, text in before.items():
            (self._project / name).write_text(text, "utf-8")
        return {}

    def unlink(self, path: str) -> dict[str, Any]:
        Path(path).unlink()
        return {}

    def run_prod(self, until: str) -> dict[str, Any]:
        context = self._context()
        context.run("prod", end=until, execution_time=until)
        context.close()
        return {}

    def _context(self, **options: Any) -> Any:
        from sqlmesh.core.console import NoopConsole, set_console
        from sqlmesh.core.context import Context

        set_console(NoopConsole())
        return Context(paths=[str(self._project)], **options)


def main() -> None:
    """Serves until nobody asks any more. What Spark prints goes to the log."""
    from ci_bot.worker.runtime import java

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ.update(java.find_java_environment(os.environ, python=sys.executable))
    serving = _Serving(Path(sys.argv[1]))
    for line in sys.stdin:
        try:
            told = serving.serve(json.loads(line))
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
            told = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    main()
