"""Comment commands: from a pull request comment to what its author asks for. Pure.

The grammar, for the comment's first line only:

    /sqlmesh plan
    /sqlmesh apply <plan-id> [--override "reason"] [--probe]
    /sqlmesh estimate
    /sqlmesh accept <rule> <model> "reason"
    /sqlmesh restate <model> [<start> [<end>]] "reason"
    /sqlmesh restate <model> off
    /sqlmesh cleanup
    /sqlmesh status
    /sqlmesh help

`/sqlmesh` and the verb may be written in capitals, with up to three blanks before them: more blanks
make the line a block of code. The job-level `if` of the example workflow checks the same characters
(`startsWith` also ignores case). So a comment that only mentions a command never starts a job, and
one that starts a job gets its answer. The lines below the first are free text for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

PREFIX = "/sqlmesh"
LONGEST_LINE = 1_000
LONGEST_REASON = 300

# ASCII: a letter that only looks like one of these, or has one as its lower case, is no beginning.
_BEGINNING = re.compile(rf" {{0,3}}{PREFIX}", re.IGNORECASE | re.ASCII)
_RULE = re.compile(r"[A-Za-z0-9-]{1,100}")
_OTHER_BLANK = "A blank in the line is not an ordinary one. Type it again."
_ACCEPTED = 3  # words after the verb
# The number of words after the verb: a model, at most two dates, and the reason.
_RESTATED = range(2, 5)
_LONGEST_DATE = 40
# The last word is the reason. If somebody forgets it, a date must not count as the reason: then
# prod would build all of history.
_DATE = re.compile(r"[\d\s:.TZ+-]+|today|yesterday|now|.* ago", re.IGNORECASE | re.ASCII)
_PLAN_ID = re.compile(r"[0-9a-f]{8,64}")
# A word, or text in double quotes; phones replace straight quotes by typographic ones.
_TOKEN = re.compile(r'[ \t]*(?:["“”](?P<quoted>[^"“”]*)["“”]|(?P<word>[^\s"“”]+))(?=[ \t]|\Z)')


@dataclass(frozen=True)
class PlanCommand:
    """The command to plan this pull request again."""

    verb: Literal["plan"] = "plan"


@dataclass(frozen=True)
class ApplyCommand:
    """The command to apply the plan of this id (8 to 64 hexadecimal digits, lower case).

    A comment names an id. A person who starts the workflow need not; then the plan in the bot's
    comment counts. `override` is the reason to apply in spite of a No-Go. With `probe` it builds
    the newest batch of models, says what the whole plan will cost, and stops.
    """

    plan_id: str | None = None
    override: str | None = None
    probe: bool = False
    verb: Literal["apply"] = "apply"


@dataclass(frozen=True)
class EstimateCommand:
    """The command to say what building the reviewed plan will cost; it builds nothing."""

    verb: Literal["estimate"] = "estimate"


@dataclass(frozen=True)
class AcceptCommand:
    """The command to accept the findings of a rule on a model, as its owner, for a reason."""

    rule: str
    model: str
    reason: str
    verb: Literal["accept"] = "accept"


@dataclass(frozen=True)
class RestateCommand:
    """The command to let prod build a model again after the merge, as its owner, for a reason.

    `start` and `end` are dates as SQLMesh reads them. Without a reason, the restatement is taken
    back.
    """

    model: str
    start: str | None = None
    end: str | None = None
    reason: str | None = None
    verb: Literal["restate"] = "restate"


@dataclass(frozen=True)
class CleanupCommand:
    """The command to remove this pull request's environment."""

    verb: Literal["cleanup"] = "cleanup"


@dataclass(frozen=True)
class StatusCommand:
    """The command to say what the environment and the last plan are."""

    verb: Literal["status"] = "status"


@dataclass(frozen=True)
class HelpCommand:
    """The command to explain the commands; `problem` says, in our words, what was wrong."""

    problem: str | None = None
    verb: Literal["help"] = "help"


CommandLine = (
    PlanCommand
    | ApplyCommand
    | EstimateCommand
    | AcceptCommand
    | RestateCommand
    | CleanupCommand
    | StatusCommand
    | HelpCommand
)

USAGE = (
    "/sqlmesh plan",
    '/sqlmesh apply <plan-id> [--override "reason"] [--probe]',
    "/sqlmesh estimate",
    '/sqlmesh accept <rule> <model> "reason"',
    '/sqlmesh restate <model> [<start> [<end>]] "reason"',
    "/sqlmesh restate <model> off",
    "/sqlmesh cleanup",
    "/sqlmesh status",
    "/sqlmesh help",
)


def parse_comment_command(body: str) -> CommandLine | None:  # noqa: PLR0911 - one return per rule
    """Parses the command in a comment's first line; None if the comment is no command.

    A line that starts like a command but is none gives `HelpCommand`, so that its author gets an
    answer. The named problem repeats no text of the comment, because that is untrusted.
    """
    line = find_first_line_of_comment_command(body)
    beginning = _BEGINNING.match(line)
    if beginning is None:
        return None
    given = line[beginning.end() :]
    if given and given[0] not in " \t":
        # For example no-break spaces, which phones and word processors write: nobody can see the
        # fault.
        return None if given[0].isprintable() else HelpCommand(_OTHER_BLANK)
    if len(line) > LONGEST_LINE:
        return HelpCommand(f"The line is longer than {LONGEST_LINE} characters.")
    tokens = _split_tokens(given)
    if tokens is None:
        if any(not letter.isprintable() and letter != "\t" for letter in given):
            return HelpCommand(_OTHER_BLANK)
        return HelpCommand("A quote is not closed, or is in the middle of a word.")
    if not tokens:
        return HelpCommand()
    verb, *rest = tokens
    verb = verb.lower()
    if verb in _WITH_ARGUMENTS:
        return _WITH_ARGUMENTS[verb](rest)
    simple: dict[str, CommandLine] = {
        "plan": PlanCommand(),
        "estimate": EstimateCommand(),
        "cleanup": CleanupCommand(),
        "status": StatusCommand(),
        "help": HelpCommand(),
    }
    if verb not in simple:
        return HelpCommand("This verb is not known.")
    if rest and verb != "help":
        return HelpCommand(f"`{PREFIX} {verb}` takes no arguments.")
    return simple[verb]


