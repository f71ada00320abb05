"""What a release asks before and after its image is built; standard library only.

    python .ci/release.py check v1.2.3     this checkout can be released under that version
    python .ci/release.py pin IMAGE REVIEW_IMAGE
                                           both action.yml name their images by their digests
    python .ci/release.py tree BASE        what GitHub is to make a tree of: BASE with both

The exit code is 0, or 2 with one line for each problem, as GitHub's annotations.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

VERSION = re.compile(r"v(\d+\.\d+\.\d+)")
IMAGE = re.compile(r"[a-z0-9.:/_-]+@sha256:[0-9a-f]{64}")
# The two actions, each with the Dockerfile that it names as long as no image is published.
ACTIONS = {
    "action.yml": "Dockerfile",
    "review/action.yml": "../Dockerfile # zizmor: ignore[unpinned-images] no image but a file",
}
# GitHub checks it where an action is published, when the tag is made already.
MARKETPLACE_DESCRIPTION = 125


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
    if not re.search(rf"^## \[{re.escape(number)}\] - \d{{4}}-\d\d-\d\d$", changes, re.M):
        yield f"CHANGELOG.md has no heading `## [{number}] - <date>`."
    waiting = re.search(r"^## \[Unreleased\]$(.*?)(?=^## |\Z)", changes, re.M | re.S)
    if waiting and waiting[1].strip():
        yield "CHANGELOG.md still has entries under `## [Unreleased]`."
    action = (root / "action.yml").read_text("utf-8")
    described = re.search(r"^description: >-\n((?:  .+\n)+)", action, re.M)
    length = len(" ".join(described[1].split())) if described else 0
    if not 0 < length <= MARKETPLACE_DESCRIPTION:
        yield (
            f"The description in action.yml has {length} characters; the Marketplace takes 1 to "
            f"{MARKETPLACE_DESCRIPTION}."
        )
    for name, dockerfile in ACTIONS.items():
        if (root / name).read_text("utf-8").count(_line(dockerfile)) != 1:
            yield f"{name} does not name the Dockerfile once, so no image can be named instead."


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


def tree(root: Path, base: str) -> dict[str, object]:
    """The body of `POST /repos/{owner}/{repo}/git/trees`: the tree `base` with both action.yml.

    As a document of our own: of several entries that are given as fields, `gh api` makes others.
    """
    entries = [
        {
            "path": name,
            "mode": "100644",
            "type": "blob",
            "content": (root / name).read_text("utf-8"),
        }
        for name in ACTIONS
    ]
    return {"base_tree": base, "tree": entries}


def main(root: Path, words: list[str]) -> int:
    match words:
        case ["check", version]:
            found = list(problems(root, version))
        case ["pin", image, review_image]:
            try:
                texts = [
                    pinned((root / name).read_text("utf-8"), dockerfile, its)
                    for (name, dockerfile), its in zip(
                        ACTIONS.items(), (image, review_image), strict=True
                    )
                ]
                found = []
            except ValueError as error:
                texts, found = [], [str(error)]
            for name, text in zip(ACTIONS, texts, strict=False):
                (root / name).write_text(text, encoding="utf-8")
        case ["tree", base]:
            sys.stdout.write(json.dumps(tree(root, base)))
            found = []
        case _:
            found = ["release.py takes `check VERSION`, `pin IMAGE REVIEW_IMAGE` or `tree BASE`."]
    for problem in found:
        sys.stdout.write(f"::error::{problem}\n")
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), sys.argv[1:]))
