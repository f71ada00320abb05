"""What a release asks before, between and after its images are built; standard library only.

    python .ci/release.py cut v1.2.3       writes the version and the changelog's heading
    python .ci/release.py check v1.2.3     this checkout can be released under that version
    python .ci/release.py pin IMAGE REVIEW_IMAGE
                                           both action.yml name their images by their digests
    python .ci/release.py name OWNER/NAME v1.2.3 [COMMIT]
                                           documents, examples and `ci-bot init` name that release
    python .ci/release.py tree BASE        what GitHub is to make a tree of: BASE with what changed
    python .ci/release.py notes OWNER/NAME v1.2.3 COMMIT
                                           the text of the release's page

The exit code is 0, or 2 with one line for each problem, as GitHub's annotations.
"""

from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VERSION = re.compile(r"v(\d+\.\d+\.\d+)")
IMAGE = re.compile(r"[a-z0-9.:/_-]+@sha256:[0-9a-f]{64}")
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
COMMIT = re.compile(r"[0-9a-f]{40}")
# The two actions, each with the Dockerfile that it names as long as no image is published.
ACTIONS = {
    "action.yml": "Dockerfile",
    "review/action.yml": "../Dockerfile # zizmor: ignore[unpinned-images] no image but a file",
}
# GitHub checks these where an action is published, when the tag is made already.
MARKETPLACE_DESCRIPTION = 125
MARKETPLACE_COLORS = {
    "white", "black", "yellow", "blue", "green", "orange", "red", "purple", "gray-dark",
}  # fmt: skip
# The one declaration of the release that this checkout names; all other places are found by it.
DECLARED_IN = "ci_bot/bot/cli/setup/plan_files.py"
DECLARATION = re.compile(
    r'^_RELEASED = "(?P<repository>[^@"]+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v[\d.]+)"$', re.M
)
NOT_RELEASED = re.compile(r"<!-- not released -->.*?<!-- /not released -->\s*", re.S)
# What an example says beside its pin: as `ci-bot init` writes it (templates/workflows/_pin.yml).
PLACEHOLDER = "# Replace by the release you use: its commit, not its tag."
PINNED = "# A release by its commit, not its tag; `ci-bot init --upgrade` moves it."
# They speak of the placeholder itself, or of both.
KEPT = {
    ".ci/release.py",
    "CHANGELOG.md",
    "templates/workflows/_pin.yml",
    "tests/contract/test_release.py",
}


class Release(NamedTuple):
    """A release as documents name it; without a commit by its tag.

    A commit cannot name itself, so in the tagged one they name the tag.
    """

    repository: str
    version: str
    commit: str | None

    @property
    def reference(self) -> str:
        """What stands behind the `@`, where no comment can follow."""
        return self.commit or self.version

    @property
    def pin(self) -> str:
        """What stands behind the `@` of `uses:`."""
        return f"{self.commit} # {self.version}" if self.commit else self.version


def problems(root: Path, version: str) -> Iterator[str]:
    """Why this checkout is no release of that version, a sentence each."""
    match = VERSION.fullmatch(version)
    if match is None:
        yield f"`{version}` is no version such as v1.2.3."
        return
    number = match[1]
    written = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if written != number:
        yield f"pyproject.toml says version {written}, and the release is {number}."
    # What the image says of itself, which is asked once it is published.
    said = (root / "ci_bot" / "__init__.py").read_text("utf-8")
    if f'__version__ = "{number}"' not in said.splitlines():
        yield f'ci_bot/__init__.py has no `__version__ = "{number}"`.'
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    if not _changes(changes, number):
        yield f"CHANGELOG.md has no heading `## [{number}] - <date>` with entries below it."
    waiting = _section(changes, r"\[Unreleased\]")
    if waiting:
        yield "CHANGELOG.md still has entries under `## [Unreleased]`."
    yield from _metadata_problems((root / "action.yml").read_text("utf-8"))
    for name, dockerfile in ACTIONS.items():
        if (root / name).read_text("utf-8").count(_line(dockerfile)) != 1:
            yield f"{name} does not name the Dockerfile once, so no image can be named instead."
    if not DECLARATION.search((root / DECLARED_IN).read_text("utf-8")):
        yield f"{DECLARED_IN} does not declare which release documents name."


def _metadata_problems(action: str) -> Iterator[str]:
    """What GitHub's Marketplace would refuse."""
    described = re.search(r"^description: >-\n((?:  .+\n)+)", action, re.M)
    length = len(" ".join(described[1].split())) if described else 0
    if not 0 < length <= MARKETPLACE_DESCRIPTION:
        yield (
            f"The description in action.yml has {length} characters; the Marketplace takes 1 to "
            f"{MARKETPLACE_DESCRIPTION}."
        )
    for key in ("name", "author"):
        if not re.search(rf"^{key}: \S", action, re.M):
            yield f"action.yml has no `{key}`, which the Marketplace asks for."
    branding = re.search(r"^branding:\n  icon: ([\w-]+)\n  color: ([\w-]+)$", action, re.M)
    if branding is None or branding[2] not in MARKETPLACE_COLORS:
        yield "action.yml has no `branding` with an icon and a color that the Marketplace knows."


