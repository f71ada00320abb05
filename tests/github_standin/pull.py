"""A pull request in the stand-in, as a test drives it through its life."""

from __future__ import annotations

from typing import Any

from . import events
from .front import Front
from .rewrite import rewrite
from .state import PullState, RepoState


class Pull:
    """Handle on one pull request. Its requests go behind the front: they are neither logged nor
    validated.
    """

    def __init__(self, front: Front, repo: RepoState, number: int, facts: PullState) -> None:
        self._front = front
        self._repo = repo
        self._emulator = front.emulator
        self.number = number
        self.facts = facts

    @property
    def _path(self) -> str:
        return f"/repos/{self._repo.full_name}/pulls/{self.number}"

    @property
    def json(self) -> dict[str, Any]:
        """The pull request as clients read it now."""
        value = self._emulator.do("GET", self._path, self._repo.owner)
        found: dict[str, Any] = rewrite(self._front.world, value)
        return found

    @property
    def head_sha(self) -> str:
        """The head commit."""
        return str(self.json["head"]["sha"])

    # Its life

    def push(
        self, head_sha: str, *, merge_sha: str | None = None, base_sha: str | None = None
    ) -> None:
        """Somebody pushed: the head is another commit, and with it GitHub's test merge commit."""
        self.facts.head_sha = head_sha
        self.facts.merge_commit_sha = merge_sha
        if base_sha is not None:
            self.facts.base_sha = base_sha

    def conflict(self) -> None:
        """The branch has a conflict with its base."""
        self.facts.mergeable, self.facts.mergeable_state = False, "dirty"

    def compute(self, reads: int = 1) -> None:
        """GitHub is still computing whether it can be merged for this many reads."""
        self.facts.computing_reads = reads

    def retarget(self, base: str) -> None:
        """Give it another base branch; the head stays."""
        self._emulator.do("PATCH", self._path, self._repo.owner, {"base": base})

    def set_draft(self, draft: bool) -> None:
        """Make it a draft, or ready for review."""
        self._emulator.do("PATCH", self._path, self._repo.owner, {"draft": draft})

    def merge(self, *, merge_sha: str | None = None) -> str:
        """Merge it as the owner; returns the sha of the merge commit, `merge_sha` if given."""
        made = self._emulator.do("PUT", f"{self._path}/merge", self._repo.owner, {})
        self.facts.merge_commit_sha = merge_sha or str(made["sha"])
        return self.facts.merge_commit_sha

    def close(self) -> None:
        """Close it without merging."""
        self._emulator.do("PATCH", self._path, self._repo.owner, {"state": "closed"})

    def reopen(self) -> None:
        """Open it again."""
        self._emulator.do("PATCH", self._path, self._repo.owner, {"state": "open"})

    # Comments

    def comments(self) -> list[dict[str, Any]]:
        """All comments, oldest first, from every page."""
        found: list[dict[str, Any]] = []
        page = 1
        while True:
            target = f"{self._issue}/comments?per_page=100&page={page}"
            part = self._emulator.do("GET", target, self._repo.owner)
            found += rewrite(self._front.world, part)
            if len(part) < 100:
                return found
            page += 1

    def comments_by(self, login: str) -> list[dict[str, Any]]:
        """The comments of one author."""
        return [comment for comment in self.comments() if comment["user"]["login"] == login]

    def add_comment(self, body: str, login: str = "author") -> dict[str, Any]:
        """A comment by somebody."""
        self._front.admit(self._repo, login)
        made = self._emulator.do("POST", f"{self._issue}/comments", login, {"body": body})
        found: dict[str, Any] = rewrite(self._front.world, made)
        return found

    def edit_comment(self, comment_id: int, body: str, login: str = "author") -> None:
        """Somebody edits a comment."""
        self._front.admit(self._repo, login)
        target = f"/repos/{self._repo.full_name}/issues/comments/{comment_id}"
        self._emulator.do("PATCH", target, login, {"body": body})

    def delete_comment(self, comment_id: int, login: str = "author") -> None:
        """Somebody removes a comment."""
        target = f"/repos/{self._repo.full_name}/issues/comments/{comment_id}"
        self._emulator.do("DELETE", target, login)

    def add_comments(self, count: int, login: str = "author") -> None:
        """Many comments that are none of ours, to make pages."""
        for number in range(1, count + 1):
            self.add_comment(f"Foreign comment {number}.", login)

    @property
    def _issue(self) -> str:
        return f"/repos/{self._repo.full_name}/issues/{self.number}"

    # Events

    def event(self, action: str, *, sender: str = "author", **more: Any) -> dict[str, Any]:
        """The `pull_request` event payload of this pull request as it is now."""
        return events.pull_request(
            action, sender=sender, facts=events.PullFacts.from_api(self.json), **more
        )

    def comment_event(self, comment: dict[str, Any]) -> dict[str, Any]:
        """The `issue_comment` event payload for a comment on this pull request."""
        return events.issue_comment(
            comment["body"],
            comment_id=comment["id"],
            login=comment["user"]["login"],
            facts=events.PullFacts.from_api(self.json),
        )
