"""What environments of pull requests are called, where no input says it: as the base branch does.

It is read from a commit, as data, before any project is loaded. The base branch says it and not the
pull request, or a pull request could take the name of another one's environment, and nobody would
find that name again when the branch is gone.
"""

from __future__ import annotations

from ci_bot.bot.cage.git.repository import Git
from ci_bot.bot.cage.workspace import read_inside
from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.contracts.environment import DEFAULT_PREFIX
from ci_bot.errors import BadInput
from ci_bot.plain_config import FILES, KEY, MOST_BYTES, WrittenPrefix, written_prefix


def prefix_of(client: WorkerClient, base: str | None) -> WrittenPrefix:
    """What the first project's configuration says; without a prefix the default holds.

    Args:
        base: The base branch's commit; None: not known.

    Raises:
        BadInput: the base branch's commit is not in the checkout, and it does matter.
    """
    project = client.projects[0]
    if base is not None and client.git.has(base):
        return written_prefix(_text(_of_commit(client.git, base, project)))
    here = _text(_of_checkout(client, project))
    if KEY.rpartition(".")[2] in here:
        raise BadInput(
            f"The configuration writes `{KEY}`, and the base branch's commit, which says what this "
            "environment is called, is not in the checkout.",
            hint="Check out with `fetch-depth: 2`, or set the input `environment-prefix`, the same "
            "in every workflow.",
            reason_code="base_commit_missing",
        )
    return WrittenPrefix()


def prefix_here(client: WorkerClient) -> WrittenPrefix:
    """The same on a laptop, where the checkout is the user's own, and no branch is another's."""
    return written_prefix(_text(_of_checkout(client, client.projects[0])))


def told(found: WrittenPrefix) -> str | None:
    """The sentence where something is written that cannot be honoured."""
    if found.problem is None:
        return None
    return (
        f"`{KEY}` {found.problem}, so environments are called `{DEFAULT_PREFIX}_<number>`. The "
        "input `environment-prefix`, the same in every workflow, gives them other names."
    )


def _of_commit(git: Git, commit: str, project: str) -> bytes | None:
    for name in FILES:
        found = git.objects.file(commit, _path(project, name), at_most=MOST_BYTES)
        if found is not None:
            return found
    return None


def _of_checkout(client: WorkerClient, project: str) -> bytes | None:
    for name in FILES:
        found = read_inside(client.checkout, _path(project, name), at_most=MOST_BYTES)
        if found is not None:
            return found
    return None


def _path(project: str, name: str) -> str:
    return name if project == "." else f"{project}/{name}"


def _text(content: bytes | None) -> str:
    return "" if content is None else content.decode("utf-8", "replace")