def cut(root: Path, version: str, date: str) -> list[str]:
    """Writes the version where it stands, and its heading above the changelog's waiting entries.

    A version that was cut before and has no tag yet takes in what came since.

    Returns:
        Why nothing was written, a sentence each.
    """
    match = VERSION.fullmatch(version)
    if match is None:
        return [f"`{version}` is no version such as v1.2.3."]
    number = match[1]
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    waiting = _section(changes, r"\[Unreleased\]")
    is_cut = bool(re.search(rf"^## \[{re.escape(number)}\]", changes, re.M))
    is_newest = re.findall(r"^## \[(.*?)\]", changes, re.M)[1:2] == [number]
    if is_cut and (not waiting or not is_newest or _is_tagged(root, version)):
        return [f"CHANGELOG.md has a heading for {number} already."]
    if not waiting:
        return ["CHANGELOG.md has no entries under `## [Unreleased]`."]
    # Both before either: nothing half done.
    written = {}
    for name, line in (
        ("pyproject.toml", 'version = "{}"'), ("ci_bot/__init__.py", '__version__ = "{}"'),
    ):  # fmt: skip
        pattern = "^" + re.escape(line).replace(r"\{\}", r"\d+\.\d+\.\d+") + "$"
        text, count = re.subn(
            pattern, line.format(number), (root / name).read_text("utf-8"), flags=re.M
        )
        if count != 1:
            return [f"{name} has {count} lines with a version; one is expected."]
        written[name] = text
    written["CHANGELOG.md"] = (
        _add_entries(changes, number, date)
        if is_cut
        else changes.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{number}] - {date}\n", 1)
    )
    for name, text in written.items():
        (root / name).write_text(text, encoding="utf-8")
    return []


def _is_tagged(root: Path, version: str) -> bool:
    """Whether this clone knows the version's tag."""
    return bool(_git(root, "tag", "--list", version).strip())


def _add_entries(changelog: str, number: str, date: str) -> str:
    """The changelog with its waiting entries in the newest version's section, kind by kind."""
    head, waiting, newest, *older = re.split(r"^(?=## \[)", changelog, flags=re.M)
    kinds: dict[str, list[str]] = {}
    for section in (newest, waiting):
        for part in re.split(r"^(?=### )", section.partition("\n")[2], flags=re.M):
            kind, _, entries = part.partition("\n") if part.startswith("### ") else ("", "", part)
            if entries.strip():
                kinds.setdefault(kind, []).insert(0, entries.strip())
    body = "\n\n".join(f"{kind}\n\n{chr(10).join(each)}".strip() for kind, each in kinds.items())
    text = f"{head}## [Unreleased]\n\n## [{number}] - {date}\n\n{body}\n\n{''.join(older)}"
    return text.rstrip() + "\n"


def _changes(changelog: str, number: str) -> str:
    return _section(changelog, rf"\[{re.escape(number)}\] - \d{{4}}-\d\d-\d\d")


def _section(changelog: str, heading: str) -> str:
    """The text below a heading, up to the next one; empty if there is none."""
    found = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    return found[1].strip() if found else ""


def _line(image: str) -> str:
    return f"\n  image: {image}\n"


def pinned(action: str, dockerfile: str, image: str) -> str:
    """An action.yml with the published image in place of the Dockerfile.

    Raises:
        ValueError: the image has no digest.
    """
    if not IMAGE.fullmatch(image):
        raise ValueError(f"The image has no digest to name: {image}")
    return action.replace(_line(dockerfile), _line(f"docker://{image}"))


def pin(root: Path, image: str, review_image: str) -> list[str]:
    """Writes both action.yml, or neither; gives the problem."""
    try:
        texts = {
            name: pinned((root / name).read_text("utf-8"), dockerfile, its)
            for (name, dockerfile), its in zip(ACTIONS.items(), (image, review_image), strict=True)
        }
    except ValueError as error:
        return [str(error)]
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    return []


