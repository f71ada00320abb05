"""`ci-bot same` at a terminal: do two queries give the same?"""

from __future__ import annotations

from pathlib import Path

from ci_bot.bot.laptop.session import open_local_client, read_origin_url
from ci_bot.bot.report import Format, make_screen, render_compared_queries
from ci_bot.bot.worker_client import make_error_of_failure, make_owner, run_owner
from ci_bot.errors import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, BadInput
from ci_bot.host import Machine
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import SameRequest
from ci_bot.redaction import quote_value

# As many characters as a query that execution runs.
LARGEST_QUERY = 200_000
_EXIT_CODES = {"same": EXIT_DONE, "differs": EXIT_FAILED, "not_known": EXIT_REFUSED}


def compare_locally(
    machine: Machine,
    *,
    base: str,
    head: str,
    schema: str | None,
    timeout_minutes: int,
    form: Format,
) -> int:
    """`ci-bot same`. Returns 0 if both give the same, 1 if they differ, and 3 if it is not known.

    Raises:
        BadInput: a file is missing, is too large, or holds no query.
    """
    texts = {path: _read_text(machine.directory / path, path) for path in (base, head)}
    schema_text = _read_text(machine.directory / schema, schema) if schema is not None else None
    with open_local_client(
        machine, (".",), None, "", (), timeout_minutes=timeout_minutes
    ) as client:
        request = client.make_request(
            SameRequest,
            owner=make_owner(run_owner(None, read_origin_url(client))),
            before=texts[base],
            after=texts[head],
            before_name=base,
            after_name=head,
            schema_text=schema_text,
            schema_name=schema,
        )
        answer = client.request_same(request)
    if isinstance(answer, Failure):
        raise make_error_of_failure(answer)
    if form == "json":
        text = answer.to_json(indent=2) + "\n"
    else:
        text = render_compared_queries(answer, make_screen(machine))
    print(text, file=machine.out, end="", flush=True)
    return _EXIT_CODES[answer.verdict]


def _read_text(path: Path, given: str) -> str:
    # No character takes more than four bytes.
    most_bytes = 4 * LARGEST_QUERY
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
        text = content.decode("utf-8-sig") if len(content) <= most_bytes else None
    except OSError as error:
        raise _make_unfit_file_error(
            given, (error.strerror or "it cannot be opened").lower()
        ) from error
    except UnicodeDecodeError as error:
        raise _make_unfit_file_error(given, "it is no text in UTF-8") from error
    if text is None or len(text) > LARGEST_QUERY:
        raise _make_unfit_file_error(given, f"it has more than {LARGEST_QUERY:,} characters")
    return text


def _make_unfit_file_error(given: str, why: str) -> BadInput:
    return BadInput(
        f"{quote_value(given)} cannot be read: {why}.",
        hint="`ci-bot same BASE.sql HEAD.sql` compares the queries of two files.",
    )
