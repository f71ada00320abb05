"""CODEOWNERS: whose approval GitHub asks for, before and after.
(https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_bot.file_patterns import OwnerLine, find_owner_line, read_owner_lines
from ci_bot.worker.rules.files.deployment_yaml import Difference

# So often a pattern is held against a file; a file with more lines is for a person.
MOST_COMPARISONS = 2_000_000


def list_owner_differences(before: str, after: str, files: Sequence[str]) -> Iterator[Difference]:
    """Owners who are asked about less than before, by lines that go or that others win over."""
    old, new = read_owner_lines(before), read_owner_lines(after)
    if (len(old) + len(new)) * len(files) > MOST_COMPARISONS:
        if _list_words(old) != _list_words(new):
            yield Difference("", "It has so many lines that nobody compared what each owner loses")
        return
    known = _list_words(old)
    owned_before: set[str] = set()
    owned_after: set[str] = set()
    lost: dict[str, str] = {}
    for path in files:
        was, now = find_owner_line(old, path), find_owner_line(new, path)
        owners = [set(line.owners) if line is not None else set() for line in (was, now)]
        owned_before |= owners[0]
        owned_after |= owners[1]
        # A new line that names somebody else hands these files over, in plain sight.
        if now is not None and now.owners and (now.pattern, now.owners) not in known:
            continue
        for owner in owners[0] - owners[1]:
            lost.setdefault(owner, path)
    for owner in owned_before - owned_after:
        lost.setdefault(owner, "any file")
    for owner, path in sorted(lost.items()):
        yield Difference(
            owner,
            f"{owner} is no longer asked about `{path}`: the last line that matches a file counts",
        )


def _list_words(lines: Sequence[OwnerLine]) -> list[tuple[str, tuple[str, ...]]]:
    return [(line.pattern, line.owners) for line in lines]
