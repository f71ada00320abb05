"""A repository in the stand-in, as a test sets it up and looks at it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import events
from .emulator import EmulateError
from .front import Front
from .gitpush import Pusher
from .pull import Pull
from .state import Artifact, Dispatch, PullState, RepoState, Run, Signature, Workflow

_ZIP_TIME = (2024, 1, 1, 0, 0, 0)


class Repo:
    """Handle on one repository. Its own requests go behind the front: they are neither logged nor
    validated.
    """

    def __init__(self, front: Front, state: RepoState, adopt: Callable[..., Repo]) -> None:
        self._front = front
        self._state = state
        self._adopt = adopt
        self._emulator = front.emulator
        self._pusher = Pusher(front.emulator, state.full_name, state.owner)

    @property
    def full_name(self) -> str:
        """owner/name, what `GITHUB_REPOSITORY` says."""
        return self._state.full_name

    @property
    def url(self) -> str:
        """The API address."""
        return f"{self._front.world.url}/repos/{self.full_name}"

    def grant(self, login: str, role: str | None) -> None:
        """Make somebody a collaborator (read, triage, write, maintain, admin), or none at all."""
        if role is None:
            self._state.roles.pop(login, None)
        else:
            self._state.roles[login] = role

    # Commits

    def push_git(self, repository: Path, refs: Mapping[str, str]) -> dict[str, str]:
        """Push commits of a local git repository with their real shas.

        `refs` maps a branch here ("main") or a full ref ("refs/pull/7/merge") to a revision there.
        Returns ref -> sha.
        """
        shas = self._pusher.push(repository, refs.values())
        pushed = dict(zip(refs, shas, strict=True))
        for ref, sha in pushed.items():
            self.set_ref(ref, sha)
        return pushed

    def commit(
        self, branch: str, files: Mapping[str, str | None], *, start: str | None = None
    ) -> str:
        """A commit with these files on a branch, without a local git; None deletes. Returns the
        sha.

        A new branch starts at the branch `start`, or from nothing.
        """
        parent = self.tip(branch) or (self.tip(start) if start else None)
        base = self._do("GET", f"/git/commits/{parent}")["tree"]["sha"] if parent else None
        entries: list[dict[str, Any]] = [
            {"path": path, "mode": "100644", "type": "blob"}
            | ({"sha": None} if text is None else {"content": text})
            for path, text in files.items()
        ]
        payload: dict[str, Any] = {"tree": entries} | ({"base_tree": base} if base else {})
        tree = self._do("POST", "/git/trees", payload)["sha"]
        made = {
            "message": f"Change {', '.join(files)}\n",
            "tree": tree,
            "parents": [parent] if parent else [],
        }
        sha = str(self._do("POST", "/git/commits", made)["sha"])
        self.set_ref(branch, sha)
        return sha

    def sign(
        self, sha: str, author: str | None, committer: str | None, *, verified: bool = True
    ) -> None:
        """Say whose a commit is, and whether GitHub has verified its signature.

        Without it its addresses are no account's, and it is not signed.
        """
        self._state.signatures[sha] = Signature(author, committer, verified)

    def tip(self, branch: str) -> str | None:
        """The sha a branch points to, or None."""
        target = f"/repos/{self.full_name}/git/ref/heads/{quote(branch)}"
        answer = self._emulator.call("GET", target, login=self._state.owner)
        return str(answer.json["object"]["sha"]) if answer.status == 200 else None

    def set_ref(self, ref: str, sha: str) -> None:
        """Point a branch or a full ref at a commit that is here already."""
        full = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        short = quote(full.removeprefix("refs/"))
        held = self._emulator.call(
            "GET", f"/repos/{self.full_name}/git/ref/{short}", login=self._state.owner
        )
        if held.status == 200:
            self._do("PATCH", f"/git/refs/{short}", {"sha": sha, "force": True})
        else:
            self._do("POST", "/git/refs", {"ref": full, "sha": sha})

    # Pull requests and issues

    def create_pull(
        self,
        head: str,
        base: str = "main",
        *,
        title: str = "Change the models",
        author: str = "author",
        number: int | None = None,
        draft: bool = False,
        merge_sha: str | None = None,
        head_repo: Repo | None = None,
    ) -> Pull:
        """Open a pull request from branch `head`. `head_repo` is the fork it comes from.

        `number` asks for a certain number; issues fill the gap below it. `merge_sha` is GitHub's
        test merge commit.
        """
        if number is not None:
            self._skip_to(number)
        self._front.admit(self._state, author)
        if head_repo is not None and (tip := head_repo.tip(head)):
            self.fetch(head_repo, tip)
        label = f"{head_repo.full_name.split('/')[0]}:{head}" if head_repo else head
        payload = {"title": title, "head": label, "base": base, "body": "", "draft": draft}
        made = self._do("POST", "/pulls", payload, login=author)
        facts = PullState(merge_commit_sha=merge_sha)
        self._state.pulls[made["number"]] = facts
        return Pull(self._front, self._state, made["number"], facts)

    def _skip_to(self, number: int) -> None:
        """Make `number` the next one: pull requests and issues count together."""
        newest = [self._do("GET", f"/{kind}?state=all&per_page=1") for kind in ("issues", "pulls")]
        last = max((items[0]["number"] for items in newest if items), default=0)
        if last >= number:
            raise EmulateError(f"number {number} of {self.full_name} is already past")
        for _ in range(number - last - 1):
            self.create_issue()

    def create_issue(self, title: str = "Something else", author: str = "author") -> int:
        """An issue that is no pull request; returns its number."""
        self._front.admit(self._state, author)
        return int(self._do("POST", "/issues", {"title": title}, login=author)["number"])

    def fork(self, login: str = "outsider") -> Repo:
        """Fork this repository to somebody's account."""
        made = self._do("POST", "/forks", {}, login=login)
        copy = self._adopt(made["full_name"], private=self._state.private)
        # emulate gives a fork a history of its own.
        if (tip := self.tip(made["default_branch"])) is not None:
            copy.fetch(self, tip)
            copy.set_ref(made["default_branch"], tip)
        return copy

    def fetch(self, other: Repo, sha: str) -> None:
        """Copy a commit with its ancestors from another repository here; GitHub's forks share their
        objects.
        """
        held = self._emulator.call(
            "GET", f"/repos/{self.full_name}/git/commits/{sha}", login=self._state.owner
        )
        if held.status == 200:
            return
        found = other._do("GET", f"/git/commits/{sha}")
        for parent in found["parents"]:
            self.fetch(other, parent["sha"])
        tree = other._do("GET", f"/git/trees/{found['tree']['sha']}?recursive=1")["tree"]
        entries = [entry for entry in tree if entry["type"] != "tree"]
        for entry in entries:
            blob = other._do("GET", f"/git/blobs/{entry['sha']}")
            self._do("POST", "/git/blobs", {"content": blob["content"], "encoding": "base64"})
        made = [
            {name: entry[name] for name in ("path", "mode", "type", "sha")} for entry in entries
        ]
        payload = {"message": found["message"], "parents": [one["sha"] for one in found["parents"]]}
        payload |= {name: found[name] for name in ("author", "committer")}
        payload["tree"] = self._do("POST", "/git/trees", {"tree": made})["sha"]
        copied = self._do("POST", "/git/commits", payload)["sha"]
        if copied != sha:
            raise EmulateError(f"the copy of commit {sha} became {copied}")

    def delete(self) -> None:
        """Delete the repository; pull requests that came from it then have `head.repo: null`."""
        self._do("DELETE", "")
        del self._front.world.repos[self.full_name]

    # Actions

    def add_workflow(self, path: str, inputs: Mapping[str, bool] | None = None) -> Workflow:
        """Declare a workflow file. `inputs`: declared input -> required; None accepts anything."""
        path = path if "/" in path else f".github/workflows/{path}"
        made = Workflow(next(self._front.world.numbers), path, inputs)
        self._state.workflows.append(made)
        return made

    @property
    def dispatches(self) -> list[Dispatch]:
        """The workflow dispatches so far, oldest first."""
        return list(self._state.dispatches)

    def dispatch_event(self, dispatch: Dispatch) -> events.Event:
        """The `workflow_dispatch` event payload that the dispatched workflow gets."""
        inputs = {name: str(value) for name, value in dispatch.inputs.items()}
        return events.workflow_dispatch(
            inputs,
            repo=self.full_name,
            ref=f"refs/heads/{dispatch.ref.removeprefix('refs/heads/')}",
            workflow=f".github/workflows/{dispatch.workflow}",
            sender=dispatch.login,
            private=self._state.private,
        )

    def add_run(self, workflow: Workflow, branch: str, *, event: str = "pull_request") -> Run:
        """A finished, successful run at the tip of a branch."""
        sha = self.tip(branch)
        if sha is None:
            raise EmulateError(f"no branch {branch} in {self.full_name}")
        number = next(self._front.world.numbers)
        made = Run(number, workflow, event, branch, sha, "author", "completed", "success")
        self._state.runs[number] = made
        return made

    def add_artifact(
        self, run: Run, name: str, files: Mapping[str, bytes], *, expired: bool = False
    ) -> Artifact:
        """Store an artifact of a run; the zip is the same for the same files."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for path, content in files.items():
                archive.writestr(zipfile.ZipInfo(path, _ZIP_TIME), content)
        number = next(self._front.world.numbers)
        made = Artifact(number, run.id, name, buffer.getvalue(), expired)
        self._state.artifacts[number] = made
        return made

    def checks(self, sha: str | None = None) -> list[dict[str, Any]]:
        """The check runs (of a commit), oldest first; `annotations` holds what was sent."""
        return [one for one in self._state.checks.values() if sha in (None, one["head_sha"])]

    def _do(self, method: str, tail: str, payload: Any = None, login: str | None = None) -> Any:
        target = f"/repos/{self.full_name}{tail}"
        return self._emulator.do(method, target, login or self._state.owner, payload)
