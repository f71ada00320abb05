"""`-- review: ignore[rule] reason` in the SQL of a model: read as text, on both sides of a change.

A comment counts where the base branch has it already. One that a pull request adds would silence
that pull request's own alarm, so it does nothing there but to be told.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ci_bot.bot.policy.protected import PROTECTED, UNWEIGHED

LONGEST_REASON = 500
MOST_IN_A_FILE = 100
_COMMENT = re.compile(r"--[ \t]*review:[ \t]*ignore\[([^\]\r\n]{0,500})\][ \t:]*([^\r\n]*)")


@dataclass(frozen=True)
class IgnoreComment:
    """One rule that a comment names.

    Attributes:
        path, line: where it stands.
        reason: "" where it gives none, and then it does not count.
    """

    rule: str
    reason: str
    path: str
    line: int


@dataclass(frozen=True)
class IgnoreComments:
    """Of the files of a change: what counts, and what is new.

    Attributes:
        counting: stand on both sides.
        added: stand in the pull request's version only.
    """

    counting: tuple[IgnoreComment, ...] = ()
    added: tuple[IgnoreComment, ...] = ()

    def about(self, rule: str, path: str | None) -> IgnoreComment | None:
        """The comment that takes this rule's findings in a file out of the decision."""
        for item in self.counting:
            if item.rule == rule and item.path == path:
                return item
        return None


def in_text(text: str | None, path: str) -> Iterator[IgnoreComment]:
    """The comments of a file; none where there is no file."""
    for match in islice(_COMMENT.finditer(text or ""), MOST_IN_A_FILE):
        line = (text or "").count("\n", 0, match.start()) + 1
        reason = "".join(c if c.isprintable() else " " for c in match[2]).strip()
        reason = reason.removesuffix("*/").strip()[:LONGEST_REASON]
        for rule in filter(None, (name.strip() for name in match[1].split(","))):
            yield IgnoreComment(rule, reason, path, line)


def compared(
    files: Sequence[tuple[str, str | None, str | None]], rules: Container[str]
) -> IgnoreComments:
    """What counts of the comments in some files, and what a pull request adds.

    Args:
        files: path, and the text before and after the change; None where there is no such file.
        rules: all that there are.
    """
    counting: list[IgnoreComment] = []
    added: list[IgnoreComment] = []
    for path, before, after in files:
        known = {item.rule: item for item in in_text(before, path) if may_ignore(item, rules)}
        for item in in_text(after, path):
            if item.rule not in known:
                added.append(item)
            elif may_ignore(item, rules):
                counting.append(item)
    return IgnoreComments(tuple(counting), tuple(added))


def may_ignore(item: IgnoreComment, rules: Container[str]) -> bool:
    """Whether a comment can take anything out of a decision, once the base branch has it."""
    return why_not(item, rules) is None


def why_not(item: IgnoreComment, rules: Container[str]) -> str | None:
    """Why a comment will never count, as the end of a sentence; None where it will."""
    if not item.reason:
        return "it gives no reason"
    if item.rule not in rules:
        return "there is no such rule"
    if item.rule in UNWEIGHED:
        return UNWEIGHED[item.rule]
    if item.rule in PROTECTED:
        return f"{PROTECTED[item.rule]}; the policy can ignore it until a day"
    return None
