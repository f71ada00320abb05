"""The examples for GitHub Enterprise Server, made of those for github.com.

    python -m tests.enterprise_server            writes them anew

What the server does not know makes a whole workflow invalid, or fails in its first run. Each is one
change of text, so that comments stay as they are.
"""

from __future__ import annotations

import re
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / ".github" / "examples"
TARGET = EXAMPLES / "enterprise-server"

# Runs on the server's artifacts, and is maintained for it alone; needs a runner of 2.327.1 or later.
UPLOAD = "actions/upload-artifact@c6a366c94c3e0affe28c06c8df20a878f24da3cf # v3.2.2"
_CHANGES = (
    # Since 2026-05 on github.com.
    (r"(?m)^  queue: max\n", ""),
    # On github.com and Enterprise Cloud only.
    (
        r"(?m)^    environment:\n      name: ([\w-]+)\n      deployment: false\n",
        r"    environment: \1\n",
    ),
    (r"actions/upload-artifact@[0-9a-f]{40} # v\d+\.\d+\.\d+", UPLOAD),
    # The server has no runners of its own.
    (r"(?m)^    runs-on: ubuntu-24\.04$", "    runs-on: [self-hosted, linux, x64]"),
    # What the comments say of the keys that are gone.
    (
        r"# Merges are deployed one by one, in their order: each was reviewed .*\n",
        "# One deployment at a time. Of merges that wait the server keeps the newest only, whose plan is\n"
        "# another one then: deploy by hand what was left out, in the order of the merges.\n",
    ),
    (
        r", and those that wait are kept in order instead of replaced\.",
        ".\n# Of those that wait the newest is kept: the server knows no `queue: max`.",
    ),
    (r" No deployment record: it would name the default branch's commit\.", ""),
    (r"; it is no deployment either\.", "."),
)


def variant(text: str) -> str:
    """A workflow for github.com as one for the server."""
    for pattern, replacement in _CHANGES:
        text = re.sub(pattern, replacement, text)
    return text


def variants() -> dict[str, str]:
    """Every example by its name."""
    return {path.name: variant(path.read_text("utf-8")) for path in sorted(EXAMPLES.glob("*.yml"))}


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    for name, text in variants().items():
        (TARGET / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
