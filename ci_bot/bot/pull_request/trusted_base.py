"""Whether the base of a pull request is a place from which a policy may make findings lighter.

Whoever can write to the repository can make a branch with any policy on it, and any pull request
can be pointed at it for a minute. What is merged into the default branch, others have seen.
"""

from __future__ import annotations

from ci_bot.bot.github.port import PullRequest
from ci_bot.bot.trigger import job


def why_no_lighter(
    pull: PullRequest | None, activity: job.Review | None, *, checked_out: str
) -> str | None:
    """Why this run's policy makes nothing lighter, as a sentence; None where it may.

    Args:
        pull: As GitHub describes it now, where it was asked; else the event counts.
        checked_out: The commit in the workspace.
    """
    if pull is None:
        onto_default = activity is not None and activity.onto_default
        return None if onto_default else _OTHER_BRANCH
    if pull.default_branch is None or pull.base_ref != pull.default_branch:
        return _OTHER_BRANCH
    if pull.merge_sha != checked_out:
        return (
            "The workspace does not hold GitHub's merge commit of now, so it is not sure that its "
            "base is the default branch. Run it again."
        )
    return None


_OTHER_BRANCH = (
    "The pull request is not to be merged into the default branch, and on any other branch anybody "
    "who can push may have written the policy."
)
