"""Which files a review on a laptop is about: since which base, and what is not committed."""

from __future__ import annotations

from ci_bot.bot.terminal.local_client import branch_of
from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.bot.worker_calls.review.review_options import Commits
from ci_bot.contracts.messages import BaselineChoice
from ci_bot.errors import BadInput
from ci_bot.machine import Machine
from ci_bot.secrets.cutting import quoted_value

_NAME_IT = "Name the branch that this change is to be merged into, for example `--base-ref main`."


def local_commits(
    client: WorkerClient, machine: Machine, base_ref: str | None, baseline: BaselineChoice
) -> Commits:
    """The commits of a laptop's checkout, and what is not committed yet; says which they are.

    The base is where this branch has left the branch that it is to be merged into, so that what
    others have merged since is no change of this one.

    Raises:
        BadInput: there is no such base, or none at all where the plan is to be compared with it.
    """
    git = client.git
    try:
        head = git.head()
    except BadInput as error:
        needed = f"`--base-ref` {quoted_value(base_ref)}" if base_ref else ""
        needed = needed or ("`--baseline base-branch`" if baseline == "base-branch" else "")
        if needed:
            raise BadInput(
                "There is no git repository with a commit here, so "
                f"{needed} names nothing to compare with.",
                hint="Leave it out, or commit first.",
                reason_code="no_commit",
            ) from error
        _say(machine, "there is no git repository with a commit here, so nobody knows which files")
        _say(machine, "have changed: rules on files, such as those for leaked keys, are not run")
        return Commits()
    named = base_ref or git.default_base()
    if named is None:
        if baseline == "base-branch":
            raise BadInput(
                "`--baseline base-branch` compares with a branch, and neither `origin/HEAD` nor "
                "`main` nor `master` is here.",
                hint=_NAME_IT,
                reason_code="no_base",
            )
        _say(machine, "no base branch is known, so rules on changed files are not run")
        _say(machine, _NAME_IT)
        return Commits(head=head, head_branch=branch_of(client))
    base = git.fork_point(git.resolve(named), head)
    tree = git.working.tree(machine.environ)
    working = tree if tree is not None and git.changed_files(head, tree) else None
    also = ", and of what is not committed yet" if working else ""
    also = also if tree else "; what is not committed yet could not be read"
    _say(machine, f"changes since `{named}` ({base[:7]}){also}")
    return Commits(head=head, base=base, working=working, head_branch=branch_of(client))


def _say(machine: Machine, text: str) -> None:
    print(f"base: {text}", file=machine.log, flush=True)
