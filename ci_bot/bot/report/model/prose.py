"""Sentences of our rules with untrusted names in them, readable and still inert.

A rule writes "drops column `segment` of `mart.orders`", and a model's name may hold anything, the
backtick included. So the sentence is not trusted: words of plain letters and ordinary numbers are
printed as they are, and every other token (`@team`, `#12`, `a.b`, `https://...`, a commit, a tag)
goes into a code span of its own. What stands between backticks stays together as one span.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ci_bot.bot.report.model import words
from ci_bot.bot.report.model.markdown_text import (
    ELLIPSIS,
    SafeMarkdown,
    clip_text,
    make_code_span,
    make_table_cell,
    one_line,
)
from ci_bot.protocol.base import short_plan_id
from ci_bot.protocol.review_report import ModelOwners, PolicyUsed, Risk, Weighed, find_owners
from ci_bot.protocol.team_markdown import fill_variables, find_unfit_part

_CLEARED = "cleared by the data diff"

# Latin letters only: right-to-left scripts would reorder our own text around them.
_LETTER = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"

_WORD = re.compile(rf"[{_LETTER}]{{1,40}}(?:['’-][{_LETTER}]{{1,40}}){{0,4}}|e\.g|i\.e")
# Seven digits in a row could be the short form of a commit.
_NUMBER = re.compile(
    r"[-+]?\d{1,6}(?:\.\d{1,6})?%?|[-+]?\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,6})?%?|\d{4}-\d{2}-\d{2}"
)

_COMMIT = re.compile(r"[0-9a-f]{7,40}")

_SYMBOLS = frozenset("–—→≈≥≤×±…·")

_TOKEN = re.compile(r"`([^`]+)`|([^\s`]+|`)|(\s+)")

_EDGES = re.compile(r"([(\"“]?)(.*?)([.,;:!?)\"”]*)", re.DOTALL)

_LIST_ITEM = re.compile(r"[-+]?\d{1,9}[.)]")


def render_prose(text: str, limit: int | None = None) -> SafeMarkdown:
    """A sentence outside of tables, at most `limit` characters of its text."""
    return _join_pieces(shorten_prose(text, limit), in_table=False)


def prose_cell(text: str, limit: int | None = None) -> SafeMarkdown:
    """A sentence in a table cell."""
    return _join_pieces(shorten_prose(text, limit), in_table=True)


def shorten_prose(text: str, limit: int | None = None) -> str:
    """`text` on one line, of at most `limit` characters: whole words, and no half of a span."""
    whole = one_line(text)
    if limit is None or len(whole) <= limit:
        return whole
    kept = whole[: max(limit - 2, 0)]
    if " " not in kept.strip():
        return clip_text(whole, limit)
    if not whole[len(kept)].isspace():
        kept = kept[: kept.rindex(" ")]
    if kept.count("`") % 2:
        kept = kept[: kept.rindex("`")]
    return f"{kept.rstrip(' ,;:(')} {ELLIPSIS}"


def _join_pieces(text: str, *, in_table: bool) -> SafeMarkdown:
    span = make_table_cell if in_table else make_code_span
    parts: list[str] = []
    for piece, is_code in _split_pieces(text):
        shown = span(piece, None) if is_code else piece
        # Two spans side by side would be one: their backticks join.
        if is_code and parts and parts[-1].endswith("`"):
            parts.append(" ")
        parts.append(shown)
    return SafeMarkdown("".join(parts).strip() or span("", None))


def _split_pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Parts of the sentence in order, each with whether it needs a code span."""
    for number, match in enumerate(_TOKEN.finditer(text.strip())):
        quoted, token, space = match.groups()
        if quoted is not None:
            yield quoted, True
        elif space is not None:
            yield " ", False
        elif number == 0 and _LIST_ITEM.fullmatch(token):
            yield token, True
        else:
            yield from _split_word(token)