def named(text: str, before: re.Match[str], release: Release) -> str:
    """A document that names `release` where it named the one of the declaration `before`."""
    repository, commit, version = (
        re.escape(before[each]) for each in ("repository", "commit", "version")
    )
    uses = rf"(?<![\w.-]){repository}((?:/review)?)@"
    # The declaration has to stay one that can be read, also if no commit is known.
    line = f'_RELEASED = "{release.repository}@{release.commit or "0" * 40} # {release.version}"'
    kept = "\0declaration\0"
    text = DECLARATION.sub(kept, text)
    text = re.sub(
        rf"{uses}(?:{commit} # )?{version}\b", rf"{release.repository}\1@{release.pin}", text
    )
    text = re.sub(
        rf"{uses}(?:{commit}|<commit>)", rf"{release.repository}\1@{release.reference}", text
    )
    text = re.sub(rf"(?<=ghcr\.io/){repository}(?![\w.-])", release.repository.lower(), text)
    text = re.sub(_exactly(before), release.repository, text)
    text = re.sub(rf"(?<=    rev: ){version}$", release.version, text, flags=re.M)
    text = NOT_RELEASED.sub("", text)
    if release.commit:
        text = text.replace(PLACEHOLDER, PINNED)
    return text.replace(kept, line)


def _exactly(before: re.Match[str]) -> str:
    return rf"(?<![\w.-]){re.escape(before['repository'])}(?![\w-])"


def name_release(root: Path, release: Release) -> list[str]:
    """Writes the release wherever this checkout names the declared one; gives the problems."""
    if not (
        REPOSITORY.fullmatch(release.repository)
        and VERSION.fullmatch(release.version)
        and COMMIT.fullmatch(release.commit or "0" * 40)
    ):
        return ["`name` takes OWNER/NAME, a version such as v1.2.3, and the 40 digits of a commit."]
    before = DECLARATION.search((root / DECLARED_IN).read_text("utf-8"))
    if before is None:
        return [f"{DECLARED_IN} does not declare which release documents name."]
    found = []
    for path in _list_tracked(root):
        try:
            text = (root / path).read_text("utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        if path in KEPT:
            continue
        after = named(text, before, release)
        if after != text:
            (root / path).write_text(after, encoding="utf-8")
        if before["repository"] != release.repository and re.search(_exactly(before), after):
            found.append(f"{path} still names {before['repository']}.")
    return found


def _list_tracked(root: Path) -> list[str]:
    return _git(root, "ls-files", "-z").split("\0")[:-1]


def _git(root: Path, *words: str) -> str:
    git = shutil.which("git") or "git"
    return subprocess.run(
        [git, "-C", root, *words], check=True, capture_output=True, text=True
    ).stdout


def tree(root: Path, base: str) -> dict[str, object]:
    """The body of `POST /repos/{owner}/{repo}/git/trees`: the tree `base` with what changed here.

    As a document of our own: of several entries that are given as fields, `gh api` makes others.
    """
    entries = []
    for line in _git(root, "diff", "--raw", "-z", "--no-renames", "HEAD").split("\0:"):
        if line:
            fields, path = line.strip("\0").removeprefix(":").split("\0")
            entries.append(
                {
                    "path": path,
                    "mode": fields.split()[1],
                    "type": "blob",
                    "content": (root / path).read_text("utf-8"),
                }
            )
    return {"base_tree": base, "tree": entries}


def notes(root: Path, release: Release) -> str:
    """The text of the release's page: what to name, and what changed."""
    number = release.version.removeprefix("v")
    changes = _changes((root / "CHANGELOG.md").read_text("utf-8"), number)
    return (
        "```yaml\n"
        f"- uses: {release.repository}/review@{release.pin}\n"
        f"- uses: {release.repository}@{release.pin}\n"
        "```\n\n"
        "The first is for reviews and commands, the second for everything. `SHA256SUMS` has the "
        "hashes of the wheel and of the site of the documents.\n\n"
        f"{changes}\n"
    )


def main(root: Path, words: list[str]) -> int:
    match words:
        case ["cut", version]:
            found = cut(root, version, datetime.datetime.now(datetime.UTC).date().isoformat())
        case ["check", version]:
            found = list(problems(root, version))
        case ["pin", image, review_image]:
            found = pin(root, image, review_image)
        case ["name", repository, version, *commit] if len(commit) <= 1:
            found = name_release(root, Release(repository, version, commit[0] if commit else None))
        case ["tree", base]:
            sys.stdout.write(json.dumps(tree(root, base)))
            found = []
        case ["notes", repository, version, commit]:
            sys.stdout.write(notes(root, Release(repository, version, commit)))
            found = []
        case _:
            found = [
                "release.py takes `cut VERSION`, `check VERSION`, `pin IMAGE REVIEW_IMAGE`, "
                "`name OWNER/NAME VERSION [COMMIT]`, `tree BASE` or "
                "`notes OWNER/NAME VERSION COMMIT`."
            ]
    for problem in found:
        sys.stdout.write(f"::error::{problem}\n")
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), sys.argv[1:]))
