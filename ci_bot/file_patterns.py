"""Which files a pattern of git's kind means, and whom CODEOWNERS names for a file. Pure.

Both processes use it: the bot finds the owner of a model, and a rule finds owners who are asked
less than before. (https://git-scm.com/docs/gitignore#_pattern_format and
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate

# In this order; the first that exists counts.
CODEOWNERS_PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
_ANY_DEPTH = "**"
_ANY_NAME = re.compile("")
_QUOTED = re.compile(r"\\(.)")
_WORD = re.compile(r"(?:\\.|[^\s\\])+")


@dataclass(frozen=True)
class FilePattern:
    """A pattern, split into names, so that no pattern takes long on any path.

    Attributes:
        names: what each name of a path has to be; `**` matches any number of names.
        only_below: whether it means only files in a directory of that name, and no such file.
        takes_below: whether it also means files in a directory of that name.
    """

    names: tuple[str | re.Pattern[str], ...]
    only_below: bool = False
    takes_below: bool = True

    def matches(self, path: str) -> bool:
        """Whether it means a file of the repository; `path` is relative to its root."""
        names = path.split("/")
        at = passed = 0
        again: tuple[int, int] | None = None
        while passed < len(names):
            if at == len(self.names) and self.takes_below:
                return True
            if at < len(self.names) and self.names[at] == _ANY_DEPTH:
                again = (at, passed)
                at += 1
            elif at < len(self.names) and _fits_path_name(self.names[at], names[passed]):
                at, passed = at + 1, passed + 1
            elif again is not None:
                again = (again[0], again[1] + 1)
                at, passed = again[0] + 1, again[1]
            else:
                return False
        rest = self.names[at:]
        return not self.only_below and all(name == _ANY_DEPTH for name in rest)


def _fits_path_name(wanted: str | re.Pattern[str], name: str) -> bool:
    return wanted == name if isinstance(wanted, str) else wanted.match(name) is not None


def read_pattern(pattern: str, *, below_stars: bool = True) -> FilePattern:
    """Reads a pattern of .gitattributes, .dockerignore or CODEOWNERS.

    Args:
        below_stars: whether `a/*` also means files in directories there. In CODEOWNERS it does not.
    """
    inner = pattern.strip("/")
    names = [_compile_path_name(name) for name in re.split(r"/+", inner)]
    is_folder = pattern.endswith("/")
    is_deep = names[-1] == _ANY_DEPTH
    if is_deep:  # everything below, at any depth
        names.pop()
    if is_deep and (is_folder or not names):
        names.append(_ANY_NAME)
    if not pattern.startswith("/") and "/" not in inner:
        names.insert(0, _ANY_DEPTH)
    takes_below = below_stars or is_folder or not inner.endswith("/*")
    return FilePattern(tuple(names), is_folder or (is_deep and inner != _ANY_DEPTH), takes_below)


def _compile_path_name(name: str) -> str | re.Pattern[str]:
    if name == _ANY_DEPTH or not re.search(r"[*?\[\\]", name):
        return name
    plain = re.sub(r"\*+", "*", _QUOTED.sub(lambda found: f"[{found[1]}]", name))
    return re.compile(translate(plain))


@dataclass(frozen=True)
class OwnerLine:
    """A line of CODEOWNERS.

    Attributes:
        number: from 1.
        pattern: as it is written; `files` is its meaning.
        owners: accounts and addresses as they are written; none means that nobody owns the files.
    """

    number: int
    pattern: str
    files: FilePattern
    owners: tuple[str, ...]


def read_owner_lines(text: str) -> list[OwnerLine]:
    """Lists the lines of a CODEOWNERS file that GitHub follows, in their order."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words: list[str] = []
        for word in _WORD.findall(line):
            if word.startswith("#"):
                break
            words.append(word)
        # GitHub skips a line with syntax that CODEOWNERS does not have.
        if words and not words[0].startswith("!") and "[" not in words[0]:
            files = read_pattern(words[0], below_stars=False)
            found.append(OwnerLine(number, words[0], files, tuple(words[1:])))
    return found


def find_owner_line(lines: Sequence[OwnerLine], path: str) -> OwnerLine | None:
    """Finds the line that counts for a file: the last one that matches; None if none does."""
    return next((line for line in reversed(lines) if line.files.matches(path)), None)
