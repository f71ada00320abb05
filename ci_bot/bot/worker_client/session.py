"""Prepares everything that the worker needs for one run, and removes it afterwards.

It also reads the prefix of environments if the base branch sets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ci_bot.bot.sandbox import (
    DOCKER_SOCKETS,
    GitRepository,
    SandboxCancelToken,
    SandboxDeadline,
    SandboxIdentity,
    SandboxLaunch,
    build_environment_on_machine,
    list_search_path_of_sandbox,
    open_sandbox_workspace,
    parse_sandbox_variables,
    prepend_python_path_in_sandbox,
    read_file_inside_sandbox,
    resolve_project_paths_for_sandbox,
)
from ci_bot.bot.worker_client.client import WorkerClient, WorkerClientOptions, WorkListener
from ci_bot.errors import BadInput
from ci_bot.host import Machine
from ci_bot.protocol.environment import DEFAULT_PREFIX
from ci_bot.redaction import Redactor
from ci_bot.static_config import FILES, KEY, MOST_BYTES, WrittenPrefix, read_written_prefix

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha


@contextmanager
def open_worker_client(
    options: WorkerClientOptions,
    machine: Machine,
    *,
    redactor: Redactor,
    cancel: SandboxCancelToken,
    listener: WorkListener,
    deadline: SandboxDeadline | None = None,
) -> Iterator[WorkerClient]:
    """Prepares the private directories and the launch, and removes everything afterwards.

    Args:
        redactor: Removes the secrets from the worker's texts.
        deadline: Of the whole run, if that has begun already; else the time begins here.

    Raises:
        BadInput: a path leaves the checkout, or `worker-env` names a variable that it must not.
        TimedOut: the deadline passed before everything was prepared.
    """
    deadline = deadline or SandboxDeadline(options.timeout_minutes * 60.0, clock=machine.monotonic)
    user = machine.worker_user
    identity = SandboxIdentity(uid=user.uid, gid=user.gid) if user else None
    projects = resolve_project_paths_for_sandbox(options.checkout, list(options.projects))
    python_path = list_search_path_of_sandbox(options.checkout, options.python_path)
    variables = parse_sandbox_variables(options.worker_env)
    with (
        open_sandbox_workspace(
            options.checkout,
            parent=machine.temporary,
            identity=identity,
            copy=identity is not None,
            deadline=deadline,
        ) as workspace,
        cancel.set_last_act(workspace.remove_in_background),
    ):
        environment = build_environment_on_machine(
            machine,
            selection=variables,
            home=workspace.home,
            temporary=workspace.temporary,
            secrets=options.secrets,
            own_machine=options.own_machine,
        )
        searched = [str(workspace.repository / path) for path in python_path]
        launch = SandboxLaunch(
            python=machine.python,
            variables=prepend_python_path_in_sandbox(environment.variables, searched),
            directory=get_start_directory_of_worker(
                workspace.repository,
                projects,
                user=machine.directory if options.own_machine else None,
            ),
            channel_directory=workspace.channel,
            search_path=(str(Path(__file__).parents[3]),),
            identity=identity,
            places=workspace.make_private_directories(),
            in_container=identity is not None,
            guarded=(*DOCKER_SOCKETS, *list_command_files_beside_worker(machine.environ)),
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


def get_start_directory_of_worker(
    repository: Path, projects: Sequence[str], *, user: Path | None
) -> Path:
    """Returns the directory in which relative paths of the project begin.

    On a laptop it is the user's directory, as for `sqlmesh`. A workflow has no such directory:
    there it is the project's directory, in which most teams start `sqlmesh`, or the root of the
    checkout if several projects are loaded together.

    Args:
        repository: What the worker uses as the checkout.
        projects: Relative to it.
        user: The user's current directory; None in a workflow.
    """
    if user is not None:
        return user
    return repository / projects[0] if len(projects) == 1 else repository


def list_command_files_beside_worker(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Lists the files by which a step talks to the runner; only the bot may write to them."""
    names = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
    return tuple(Path(environ[name]) for name in names if environ.get(name))


# The names of pull requests' environments if no input sets them: those that the base branch sets.
#
# They are read from a commit, as data, before any project is loaded. The base branch decides and
# not the pull request. Otherwise a pull request could use the name of another one's environment,
# and nobody would find that name again after the branch is gone.


def read_environment_prefix_for_worker(client: WorkerClient, base: str | None) -> WrittenPrefix:
    """Reads the prefix from the first project's configuration, else returns the default.

    Args:
        base: The base branch's commit; None: unknown.

    Raises:
        BadInput: the base branch's commit is not in the checkout, but the prefix may depend on it.
    """
    project = client.projects[0]
    if base is not None and client.git.has_commit(base):
        return read_written_prefix(
            _decode_content(_read_configuration_at_commit(client.git, base, project))
        )
    here = _decode_content(_read_configuration_in_checkout(client, project))
    if KEY.rpartition(".")[2] in here:
        raise BadInput(
            f"The configuration writes `{KEY}`, and the base branch's commit, which says what this "
            "environment is called, is not in the checkout.",
            hint="Check out with `fetch-depth: 2`, or set the input `environment-prefix`, the same "
            "in every workflow.",
            reason_code="base_commit_missing",
        )
    return WrittenPrefix()


def read_laptop_prefix_for_worker(client: WorkerClient) -> WrittenPrefix:
    """Reads the prefix on a laptop, where the checkout is the user's own."""
    return read_written_prefix(
        _decode_content(_read_configuration_in_checkout(client, client.projects[0]))
    )


def describe_prefix_ignored_by_client(found: WrittenPrefix) -> str | None:
    """Writes the sentence about a prefix that cannot be used; None if there is none."""
    if found.problem is None:
        return None
    return (
        f"`{KEY}` {found.problem}, so environments are called `{DEFAULT_PREFIX}_<number>`. The "
        "input `environment-prefix`, the same in every workflow, gives them other names."
    )


def _read_configuration_at_commit(git: GitRepository, commit: Sha, project: str) -> bytes | None:
    for name in FILES:
        found = git.objects.read_file(
            commit, _join_configuration_path(project, name), at_most=MOST_BYTES
        )
        if found is not None:
            return found
    return None


def _read_configuration_in_checkout(client: WorkerClient, project: str) -> bytes | None:
    for name in FILES:
        found = read_file_inside_sandbox(
            client.checkout, _join_configuration_path(project, name), at_most=MOST_BYTES
        )
        if found is not None:
            return found
    return None


def _join_configuration_path(project: str, name: str) -> str:
    return name if project == "." else f"{project}/{name}"


def _decode_content(content: bytes | None) -> str:
    return "" if content is None else content.decode("utf-8", "replace")
