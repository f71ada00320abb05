"""Prepares all that the worker needs for one run, and removes it afterwards.

The prefix of environments, where the base branch says it, is read here as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ci_bot.bot.git import GitRepository
from ci_bot.bot.sandbox import (
    CONTAINER_PATH,
    DOCKER_SOCKETS,
    CancelToken,
    Deadline,
    WorkerIdentity,
    WorkerLaunch,
    WorkerVariables,
    build_worker_environment,
    open_private_workspace,
    parse_worker_variables,
    prepend_python_path,
    read_inside,
    resolve_project_paths,
    search_path,
)
from ci_bot.bot.worker_client.client import ClientOptions, WorkerClient, WorkListener
from ci_bot.errors import BadInput
from ci_bot.host import Machine
from ci_bot.protocol.environment import DEFAULT_PREFIX
from ci_bot.redaction import Redactor
from ci_bot.static_config import FILES, KEY, MOST_BYTES, WrittenPrefix, read_written_prefix

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha


@contextmanager
def open_client(
    options: ClientOptions,
    machine: Machine,
    *,
    redactor: Redactor,
    cancel: CancelToken,
    listener: WorkListener,
    deadline: Deadline | None = None,
) -> Iterator[WorkerClient]:
    """Prepares the private directories and the launch, and removes everything afterwards.

    Args:
        redactor: Takes the secrets out of all that the worker says.
        deadline: Of the whole run, where that began before; else the time begins here.

    Raises:
        BadInput: a path leaves the checkout, or `worker-env` names what it must not.
        TimedOut: the deadline passed before everything was prepared.
    """
    deadline = deadline or Deadline(options.timeout_minutes * 60.0, clock=machine.monotonic)
    user = machine.worker_user
    identity = WorkerIdentity(uid=user.uid, gid=user.gid) if user else None
    projects = resolve_project_paths(options.checkout, list(options.projects))
    python_path = search_path(options.checkout, options.python_path)
    variables = parse_worker_variables(options.worker_env)
    with (
        open_private_workspace(
            options.checkout,
            parent=machine.temporary,
            identity=identity,
            copy=identity is not None,
            deadline=deadline,
        ) as workspace,
        cancel.set_last_act(workspace.remove_in_background),
    ):
        environment = build_worker_environment(
            machine.environ,
            selection=WorkerVariables(prefixes=("",)) if options.own_machine else variables,
            python=machine.python,
            home=str(workspace.home)
            if identity
            else machine.environ.get("HOME", str(workspace.home)),
            temporary=str(workspace.temporary),
            secrets=options.secrets,
            path=CONTAINER_PATH if identity else machine.environ.get("PATH", CONTAINER_PATH),
            fixed={"JAVA_HOME": user.java_home} if user and user.java_home else None,
        )
        searched = [str(workspace.repository / path) for path in python_path]
        launch = WorkerLaunch(
            python=machine.python,
            variables=prepend_python_path(environment.variables, searched),
            directory=start_directory(
                workspace.repository,
                projects,
                user=machine.directory if options.own_machine else None,
            ),
            channel_directory=workspace.channel,
            search_path=(str(Path(__file__).parents[3]),),
            identity=identity,
            places=workspace.list_private_directories(),
            in_container=identity is not None,
            guarded=(*DOCKER_SOCKETS, *list_command_files(machine.environ)),
        )
        yield WorkerClient(
            options,
            workspace,
            launch,
            machine,
            redactor=redactor,
            cancel=cancel,
            listener=listener,
            projects=projects,
            python_path=python_path,
            deadline=deadline,
        )


def start_directory(repository: Path, projects: Sequence[str], *, user: Path | None) -> Path:
    """Where relative paths of the project begin.

    As with `sqlmesh`: where the user is. In a workflow nobody is anywhere; there it is the
    project's directory, from which most teams start `sqlmesh`, or the root of the checkout where
    several projects are loaded together.

    Args:
        repository: What the worker takes for the checkout.
        projects: Relative to it.
        user: Where the user is; None in a workflow.
    """
    if user is not None:
        return user
    return repository / projects[0] if len(projects) == 1 else repository


def list_command_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files through which a step talks to the runner; only the bot may write to them."""
    names = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
    return tuple(Path(environ[name]) for name in names if environ.get(name))


# What environments of pull requests are called, where no input says it: as the base branch does.
#
# It is read from a commit, as data, before any project is loaded. The base branch says it and not
# the pull request, or a pull request could take the name of another one's environment, and nobody
# would find that name again when the branch is gone.


def read_environment_prefix(client: WorkerClient, base: str | None) -> WrittenPrefix:
    """Reads the prefix from the first project's configuration; without one the default holds.

    Args:
        base: The base branch's commit; None: not known.

    Raises:
        BadInput: the base branch's commit is not in the checkout, and it does matter.
    """
    project = client.projects[0]
    if base is not None and client.git.has_commit(base):
        return read_written_prefix(_decode_content(_read_at_commit(client.git, base, project)))
    here = _decode_content(_read_in_checkout(client, project))
    if KEY.rpartition(".")[2] in here:
        raise BadInput(
            f"The configuration writes `{KEY}`, and the base branch's commit, which says what this "
            "environment is called, is not in the checkout.",
            hint="Check out with `fetch-depth: 2`, or set the input `environment-prefix`, the same "
            "in every workflow.",
            reason_code="base_commit_missing",
        )
    return WrittenPrefix()


def read_laptop_prefix(client: WorkerClient) -> WrittenPrefix:
    """Reads the prefix on a laptop, where the checkout is the user's own."""
    return read_written_prefix(_decode_content(_read_in_checkout(client, client.projects[0])))


def describe_ignored_prefix(found: WrittenPrefix) -> str | None:
    """The sentence where something is written that cannot be honoured."""
    if found.problem is None:
        return None
    return (
        f"`{KEY}` {found.problem}, so environments are called `{DEFAULT_PREFIX}_<number>`. The "
        "input `environment-prefix`, the same in every workflow, gives them other names."
    )


def _read_at_commit(git: GitRepository, commit: Sha, project: str) -> bytes | None:
    for name in FILES:
        found = git.objects.read_file(
            commit, _join_configuration_path(project, name), at_most=MOST_BYTES
        )
        if found is not None:
            return found
    return None


def _read_in_checkout(client: WorkerClient, project: str) -> bytes | None:
    for name in FILES:
        found = read_inside(
            client.checkout, _join_configuration_path(project, name), at_most=MOST_BYTES
        )
        if found is not None:
            return found
    return None


def _join_configuration_path(project: str, name: str) -> str:
    return name if project == "." else f"{project}/{name}"


def _decode_content(content: bytes | None) -> str:
    return "" if content is None else content.decode("utf-8", "replace")
