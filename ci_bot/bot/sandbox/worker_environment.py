"""The worker's environment, built from nothing.

An allow-list, because a list of what to remove is never complete: the job around us holds the
GitHub token, cache and OIDC tokens and the paths of the runner's command files, and tomorrow
something else. What SQLMesh, Spark, Java and Hadoop read is passed on by itself; warehouse
credentials are named in `worker-env`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ci_bot.errors import BadInput
from ci_bot.redaction import Redactor, list_encodings, list_secret_values

CONTAINER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_PREFIXES = ("SQLMESH_", "SPARK_", "PYSPARK_", "JAVA_", "HADOOP_")
# What belongs to the runner, the action's inputs, and ourselves.
NEVER_PREFIXES = ("GITHUB_", "ACTIONS_", "RUNNER_", "INPUT_", "CI_BOT_")
# Read when a program starts, before any of our code: they would change the cage itself.
NEVER_NAMES = frozenset({"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV"})
# Set by us; to name them in `worker-env` has no effect, so it is refused.
_OURS = frozenset(
    {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "PYTHONUTF8", "NO_COLOR", "TERM"}
) | {
    "COLUMNS",
    "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS",
}
_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class WorkerVariables:
    """The input `worker-env`: exact names, and prefixes that were written as `NAME_*`."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def asks_for(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes)

    def pass_on(self, name: str) -> bool:
        """Whether the project gets the variable: what it asks for, and what its engines read."""
        wanted = name.startswith(DEFAULT_PREFIXES) or self.asks_for(name)
        return wanted and not _is_never(name)


@dataclass(frozen=True)
class ChildEnvironment:
    """The worker's whole environment, and the names that were held back because of their value."""

    variables: dict[str, str] = field(repr=False)
    withheld: tuple[str, ...] = ()


def parse_worker_variables(text: str) -> WorkerVariables:
    """Read `worker-env`: names and `PREFIX_*`, separated by white space or commas.

    Raises:
        BadInput: One message with every entry that is not allowed.
    """
    entries = list(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip() else []
    problems = [f"`{entry}` {why}" for entry in entries if (why := _find_problem(entry))]
    if problems:
        raise BadInput(
            f"Input `worker-env` cannot be used: {'; '.join(problems)}.",
            hint="Write names (`DB_PASSWORD`) and prefixes (`AWS_*`), apart by spaces or lines.",
            reason_code="bad_worker_env",
        )
    return WorkerVariables(
        names=tuple(entry for entry in entries if not entry.endswith("*")),
        prefixes=tuple(entry[:-1] for entry in entries if entry.endswith("*")),
    )


def make_redactor(
    environ: Mapping[str, str],
    *,
    worker_env: str,
    secrets: Iterable[str] = (),
    own: Mapping[str, str] | None = None,
) -> Redactor:
    """Makes the redactor of every secret that this run can know: the bot's own, and the project's.

    Args:
        environ: The bot's own environment.
        worker_env: The input of that name. If it cannot be read, nobody gets what it names.
        secrets: Values that belong to the bot alone.
        own: Variables that the project sets itself, in a .env file of somebody who may be trusted.
    """
    try:
        selection = parse_worker_variables(worker_env)
    except BadInput:
        selection = WorkerVariables()
    project = list_secret_values(own or {}, lambda _name: True)
    return Redactor([*secrets, *project, *list_secret_values(environ, selection.pass_on)])


def build_worker_environment(
    parent: Mapping[str, str],
    *,
    selection: WorkerVariables,
    python: str,
    home: str,
    temporary: str,
    secrets: Iterable[str],
    path: str = CONTAINER_PATH,
    fixed: Mapping[str, str] | None = None,
) -> ChildEnvironment:
    """The environment that the worker gets.

    Args:
        parent: The bot's own environment.
        asked: What `worker-env` names.
        python: The worker's interpreter, which PySpark's workers use too (unless the user says
            otherwise); an unset PYSPARK_PYTHON breaks Spark where two Pythons are on the path.
        home: A private directory in the container, the user's own HOME elsewhere.
        temporary: A private directory for temporary files.
        secrets: Values that belong to the bot alone: its token, and the runner's.
        path: The executables; fixed in the container, whatever the workflow's `env:` says.
        fixed: What the image sets and a workflow must not change, such as JAVA_HOME.

    Raises:
        BadInput: A variable named in `worker-env` holds one of `secrets`.
    """
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    forms = [form for secret in long_enough for form in list_encodings(secret)]
    variables: dict[str, str] = {}
    withheld: list[str] = []
    for name, value in parent.items():
        if not selection.pass_on(name):
            continue
        if any(form in value for form in forms):
            if name in selection.names:
                raise BadInput(
                    f"`worker-env` names {name}, and its value holds the GitHub token or another "
                    "credential of the bot.",
                    hint=f"Take {name} out of `worker-env`: the pull request must not see it.",
                    reason_code="token_in_worker_env",
                )
            withheld.append(name)
            continue
        variables[name] = value
    variables.setdefault("PYSPARK_PYTHON", python)
    variables |= {
        "PATH": path,
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "400",
        "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
        **(fixed or {}),
    }
    return ChildEnvironment(variables, tuple(sorted(withheld)))


def prepend_python_path(variables: Mapping[str, str], directories: Sequence[str]) -> dict[str, str]:
    """The environment with `directories` in front of PYTHONPATH.

    The worker itself is isolated and ignores the variable; the Python processes that Spark starts
    do not.
    """
    searched = [*directories, variables.get("PYTHONPATH", "")]
    if not directories:
        return dict(variables)
    return {**variables, "PYTHONPATH": os.pathsep.join(path for path in searched if path)}


def _is_never(name: str) -> bool:
    return name.startswith(NEVER_PREFIXES) or name in NEVER_NAMES


def _find_problem(entry: str) -> str | None:
    if not _ENTRY.fullmatch(entry):
        return "is neither a name nor a prefix followed by `*`"
    name = entry.rstrip("*")
    if _is_never(name) or (entry.endswith("*") and name.startswith(NEVER_PREFIXES)):
        return "is never given to the worker"
    if entry in _OURS:
        return "is set by the bot"
    return None
