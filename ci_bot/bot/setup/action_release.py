"""Which release of this action a workflow names: its repository, its commit, and its version."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ci_bot import __version__

# What a release writes in place of the zeros, here as in every document.
_RELEASED = "your-org/sqlmesh-plan-review@0000000000000000000000000000000000000000 # v0.0.0"
_NAMED = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)@(?P<commit>[0-9a-f]{40})(?:\s*#\s*(?P<version>v[\w.+-]+))?"
)
_ADDRESS = re.compile(r"^(?:\w+://|git@)[^/:]+[/:](?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?/?$")
# A review takes the action in the directory `review`.
_USED = re.compile(r"uses: ([\w.-]+/[\w.-]+)/review@([0-9a-f]{40}) # (v[\w.+-]+)")
_TAG = re.compile(r"v\d+\.\d+\.\d+")


@dataclass(frozen=True)
class ActionRelease:
    """A release as `uses:` names it: `<repository>@<commit> # <version>`."""

    repository: str
    commit: str
    version: str

    @property
    def is_released(self) -> bool:
        """Whether such a commit can exist; the placeholder of an unreleased checkout cannot."""
        return bool(self.commit.strip("0"))


def parse_action_release(text: str) -> ActionRelease:
    """Reads `owner/name@commit`, with or without `# v1.2.3`.

    Raises:
        ValueError: it is none.
    """
    named = _NAMED.fullmatch(text.strip())
    if named is None:
        raise ValueError("owner/name@commit, with the 40 digits of the commit")
    return ActionRelease(
        named["repository"], named["commit"], named["version"] or f"v{__version__}"
    )


def find_action_release(direct_url: str | None) -> ActionRelease:
    """The release that this installation comes from.

    Args:
        direct_url: What pip wrote down of an installation from git (PEP 610); None if it came from
            elsewhere.
    """
    return _of_git(direct_url) or parse_action_release(_RELEASED)


def read_action_release(workflow: str) -> ActionRelease | None:
    """The release that a review.yml names; None if it names the placeholder, or none."""
    used = _USED.search(workflow)
    release = parse_action_release(f"{used[1]}@{used[2]} # {used[3]}") if used else None
    return release if release is not None and release.is_released else None


def _of_git(direct_url: str | None) -> ActionRelease | None:
    try:
        known = json.loads(direct_url or "{}")
        address, commit = known["url"], known["vcs_info"]["commit_id"]
        asked = known["vcs_info"].get("requested_revision") or ""
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    repository = _ADDRESS.match(str(address))
    if repository is None or not re.fullmatch(r"[0-9a-f]{40}", str(commit)):
        return None
    version = asked if _TAG.fullmatch(str(asked)) else f"v{__version__}"
    return ActionRelease(repository["repository"], str(commit), version)
