"""The name of an environment: made, parsed and judged here and nowhere else. Fast to import.

A name decides which views are written and which are dropped, and SQLMesh rewrites the names that it
gets: `PROD` becomes prod, and `pr 7` becomes `pr_7`. So both processes judge a name in SQLMesh's
spelling before anything is opened; and no `EnvironmentName` is prod.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from ci_bot.protocol.reasons import OF_THE_WORKER

if TYPE_CHECKING:
    from ci_bot.protocol.base import Failure

PROD_HINT = "Name another environment; prod is changed with `sqlmesh plan`."
_LETTERS_HINT = "Use the letters a to z, digits and `_`."
PROD = "prod"
DEFAULT_PREFIX = "pr"
# Hive's metastore allows 128 characters for a database, whose name is `<schema>__<environment>`.
MOST_CHARACTERS = 100
_NAME = re.compile(r"[a-z0-9_]+")
_PREFIX = re.compile(r"[a-z][a-z0-9_]{0,30}")
# A number has one spelling: `007` and digits of other scripts name no pull request.
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_SHOWN = 60
_BAD_INPUT, _REFUSED = 2, 3


class UnfitEnvironmentName(Exception):
    """A name that must not be used, in words for the person who gave it.

    Not a ValueError, so that pydantic lets it through as it is.
    """

    def __init__(
        self,
        message: str,
        hint: str,
        *,
        reason_code: str = "bad_environment",
        exit_code: int = _BAD_INPUT,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.reason_code = reason_code
        self.exit_code = exit_code

    def make_failure(self, stage: str) -> Failure:
        """Returns the same for a document."""
        from ci_bot.protocol.base import Failure

        return Failure(
            stage=stage,
            reason_code=self.reason_code,
            exit_code=self.exit_code,
            message=self.message,
            hint=self.hint,
        )


class EnvironmentName(str):
    """A name that SQLMesh and Spark take as it is, and that is not prod.

    Raises:
        UnfitEnvironmentName: it is prod in some spelling (exit 3), or SQLMesh or Spark would not
            take it as it is (exit 2).
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        _check_environment_name(text)
        return super().__new__(cls, text)

    @classmethod
    def for_pull_request(cls, prefix: str, number: int) -> Self:
        """Makes the name for a pull request: never from a branch or a title.

        Args:
            number: 0 for a review without a pull request (merge queue), which is never applied.
        """
        return cls(f"{prefix}_{int(number)}")

    def pull_request_number(self, prefix: str) -> int | None:
        """Returns the pull request that this environment is of; None if the name is not one's."""
        found = _NUMBER.fullmatch(self.removeprefix(f"{prefix}_"))
        return int(found[0]) if found and self.startswith(f"{prefix}_") else None

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


def normalize_environment_name(text: str) -> str:
    """Returns the name that SQLMesh makes of a text (`EnvironmentNamingInfo.sanitize_name`)."""
    return re.sub(r"\W", "_", text).lower()


def is_name_of_prod_environment(text: str) -> bool:
    """Whether SQLMesh, or the person who typed it, means prod by a name."""
    return PROD in (normalize_environment_name(text), normalize_environment_name(text.strip()))


def read_pull_number(text: str, prefix: str) -> int | None:
    """Reads the pull request's number from an environment's name, which may be any text."""
    try:
        return EnvironmentName(text).pull_request_number(prefix)
    except UnfitEnvironmentName:
        return None


def parse_environment_prefix(text: str, number: int) -> str | None:
    """Returns the prefix in the name of this pull request's environment; None if it is not one."""
    prefix = text.removesuffix(f"_{number}")
    return (
        prefix
        if is_environment_prefix(prefix) and read_pull_number(text, prefix) == number
        else None
    )


def is_environment_prefix(text: str) -> bool:
    """Whether environments of pull requests may be called `<text>_<number>`."""
    return _PREFIX.fullmatch(text) is not None


def parse_review_environment(text: str) -> EnvironmentName:
    """Parses the environment of a review.

    Raises:
        UnfitEnvironmentName: exit 2 in every case, because a review would touch nothing.
    """
    if is_name_of_prod_environment(text):
        raise UnfitEnvironmentName(
            f"{_quote_environment_name(text)} means prod, which every review compares with: it is "
            "not reviewed itself.",
            "Leave `--environment` out, or name the environment that would be built.",
        )
    return EnvironmentName(text)


