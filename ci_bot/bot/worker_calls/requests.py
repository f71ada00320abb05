"""A question to the worker that cannot be put is a wrong input, whoever gave it and however."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from ci_bot.errors import BadInput
from ci_bot.secrets.cutting import quoted_value


@contextmanager
def checked() -> Iterator[None]:
    """Goes around the making of every question (`ReviewRequest` and the others) and of its parts.

    Raises:
        BadInput: a value does not fit the contract; one sentence names each that does not.
    """
    try:
        yield
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        problems = [
            f"`{'.'.join(str(part) for part in item['loc']).replace('_', '-')}` cannot be "
            f"{quoted_value(str(item['input']))}: {item['msg'][:1].lower()}{item['msg'][1:]}"
            for item in details[:_MOST_SHOWN]
        ]
        raise BadInput(
            f"The worker cannot be asked: {'; '.join(problems)}.",
            hint="Correct the value. Nothing was touched.",
        ) from None


_MOST_SHOWN = 5