def find_first_line_of_comment_command(body: str) -> str:
    """Returns a comment's first line, without line end (GitHub sends CR LF) and trailing blanks."""
    return re.split(r"[\r\n]", body, maxsplit=1)[0].rstrip(" \t")


def _parse_apply_command(tokens: list[str]) -> ApplyCommand | HelpCommand:  # noqa: PLR0911 - one return per rule
    plan_id: str | None = None
    override: str | None = None
    probe = False
    words = iter(tokens)
    for word in words:
        if word == "--override" or word.startswith("--override="):
            if override is not None:
                return HelpCommand("`--override` stands twice.")
            text = next(words, "") if word == "--override" else word.removeprefix("--override=")
            override = _make_visible_line(text)
            if not override or override.startswith("--"):
                return HelpCommand('`--override` needs a reason: `--override "why"`.')
            if len(override) > LONGEST_REASON:
                return HelpCommand(f"The reason is longer than {LONGEST_REASON} characters.")
        elif word == "--probe":
            if probe:
                return HelpCommand("`--probe` stands twice.")
            probe = True
        elif word.startswith("-"):
            return HelpCommand("`/sqlmesh apply` knows two options: `--override` and `--probe`.")
        elif plan_id is not None:
            return HelpCommand(
                "`/sqlmesh apply` takes one plan id; a reason with blanks needs quotes."
            )
        else:
            plan_id = word.strip("`").lower()
            if not _PLAN_ID.fullmatch(plan_id):
                return HelpCommand(
                    "A plan id has 8 to 64 hexadecimal digits; reports show 12 of them."
                )
    if plan_id is None:
        return HelpCommand("`/sqlmesh apply` needs the id of the plan, as the report shows it.")
    return ApplyCommand(plan_id, override, probe)


def _parse_accept_command(tokens: list[str]) -> AcceptCommand | HelpCommand:
    if len(tokens) != _ACCEPTED:
        return HelpCommand("`/sqlmesh accept` takes a rule, a model and a reason in quotes.")
    rule, model, reason = tokens[0].strip("`"), tokens[1].strip("`"), _make_visible_line(tokens[2])
    if not _RULE.fullmatch(rule):
        return HelpCommand(
            "The id of a rule is made of letters, digits and hyphens, as reports show it."
        )
    if not model or not model.isprintable():
        return HelpCommand("`/sqlmesh accept` needs the name of the model, as reports show it.")
    if not reason:
        return HelpCommand('`/sqlmesh accept` needs a reason: `"why"`.')
    if len(reason) > LONGEST_REASON:
        return HelpCommand(f"The reason is longer than {LONGEST_REASON} characters.")
    return AcceptCommand(rule, model, reason)


def _parse_restate_command(tokens: list[str]) -> RestateCommand | HelpCommand:  # noqa: PLR0911 - one return per rule
    if len(tokens) not in _RESTATED:
        return HelpCommand(
            "`/sqlmesh restate` takes a model, a start and an end if not all of it is meant, and "
            "a reason in quotes; `off` instead takes it back."
        )
    model, *dates, last = tokens
    model = model.strip("`")
    if not model or not model.isprintable():
        return HelpCommand("`/sqlmesh restate` needs the name of the model, as reports show it.")
    if last.lower() == "off":
        if dates:
            return HelpCommand("`/sqlmesh restate <model> off` takes no dates.")
        return RestateCommand(model)
    reason = _make_visible_line(last)
    if not reason or _DATE.fullmatch(reason):
        return HelpCommand('`/sqlmesh restate` ends with a reason: `"why"`.')
    if len(reason) > LONGEST_REASON:
        return HelpCommand(f"The reason is longer than {LONGEST_REASON} characters.")
    if any(
        len(date) > _LONGEST_DATE or not date.strip() or not date.isprintable() for date in dates
    ):
        return HelpCommand('A date is written as 2024-01-31, or in words as `"1 week ago"`.')
    start, end = [*dates, None, None][:2]
    return RestateCommand(model, start, end, reason)


_WITH_ARGUMENTS: dict[str, Callable[[list[str]], CommandLine]] = {
    "apply": _parse_apply_command,
    "accept": _parse_accept_command,
    "restate": _parse_restate_command,
}


def _make_visible_line(text: str) -> str:
    """Returns the text as one line, without characters that reorder or hide others."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()


def _split_tokens(text: str) -> list[str] | None:
    """Splits a line into words; quotes keep several together. None if a quote is not closed."""
    tokens: list[str] = []
    position, text = 0, text.rstrip(" \t")
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append(match["word"] if match["quoted"] is None else match["quoted"])
        position = match.end()
    return tokens