def parse_apply_environment(text: str, *, prefix: str, number: int | None) -> EnvironmentName:
    """Parses the environment of an apply.

    Args:
        number: The pull request that it is built for; None on a laptop, where a person may build
            any environment except prod.

    Raises:
        UnfitEnvironmentName: exit 3 for prod and for a name that is not this pull request's.
    """
    name = EnvironmentName(text)
    if number is not None and name.pull_request_number(prefix) != number:
        raise _make_other_pull_error(
            f"{_quote_environment_name(text)} is not the environment of pull request #{number}, "
            "so it is not built.",
            prefix,
        )
    return name


def parse_cleanup_environment(text: str, *, prefix: str, number: int | None) -> EnvironmentName:
    """Parses the environment of a cleanup: a pull request's, also on a laptop.

    Raises:
        UnfitEnvironmentName: exit 3 for a name that is not a pull request's.
    """
    _check_length(text)
    found = read_pull_number(text, prefix)
    if found is None or number not in (None, found):
        whose = "a PR environment" if number is None else f"the environment of #{number}"
        raise _make_other_pull_error(
            f"{_quote_environment_name(text)} is not the name of {whose}, so it is not removed.",
            prefix,
            _describe_other_removal(text) if number is None else "",
        )
    return EnvironmentName(text)


def _describe_other_removal(text: str) -> str:
    """Says how a person removes an environment of no pull request; "" for prod and odd names."""
    try:
        name = EnvironmentName(text)
    except UnfitEnvironmentName:
        return ""
    command = f"sqlmesh invalidate {name} --sync"
    return f" To remove this one, run `{command}`: it drops its schemas and all in them."


def check_claim_of_environment(*, claim: bool, number: int | None) -> None:
    """Checks that a person claims an environment, and not a workflow.

    Raises:
        UnfitEnvironmentName: exit 3.
    """
    if claim and number is not None:
        raise UnfitEnvironmentName(
            "A workflow cannot claim an environment.",
            "A person can, on a machine with rights on the state database.",
            reason_code="claim",
            exit_code=_REFUSED,
        )


def check_environment_prefix(text: str) -> str:
    """Returns a prefix as it was given, if it is one.

    Raises:
        UnfitEnvironmentName: exit 2.
    """
    if not is_environment_prefix(text):
        raise UnfitEnvironmentName(
            f"{_quote_environment_name(text)} is no prefix for the names of environments.",
            "Use a lower-case letter, then at most 30 lower-case letters, digits and `_`.",
            reason_code="bad_prefix",
        )
    return text


def _check_environment_name(text: str) -> None:
    _check_length(text)
    if is_name_of_prod_environment(text):
        meant = "" if text == PROD else f"{_quote_environment_name(text)} means prod, and "
        raise UnfitEnvironmentName(
            f"{meant}{OF_THE_WORKER['prod']}.",
            PROD_HINT,
            reason_code="prod",
            exit_code=_REFUSED,
        )
    if _NAME.fullmatch(text):
        return
    proposed = normalize_environment_name(text)
    if proposed == text:
        raise UnfitEnvironmentName(
            f"Spark takes no schema with {_quote_environment_name(text)} in its name.",
            _LETTERS_HINT,
        )
    raise UnfitEnvironmentName(
        f"{_quote_environment_name(text)} is not the name of an environment: SQLMesh would make "
        f"{_quote_environment_name(proposed)} of it.",
        f"Write {_quote_environment_name(proposed)}, if that is what you mean."
        if _NAME.fullmatch(proposed)
        else _LETTERS_HINT,
    )


def _check_length(text: str) -> None:
    if not text.strip():
        raise UnfitEnvironmentName(
            "The environment's name is empty.",
            "Give one, such as `pr_17`: lower-case letters, digits and `_`.",
        )
    if len(text) > MOST_CHARACTERS:
        raise UnfitEnvironmentName(
            f"The environment's name {_quote_environment_name(text)} has {len(text)} characters.",
            f"Give one of at most {MOST_CHARACTERS}: it is a part of the names of schemas.",
        )


def _make_other_pull_error(message: str, prefix: str, otherwise: str = "") -> UnfitEnvironmentName:
    return UnfitEnvironmentName(
        message,
        f"PR environments are called {prefix}_<number of the PR>.{otherwise}",
        reason_code="not_a_pr_environment",
        exit_code=_REFUSED,
    )


def _quote_environment_name(text: str) -> str:
    """Quotes a name for a sentence: in code marks, on one line, cut if it is too long."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text).replace("`", "'")
    return f"`{plain[:_SHOWN]}{'…' if len(plain) > _SHOWN else ''}`"
