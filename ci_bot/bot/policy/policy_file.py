"""Reads the bytes of a policy file: into its entries, or one sentence with the wrong lines."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from pydantic import BaseModel, ValidationError

from ci_bot.bot.policy.document import (
    EVERY_RULE,
    IgnoreEntry,
    MessageEntry,
    PolicyEntry,
    PolicyFile,
    SeverityEntry,
)
from ci_bot.bot.policy.weighable_rules import PROTECTED, UNWEIGHED
from ci_bot.errors import BadInput
from ci_bot.yaml_reader import PositionedDocument, UnfitYaml, YamlPlace, read_plain_yaml

FILE_NAME = ".sqlmesh-review.yaml"
MOST_POLICY_BYTES = 64 * 1024
# An ignore without a near end would be the same as a rule that is off.
LONGEST_IGNORE = timedelta(days=366)
_MOST_SHOWN = 5
_HINT = "`ci-bot policy check` reads it on a laptop; docs/policy.md has every key."

# For people who write YAML, in place of pydantic's own texts.
_EXPECTED = {
    "list_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "at most {le:,g}",
    "too_short": "a list with something in it",
    "too_long": "a list of at most {max_length}",
    "string_too_long": "at most {max_length} characters long",
}

Problem = tuple[int, str]


class UnfitPolicy(BadInput):
    """The error for a policy file that cannot be used: exit 2, with the line."""

    reason_code = "bad_policy"


def read_policy(content: bytes, *, path: str, rules: Collection[str], today: date) -> PolicyFile:
    """Reads the entries of a file, each with its line.

    Args:
        path: Relative to the repository, for messages.
        rules: The ids of all rules.

    Raises:
        UnfitPolicy: it cannot be read, or has a key or value that is not known.
    """
    text = decode_policy_file(content, path)
    try:
        lines = read_plain_yaml(text)
    except UnfitYaml as error:
        raise make_unfit_policy(path, [(error.line, error.message)]) from error
    data = {} if lines.data is None else lines.data
    if not isinstance(data, dict):
        raise make_unfit_policy(path, [(1, "it must hold keys, such as `severity:`")])
    try:
        found = PolicyFile.model_validate(data)
    except ValidationError as error:
        raise make_unfit_policy(path, list_policy_problems(error, lines)) from error
    for name in (
        "severity",
        "ignore",
        "statements",
        "data_diff",
        "owners",
        "messages",
        "exposures",
    ):
        for position, entry in enumerate(getattr(found, name)):
            entry.found_at(path, lines.find_line_of_part((name.replace("_", "-"), position)))
    if found.trust is not None:
        found.trust.found_at(path, lines.find_line_of_part(("trust", "code-on-load")))
    wrong = [
        *_list_wrong_rules(found, lines, rules),
        *_list_expired_policy_entries(found.ignore, lines, today),
    ]
    if wrong:
        raise make_unfit_policy(path, wrong)
    return found


def make_unfit_policy(path: str, problems: Iterable[Problem]) -> UnfitPolicy:
    """Makes the error about some problems of a file."""
    every = sorted(set(problems))
    listed = "; ".join(f"line {line}: {text}" for line, text in every[:_MOST_SHOWN])
    more = len(every) - _MOST_SHOWN
    return UnfitPolicy(
        f"The policy `{path}` cannot be used: {listed}{f'; and {more} more' if more > 0 else ''}.",
        hint=_HINT,
        path=path,
        line=every[0][0],
    )


def decode_policy_file(content: bytes, path: str, *, at_most: int = MOST_POLICY_BYTES) -> str:
    """Returns a file as text.

    Raises:
        UnfitPolicy: it is too large, or not UTF-8.
    """
    if len(content) > at_most:
        fault = f"it has more than {at_most // 1024:,} KiB, which no policy needs"
        raise make_unfit_policy(path, [(1, fault)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise make_unfit_policy(path, [(line, "it is not UTF-8")]) from error


def list_policy_problems(error: ValidationError, lines: PositionedDocument) -> Iterator[Problem]:
    """Yields what does not fit, each with its line."""
    for item in error.errors(include_url=False):
        place: YamlPlace = tuple(item["loc"])
        yield lines.find_line_of_part(place), _describe_policy_problem(item, place)


def _describe_policy_problem(item: Any, place: YamlPlace) -> str:
    key = next((str(part) for part in reversed(place) if isinstance(part, str)), "")
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        return f"`{key}` is no key here{_find_near_name(key, _list_policy_keys_at(place))}"
    if kind == "missing":
        return f"`{key}` is missing"
    if kind == "literal_error":
        expected = str(context["expected"]).replace("'", "`")
        return f"`{key}` must be {expected}, and not {_quote_policy_value(item['input'])}"
    if kind == "value_error":
        reason = str(context["error"])
        return reason if reason.startswith("`") or "needs" in reason else f"`{key}` {reason}"
    if kind in ("model_type", "model_attributes_type"):
        return f"`{key}` must hold keys, and not {_quote_policy_value(item['input'])}"
    what = _EXPECTED.get(kind, str(item["msg"])[:1].lower() + str(item["msg"])[1:])
    return f"`{key}` must be {what.format(**context)}, and not {_quote_policy_value(item['input'])}"


def _quote_policy_value(value: Any) -> str:
    text = "".join(letter if letter.isprintable() else "?" for letter in str(value))
    return f"`{text[:60].replace('`', chr(39))}`"


def _list_policy_keys_at(place: YamlPlace) -> list[str]:
    """Lists the known keys at the place of the last key of `place`."""
    model: type[BaseModel] | None = PolicyFile
    for part in place[:-1]:
        if isinstance(part, str) and model is not None:
            model = _find_nested_policy_model(model, part)
    if model is None:
        return []
    return [str(field.alias or name) for name, field in model.model_fields.items()]


def _find_nested_policy_model(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    field = model.model_fields.get(key.replace("-", "_"))
    if field is None:
        return None
    for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _find_near_name(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=3)
    return f" (did you mean {' or '.join(f'`{one}`' for one in found)}?)" if found else ""


def _list_wrong_rules(
    found: PolicyFile, lines: PositionedDocument, rules: Collection[str]
) -> Iterator[Problem]:
    named: tuple[tuple[str, Sequence[SeverityEntry | IgnoreEntry | MessageEntry]], ...] = (
        ("severity", found.severity),
        ("ignore", found.ignore),
        ("messages", found.messages),
    )
    for key, entries in named:
        for position, entry in enumerate(entries):
            for item, rule in enumerate(entry.rule):
                line = lines.find_line_of_part((key, position, "rule", item))
                problem = _describe_wrong_rule(rule, entry, rules)
                if problem is not None:
                    yield line, problem


def _describe_wrong_rule(
    rule: str, entry: SeverityEntry | IgnoreEntry | MessageEntry, rules: Collection[str]
) -> str | None:
    if rule == EVERY_RULE:
        return None
    if rule not in rules:
        return f"there is no rule {_quote_policy_value(rule)}{_find_near_name(rule, rules)}"
    if isinstance(entry, MessageEntry):
        return None  # a message may be about any rule
    if rule in UNWEIGHED:
        return f"`{rule}` always has its own weight, because {UNWEIGHED[rule]}"
    if isinstance(entry, SeverityEntry) and rule in PROTECTED and entry.severity != "blocker":
        return (
            f"`{rule}` is not made lighter, because {PROTECTED[rule]}; ignore it for named models "
            "or paths until a day, or allow what a statement writes"
        )
    return None


def _list_expired_policy_entries(
    entries: Iterable[PolicyEntry], lines: PositionedDocument, today: date
) -> Iterator[Problem]:
    latest = today + LONGEST_IGNORE
    for position, entry in enumerate(entries):
        if isinstance(entry, IgnoreEntry) and entry.until > latest:
            yield (
                lines.find_line_of_part(("ignore", position, "until")),
                f"`until` is more than a year away; {latest.isoformat()} is the latest day",
            )
