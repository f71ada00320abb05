"""The worker process: one request in, one answer out."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ci_bot.errors import BadInput, BotError, format_exception
from ci_bot.protocol.base import Contract, replace_undecodable_bytes
from ci_bot.protocol.environment import UnfitEnvironmentName
from ci_bot.protocol.messages import (
    AcceptRequest,
    AnyRequest,
    ApplyRequest,
    BaseTestsRequest,
    CleanupRequest,
    DoctorRequest,
    EstimateRequest,
    ExposuresRequest,
    FailedAnswer,
    LearnRequest,
    ListRequest,
    RememberRequest,
    RestateRequest,
    ReviewRequest,
    SameRequest,
    ScanRequest,
    ScopesRequest,
    SweepRequest,
)
from ci_bot.protocol.supported_versions import WAY_OUT, describe_unsupported, is_supported
from ci_bot.worker.messages import make_cancelled_failure
from ci_bot.worker.runtime import (
    EndOfWorkerSpark,
    WorkerChannelToBot,
    WorkerStopRequest,
    delay_import_work,
    early_imports,
    early_session,
    java,
)

if TYPE_CHECKING:
    from ci_bot.worker.runtime import WorkerPhaseClock

# Below this, forking loaders cost more than they save: a fork of a process that has SQLMesh
# imported takes about 0.1 s, a model file about 5 ms.
SMALL_PROJECT_FILES = 150
MOST_CHARACTERS = 100_000
# Where Hive's embedded metastore is, unless a project says otherwise: in the current directory.
EMBEDDED_METASTORE = "metastore_db"
# The program's name, and four descriptors. What follows is for a worker that starts early.
_ARGUMENTS = 5
# What most reviews need behind SQLMesh: for seeds, unit tests, and queries that are tried.
_PROBABLE = ("numpy", "duckdb", "pandas", "time_machine")
# What is imported in any case, and what only as long as there is no request. A cleanup's JVM starts
# with its request and takes longer than all imports, so nothing large may delay it.
_IMPORTED_EARLY: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "review": (("ci_bot.worker.sqlmesh_compat", "ci_bot.worker.review.review_plan"), _PROBABLE),
    "spark": ((), ("sqlglot", "jinja2", "rich.console", "dateparser")),
}
_CONFIGURATION = ("bad_config", "no_config", "unknown_gateway")

Words = Callable[[], Contract]
# These handle many environments, tables or logs, and load few models or none.
LastingRequest = (
    CleanupRequest | ListRequest | SweepRequest | DoctorRequest | LearnRequest | ExposuresRequest
)
BesidePlanRequest = (
    BaseTestsRequest
    | SameRequest
    | ScopesRequest
    | AcceptRequest
    | RestateRequest
    | RememberRequest
)
LoadingRequest = ReviewRequest | BesidePlanRequest | ApplyRequest | EstimateRequest | LastingRequest


def main() -> None:
    """Answers one request. The answer has the result; the exit code only shows that it exists."""
    # The garbage collector takes a fifth of the imports' time, and would scan the trees of a
    # thousand models again and again, although nearly all stay. An apply enables it when it builds.
    gc.disable()
    channel = WorkerChannelToBot.from_arguments(sys.argv[1:])
    delay_import_work()
    if is_early := len(sys.argv) > _ARGUMENTS:
        line, activity = sys.argv[_ARGUMENTS:]
        first, then = _IMPORTED_EARLY[activity] if _may_import() else ((), ())
        early_imports.import_until_request(int(line), first, then)
    try:
        request = channel.read_request()
    except UnfitEnvironmentName as error:
        # Nothing is open yet: a request that cannot be read must not be run.
        channel.write_answer(FailedAnswer(failure=error.make_failure("input")))
        return
    stop = WorkerStopRequest(monotonic=time.monotonic, exit_now=os._exit)
    words: list[Words] = [lambda: _make_answer_of_cancelled_request(request)]
    # A sweep answers while it runs; then that answer stays.
    stop.on_last_words(lambda: None if channel.answered else channel.write_answer(words[-1]()))
    stop.install_and_watch()
    end = EndOfWorkerSpark()
    limit_forks(request)
    disable_byte_code(request)
    if is_early:
        early_imports.reread_sqlmesh_constants()
    try:
        if isinstance(request, ScanRequest):
            answer: Contract = answer_scan_request(request)
        else:
            answer = perform_request(request, channel, stop, words.append, end.begin_end)
    except BaseException as error:
        answer = make_failed_answer(error, request)
    if stop.is_requested and isinstance(answer, FailedAnswer):
        answer = words[-1]()
    channel.write_answer(answer)
    if early_session.has_unclaimed_session():
        end.begin_end()
    end.finish_end()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of SQLMesh's pools and of py4j must not delay the end of an answered request; the JVM
    # ends with the pipe to its standard input.
    os._exit(0)


def _may_import() -> bool:
    """Whether SQLMesh is there in a version that is supported; if not, the answer says so."""
    try:
        return is_supported(metadata.version("sqlmesh"))
    except metadata.PackageNotFoundError:
        return False


def limit_forks(request: AnyRequest) -> None:
    """Makes small projects load in this process; SQLMesh reads the variable when it is imported."""
    if "MAX_FORK_WORKERS" in os.environ:
        return
    count = 0
    for project in request.projects:
        for path in Path(project, "models").rglob("*"):
            count += path.suffix in (".sql", ".py")
            if count > SMALL_PROJECT_FILES:
                return
    os.environ["MAX_FORK_WORKERS"] = "1"


def disable_byte_code(request: AnyRequest) -> None:
    """Prevents byte code beside the project's modules, from this process and Spark's Python."""
    from ci_bot.worker.runtime import imports

    imports.import_without_byte_code(Path(request.workplace.repository))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def answer_scan_request(request: ScanRequest) -> Contract:
    """Answers a scan: reads the changed files, and loads nothing of the project."""
    from ci_bot.worker.review import scan

    return scan.scan_files_before_review(request, time.monotonic)


def perform_request(
    request: LoadingRequest,
    channel: WorkerChannelToBot,
    stop: WorkerStopRequest,
    last_words: Callable[[Words], None],
    spark_is_done: Callable[[], None] = lambda: None,
) -> Contract:
    """Runs the requested activity; returns its answer.

    It imports SQLMesh here and not earlier, and never an unsupported version.

    Args:
        last_words: Takes a function that makes the answer of a stopped run, instead of a plain
            "cancelled".
        spark_is_done: Called after the last use of Spark, if other work follows.

    Raises:
        BadInput: this release does not support the installed SQLMesh.
    """
    version = metadata.version("sqlmesh")
    if not is_supported(version):
        sentence = describe_unsupported(f"SQLMesh {version} is installed")
        raise BadInput(sentence, hint=WAY_OUT, reason_code="sqlmesh_version")
    java_environment = JavaEnvironment(request)
    progress = channel.send_progress

    def before_spark() -> None:
        java_environment.prepare_java()
        progress("spark", "starting Spark")

    if is_spark_expected(request):
        from ci_bot.yaml_reader import read_yaml_or_none

        early_session.start_session_early(
            Path(request.projects[0]),
            request.gateway,
            java_environment.prepare_brief_java,
            read_yaml_or_none,
        )
    from ci_bot.worker import sqlmesh_compat
    from ci_bot.worker.runtime import WorkerPhaseClock, imports

    if isinstance(request, ReviewRequest):
        from ci_bot.worker.review import review_plan

        # No code of the project runs before this line or beside the scan.
        channel.wait_for_process_beside(_PROBABLE)
    imports.add_search_paths_of_worker(request.workplace.python_path)
    sqlmesh_compat.guard_sqlmesh_macro_evaluation()
    sqlmesh_compat.skip_sqlmesh_cache_writes(
        loaded_again=isinstance(request, ReviewRequest) and request.before_apply
    )
    if isinstance(request, LastingRequest):
        gc.freeze()  # imported modules stay
        gc.enable()

    clock = WorkerPhaseClock()
    if isinstance(request, ReviewRequest):
        return review_plan.review_plan(
            request, review_plan.ReviewPorts(clock, progress, before_spark)
        )
    if isinstance(request, BesidePlanRequest):
        return answer_without_plan(request, clock, progress, before_spark)
    if isinstance(request, ApplyRequest):
        java_environment.check_jars()  # before anything is imported that needs PySpark
        from ci_bot.worker.apply import apply_plan

        apply_ports = apply_plan.ApplyPorts(
            clock,
            progress,
            before_spark,
            lambda: stop.is_requested,
            java_environment.choose_length,
            keep=channel.write_last_words,
            last_words=last_words,
            at_the_end=stop.at_the_end,
        )
        activity = apply_plan.apply_probe_of_plan if request.probe else apply_plan.apply_plan
        return activity(request, apply_ports)
    if isinstance(request, DoctorRequest | LearnRequest | ExposuresRequest | EstimateRequest):
        return answer_about_surroundings(request, clock, progress, before_spark, stop)
    if isinstance(request, ListRequest | SweepRequest):
        from ci_bot.worker.cleanup import sweep

        sweep_ports = sweep.SweepPorts(
            progress, before_spark, lambda: stop.is_requested, channel.write_answer
        )
        return sweep.answer_sweep_request(request, sweep_ports)
    from ci_bot.worker.cleanup import remove_environment

    ports = remove_environment.CleanupPorts(
        clock, progress, before_spark, spark_is_done, last_words
    )
    return remove_environment.remove_environment(request, ports)


class JavaEnvironment:
    """Prepares the environment of this process for the start of a JVM.

    Args:
        request: The request; it decides the options.
    """

    def __init__(self, request: LoadingRequest) -> None:
        self._only_looks = isinstance(
            request,
            ReviewRequest
            | DoctorRequest
            | ListRequest
            | EstimateRequest
            | ExposuresRequest
            | RememberRequest,
        )
        self._reads_no_data = not isinstance(request, ApplyRequest)
        self._is_prepared = self._is_brief = False

    def check_jars(self) -> None:
        """Refuses a missing PySpark, or one without jars.

        Raises:
            BadInput: it is missing, or has none.
        """
        java.check_spark_jars_before_java_starts(os.environ)

    def prepare_java(self) -> None:
        """Finds Java and sets its options; the second call does nothing.

        Raises:
            BadInput: Spark cannot start here.
        """
        if self._is_prepared:
            return
        self.check_jars()
        os.environ.update(java.find_java_environment(os.environ, python=sys.executable))
        java.check_java_before_spark_starts(
            java.find_java_runtime(os.environ), java.read_spark_version()
        )
        os.environ.update(java.add_java_launcher_options(os.environ))
        os.environ.update(
            java.make_java_options_for_private_directory(
                os.environ,
                Path(tempfile.gettempdir()),
                metastore=self._only_looks and not Path(EMBEDDED_METASTORE).exists(),
            )
        )
        self._is_prepared = True
        if self._reads_no_data:
            self.choose_length(True)

    def prepare_brief_java(self) -> None:
        """Prepares for a JVM that lives for seconds; raises what `prepare_java` raises."""
        self.prepare_java()
        self.choose_length(True)

    def choose_length(self, is_brief: bool) -> None:
        """Chooses the options of a JVM that lives for seconds, or of one that lives longer."""
        if is_brief != self._is_brief:
            change = (
                java.add_java_options_for_brief_run
                if is_brief
                else java.remove_java_options_for_brief_run
            )
            os.environ.update(change(os.environ))
            self._is_brief = is_brief


def is_spark_expected(request: AnyRequest) -> bool:
    """Whether Spark will probably be used, so that it is worth starting it at once.

    Not for an apply of many models. Most of them may have changed, which is work for Java's
    optimizing compiler; and the processes that load them are forked beside the thread that starts
    Spark.
    """
    if isinstance(request, ApplyRequest):
        return os.environ.get("MAX_FORK_WORKERS") == "1"
    return isinstance(request, SweepRequest) or (
        isinstance(request, CleanupRequest) and request.expected
    )


def answer_without_plan(
    request: BesidePlanRequest,
    clock: WorkerPhaseClock,
    progress: Callable[[str, str], None],
    before_spark: Callable[[], None],
) -> Contract:
    """Answers a request that needs no plan."""
    if isinstance(request, SameRequest):
        from ci_bot.worker.review import compared_queries

        return compared_queries.answer_compared_queries_request(request)
    if isinstance(request, AcceptRequest):
        from ci_bot.worker.review import policy_scopes

        return policy_scopes.write_acceptance_to_ledger(request, clock, before_spark)
    if isinstance(request, RestateRequest):
        from ci_bot.worker.review import restatement_facts

        return restatement_facts.write_restatement_to_ledger(request, clock, before_spark)
    if isinstance(request, RememberRequest):
        from ci_bot.worker.review import review_plan

        return review_plan.note_base_cache_for_reviews(request, clock, before_spark)
    if isinstance(request, ScopesRequest):
        from ci_bot.worker.review import policy_scopes

        return policy_scopes.answer_policy_scopes_request(request, clock, before_spark)
    from ci_bot.worker.review import review_plan

    return review_plan.run_base_tests(
        request, review_plan.ReviewPorts(clock, progress, before_spark)
    )


def answer_about_surroundings(
    request: DoctorRequest | LearnRequest | ExposuresRequest | EstimateRequest,
    clock: WorkerPhaseClock,
    progress: Callable[[str, str], None],
    before_spark: Callable[[], None],
    stop: WorkerStopRequest,
) -> Contract:
    """Answers a doctor, learn, exposures or estimate request."""
    if isinstance(request, LearnRequest):
        from ci_bot.worker.cost import event_logs as activity

        learning = activity.EventLogPorts(clock, progress, before_spark, lambda: stop.is_requested)
        return activity.learn_from_event_logs(request, learning)
    if isinstance(request, ExposuresRequest):
        from ci_bot.worker.cost import event_log_reads, event_logs

        reading = event_logs.EventLogPorts(clock, progress, before_spark, lambda: stop.is_requested)
        return event_log_reads.list_readers_in_event_logs(request, reading)
    if isinstance(request, EstimateRequest):
        from ci_bot.worker.cost import input_size_estimator

        estimate_ports = input_size_estimator.EstimatePorts(
            clock, progress, before_spark, lambda: stop.is_requested
        )
        return input_size_estimator.estimate_plan_cost(request, estimate_ports)
    from ci_bot.worker.doctor import examination, make_network_facts_for_doctor

    ports = examination.DoctorPorts(
        clock, progress, before_spark, os.environ, sys.executable, make_network_facts_for_doctor()
    )
    return examination.examine_project(request, ports)


def make_failed_answer(error: BaseException, request: AnyRequest) -> FailedAnswer:
    """Makes the answer of an activity that raised instead of returning a document."""
    from ci_bot.worker.messages import NotLoaded, make_failure_of_error

    if isinstance(error, NotLoaded):
        return FailedAnswer(
            failure=error.failures[0],
            failures=list(error.failures),
            base_failures=None if error.base is None else list(error.base),
            traceback=format_traceback(error.__cause__) if error.__cause__ is not None else None,
        )
    stage = {"review": "plan", "list": "sweep"}.get(request.activity, request.activity)
    if isinstance(error, BotError) and error.reason_code in _CONFIGURATION:
        stage = "configuration"
    return FailedAnswer(
        failure=make_failure_of_error(
            error, stage=stage, repository=Path(request.workplace.repository)
        ),
        # The traceback is for the log, which is masked; a reader gets the sentence.
        traceback=None if isinstance(error, BotError) else format_traceback(error),
    )


def format_traceback(error: BaseException) -> str:
    """Formats the traceback of an exception and its causes; only its end if it is too long."""
    return replace_undecodable_bytes(format_exception(error))[-MOST_CHARACTERS:]


def _make_answer_of_cancelled_request(request: AnyRequest) -> FailedAnswer:
    return FailedAnswer(failure=make_cancelled_failure(request.activity))


if __name__ == "__main__":
    main()
