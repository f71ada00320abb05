"""A pull request in an action's workspace, and its review there."""

from __future__ import annotations

from tests.checkout import Repository
from tests.container.runner import Action, Outcome
from tests.github_standin import events
from tests.projects import Shop


def a_pull_request(action: Action, shop: Shop) -> tuple[Repository, str]:
    """A shop in the workspace, at a test merge commit that changes a model; the commit."""
    shop.project.rename(action.workspace / "project")
    repository = Repository(action.workspace, new=False)
    base = repository.commit()
    repository.git("checkout", "--quiet", "-b", "feature")
    Shop(action.workspace).edit("models/revenue.sql", "SUM(o.amount)", "MAX(o.amount)")
    repository.commit()
    merge_feature(repository, base)
    return repository, repository.git("rev-parse", "HEAD")


def merge_feature(repository: Repository, base: str) -> None:
    """Checks out what GitHub makes of the branch `feature` and its base."""
    repository.git("checkout", "--quiet", "--detach", base)
    repository.git("merge", "--quiet", "--no-ff", "--message", "merge", "feature")


def review(action: Action, merge: str, **variables: str) -> Outcome:
    """A review of that commit without GitHub."""
    return action.run(
        "pull_request",
        events.pull_request("opened"),
        {"project": "project", "baseline": "base-branch", "github-token": ""},
        {"GITHUB_SHA": merge, **variables},
    )
