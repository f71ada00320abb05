"""What becomes of a request whose environment has a name that must not be used."""

from __future__ import annotations

from ci_bot.contracts.base import Failure
from ci_bot.contracts.environment import UnfitName
from ci_bot.errors import EXIT_REFUSED, BadInput


def refused(error: UnfitName, stage: str) -> Failure:
    """The failure for a document, where the request is understood and refused.

    Raises:
        BadInput: the name, or its prefix, is none.
    """
    if error.exit_code != EXIT_REFUSED:
        raise bad_input(error) from error
    return error.failure(stage)


def bad_input(error: UnfitName) -> BadInput:
    """The same as an error of ours."""
    return BadInput(error.message, hint=error.hint, reason_code=error.reason_code)
