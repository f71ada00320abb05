"""What lies in a laptop's checkout and is not committed yet, as a tree that can be compared.

A review plans the files as they lie there, so the rules on changed files have to see the same ones.
Nothing is written to the checkout: git works on a copy of its index, and new content goes to a
directory of ours. Unlike all other reads this runs git with the user's own configuration, because
only that knows which files are ignored and how content is filtered; so it is for checkouts of the
user's own, in which they run git themselves.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ci_bot.bot.cage.git.objects import SHA
from ci_bot.bot.cage.git.program import GitProgram
from ci_bot.contracts.files import LARGEST_FILE_BYTES

# Of the index as the user keeps it: what would be looked for, or written, beside it.
_PLAIN = ("-c", "core.splitIndex=false", "-c", "core.untrackedCache=false")
_UNCOMMITTED = ("ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard")
_UNTRACKED = b"? "
_ENVIRONMENT = re.compile(rb"(?:.*/)?\.env(?:\..*)?")


class WorkingTree:
    """The files of a checkout as they lie there.

    Args:
        private: A directory of the bot alone.
    """

    def __init__(self, program: GitProgram, private: Path) -> None:
        self._program = program
        self._index = private / "working.index"
        self._objects = private / "working.objects"

    def tree(self, environ: Mapping[str, str]) -> str | None:
        """The id of a tree with tracked and untracked files, without those that git ignores.

        Of the untracked files those are not in it that no rule would read, because they are too
        large, and the environment's own (`.env`), which are there to stay out of git.

        Args:
            environ: The user's own environment.

        Returns:
            None where git cannot make one (in the middle of a merge, or a file that it cannot
            read).
        """
        variables = self._variables(environ)
        listed = self._program.as_user([*_PLAIN, *_UNCOMMITTED], variables)
        if listed.returncode != 0:
            return None
        update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        feed = b"".join(path + b"\0" for path in self._counting(listed.stdout))
        done = self._program.as_user([*_PLAIN, *update], variables, feed=feed)
        if done.returncode != 0:
            return None
        written = self._program.as_user([*_PLAIN, "write-tree"], variables)
        tree = written.stdout.decode("ascii", "replace").strip()
        return tree if written.returncode == 0 and SHA.fullmatch(tree) else None

    def _counting(self, listed: bytes) -> Iterator[bytes]:
        for entry in dict.fromkeys(filter(None, listed.split(b"\0"))):
            path = entry[len(_UNTRACKED) :]
            if not entry.startswith(_UNTRACKED) or self._would_be_added(path):
                yield path

    def _would_be_added(self, path: bytes) -> bool:
        # What ends like a directory is a repository of its own.
        if path.endswith(b"/") or _ENVIRONMENT.fullmatch(path):
            return False
        try:
            full = os.path.join(os.fsencode(self._program.checkout), path)  # noqa: PTH118 - bytes
            return os.lstat(full).st_size <= LARGEST_FILE_BYTES
        except OSError:
            return False  # it went while we were looking

    def _variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The user's own; git's are ours: a hook has those of the repository that it runs in."""
        self._objects.mkdir(parents=True, exist_ok=True)
        index = self._program.inside_path("index")
        if index.is_file():
            shutil.copyfile(index, self._index)
        return {
            **{name: value for name, value in environ.items() if not name.startswith("GIT_")},
            "GIT_INDEX_FILE": str(self._index),
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            **self._program.lend(self._objects),
        }
