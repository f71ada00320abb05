"""CODEOWNERS: whose approval GitHub asks for, before and after.
(https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_bot.worker.rules.files.deployment_texts import match_pattern
from ci_bot.worker.rules.files.deployment_yaml import Difference

# Pattern and owners, in the order of the file: the last that matches counts.
_Line = tuple[str, frozenset[str]]


# So often a pattern is held against a file; a file with more lines is for a person.
MOST_COMPARISONS = 2_000_000
_NOBODY: _Line = ("", frozenset())


def list_owner_differences(before: str, after: str, files: Sequence[str]) -> Iterator[Difference]:
    """Owners who are asked about less than before, by lines that go or that others win over."""
    old, new = _read_lines(before), _read_lines(after)
    if (len(old) + len(new)) * len(files) > MOST_COMPARISONS:
        if old != new:
            yield Difference("", "It has so many lines that nobody compared what each owner loses")
        return
    added = [line for line in new if line not in old]
    owned_before: set[str] = set()
    owned_after: set[str] = set()
    lost: dict[str, str] = {}
    for path in files:
        was, now = _find_line(old, path), _find_line(new, path)
        owned_before |= was[1]
        owned_after |= now[1]
        # A new line that names somebody else hands these files over, in plain sight.
        handed_over = now in added and now[1]
        for owner in was[1] - now[1]:
            if not handed_over:
                lost.setdefault(owner, path)
    for owner in owned_before - owned_after:
        lost.setdefault(owner, "any file")
    for owner, path in sorted(lost.items()):
        yield Difference(
            owner,
            f"{owner} is no longer asked about `{path}`: the last line that matches a file counts",
        )


def _read_lines(text: str) -> list[_Line]:
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [(words[0], frozenset(words[1:])) for words in lines if words]


def _find_line(lines: Sequence[_Line], path: str) -> _Line:
    return next(
        (line for line in reversed(lines) if match_pattern(line[0], path, below_stars=False)),
        _NOBODY,
    )