def _split_word(token: str) -> Iterator[tuple[str, bool]]:
    if token in _SYMBOLS:
        yield token, False
        return
    before, core, after = _EDGES.fullmatch(token).groups()  # type: ignore[union-attr]  # it matches every text
    if core.count("(") > core.count(")") and after.startswith(")"):
        core, after = f"{core})", after[1:]
    if not core and not before and after[:1] in '!"':
        before, core, after = "", token, ""
    if before:
        yield before, False
    if core:
        plain = (_WORD.fullmatch(core) or _NUMBER.fullmatch(core)) and not _COMMIT.fullmatch(core)
        yield core, not plain
    if after:
        yield after, False


def render_team_words(
    text: str, plan: str | None, environment: str, decision: str | None
) -> SafeMarkdown:
    """A header or footer of the team as it stands in its policy, with its variables filled in.

    It was checked where the policy was read; what would not pass there now is shown as words.
    """
    if find_unfit_part(text) is not None:
        return render_prose(text)
    known = words.DECISIONS.get(decision or "", "")  # type: ignore[call-overload]  # any word
    values = {"plan": short_plan_id(plan), "environment": environment, "decision": known}
    return SafeMarkdown(fill_variables(text, values))


def render_team_message(text: str) -> SafeMarkdown:
    """What the team says of a finding: one line of Markdown, fit for the cell of a table."""
    fit = find_unfit_part(text, one_line=True) is None
    return SafeMarkdown(text) if fit else prose_cell(text)


# What a team's policy made of findings, in sentences. Names in them are not ours.


_ASIDE = (
    ("acceptance", "accepted by its owner"),
    ("data_diff", _CLEARED),
    ("ignore", "ignored by the policy"),
    ("off", "of a rule that is off"),
    ("statement", "allowed by the policy"),
    ("comment", "ignored by a comment in its model"),
)


def describe_weight(risk: Risk) -> str:
    """Why a finding weighs what it does; "" if that is its own weight."""
    weighed = risk.weighed
    return (
        "" if weighed is None else f"{_describe_how(weighed)}: {weighed.reason.removesuffix('.')}."
    )


def _describe_how(weighed: Weighed) -> str:
    return {
        "severity": f"By itself {weighed.weight}; `{weighed.place}` says otherwise",
        "off": f"The rule is off by `{weighed.place}`",
        "ignore": f"Ignored until {weighed.until} by `{weighed.place}`",
        "statement": f"Allowed by `{weighed.place}`",
        "comment": f"Ignored by the comment in `{weighed.place}`",
        "acceptance": f"Accepted by `@{weighed.who}` on {(weighed.at or '')[:10]}",
        "data_diff": _CLEARED.capitalize(),
    }[weighed.by]


def set_aside(risks: Sequence[Risk]) -> str:
    """How many findings took no part in the decision, and why; "" if there is none."""
    found: Counter[str] = Counter(risk.weighed.by for risk in risks if risk.weighed)
    return ", ".join(
        f"{words.format_number(found[by])} {phrase}" for by, phrase in _ASIDE if found[by]
    )


def may_accept(risks: Sequence[Risk], owners: Sequence[ModelOwners], command: str) -> str:
    """Who may accept the first of these findings, and how; "" if nobody owns its model."""
    for risk in risks:
        found = find_owners(owners, risk)
        if found is not None:
            names = " or ".join(f"`@{name}`" for name in (*found.logins, *found.teams))
            return (
                f"{names} may accept it, as an owner: "
                f'`{command} accept {risk.rule} {risk.model} "reason"`'
            )
    return ""


def describe_policy(used: PolicyUsed | None) -> str:
    """Which policy counted; "" if there is none."""
    if used is None:
        return ""
    files = " and ".join(f"`{path}`" for path in used.files)
    entries = words.format_count(used.entries, "entry")
    if used.source == "working_tree":
        return f"Policy: {files} as it lies here, because there is no base commit; {entries}."
    return f"Policy: {files} of the base commit `{(used.commit or '')[:7]}`; {entries}."
