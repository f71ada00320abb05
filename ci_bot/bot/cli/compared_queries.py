"""Two versions of a query at a terminal: `ci-bot same` says whether they give the same rows.

`ci-bot witness` makes a SQLMesh unit test from rows on which a changed model's versions differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ci_bot.bot.cli.local_review import LaptopReview, make_report_on_laptop
from ci_bot.bot.cli.session import (
    make_owner_on_laptop,
    make_relative_projects,
    open_worker_client_on_laptop,
)
from ci_bot.bot.report import Format, make_screen, render_compared_queries
from ci_bot.bot.worker_client import make_error_of_worker_failure
from ci_bot.errors import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, BadInput, RequestRefused
from ci_bot.host import Machine
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import SameRequest
from ci_bot.protocol.review_inputs import ModelExecution
from ci_bot.protocol.review_report import Report
from ci_bot.redaction import quote_value

# The limit of the queries that the worker executes.
LARGEST_QUERY = 200_000
_EXIT_CODES = {"same": EXIT_DONE, "differs": EXIT_FAILED, "not_known": EXIT_REFUSED}


def compare_queries_on_laptop(
    machine: Machine,
    *,
    base: str,
    head: str,
    schema: str | None,
    timeout_minutes: int,
    form: Format,
) -> int:
    """`ci-bot same`. Returns 0 if both give the same, 1 if they differ, and 3 if nobody knows.

    Raises:
        BadInput: a file is missing, is too large, or holds no query.
    """
    texts = {path: _read_query_file(machine.directory / path, path) for path in (base, head)}
    schema_text = (
        _read_query_file(machine.directory / schema, schema) if schema is not None else None
    )
    with open_worker_client_on_laptop(
        machine, (".",), None, "", (), timeout_minutes=timeout_minutes
    ) as client:
        request = client.make_request(
            SameRequest,
            owner=make_owner_on_laptop(client),
            before=texts[base],
            after=texts[head],
            before_name=base,
            after_name=head,
            schema_text=schema_text,
            schema_name=schema,
        )
        answer = client.request_same(request)
    if isinstance(answer, Failure):
        raise make_error_of_worker_failure(answer)
    if form == "json":
        text = answer.to_json(indent=2) + "\n"
    else:
        text = render_compared_queries(answer, make_screen(machine))
    print(text, file=machine.out, end="", flush=True)
    return _EXIT_CODES[answer.verdict]


def _read_query_file(path: Path, given: str) -> str:
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


_NAMED = 5
# Reason codes for which there is no base branch to compare with.
_NO_BASE = ("no_commit", "no_base", "dbt_project")
_PRINTED = "Without `--write` the test is printed."


def make_witness_test_on_laptop(
    machine: Machine, local_review: LaptopReview, *, model: str, write: bool
) -> int:
    """Prints or writes a unit test that passes with the change and fails without it.

    Args:
        local_review: the review that finds the example.
        model: the changed model.
        write: whether the test is written into its file, which must not exist yet.

    Raises:
        BadInput: the model is not changed, or the file exists already.
        RequestRefused: no such test is known; the message says why.
    """
    report = _review_against_base(machine, local_review)
    if report.failure is not None:
        raise make_error_of_worker_failure(report.failure)
    one = _find_execution(report.executions, model)
    if one is None:
        raise BadInput(
            f"The change edits no query of a model {quote_value(model)}.",
            hint=_describe_models_with_changed_query(known.model for known in report.executions),
        )
    if one.witness is None:
        raise RequestRefused(
            f"There is no unit test that tells both versions of `{one.model}` apart: "
            f"{_explain_absent_witness(one)}.",
            hint="`ci-bot review --full` shows what is known of the change.",
        )
    witness = one.witness
    if not write:
        print(f"# {witness.path}\n{witness.text}", file=machine.out, end="", flush=True)
        return EXIT_DONE
    path = _find_project_of_model(report, one.model, local_review, machine) / witness.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(witness.text)
    except FileExistsError as error:
        raise BadInput(
            f"{quote_value(str(path))} is there already, and nothing is overwritten.",
            hint=_PRINTED,
        ) from error
    except OSError as error:
        raise BadInput(
            f"{quote_value(str(path))} cannot be written: {(error.strerror or '').lower()}.",
            hint=_PRINTED,
        ) from error
    print(f"Written: {path}", file=machine.out, flush=True)
    return EXIT_DONE


def _review_against_base(machine: Machine, local_review: LaptopReview) -> Report:
    """Reviews against the base branch, on which the test has to fail.

    `auto` would ask the state first, and review a second time if it has no prod. It is used for a
    project that cannot be compared with a base branch.
    """
    try:
        return make_report_on_laptop(machine, replace(local_review, baseline="base-branch"))
    except BadInput as error:
        if error.reason_code not in _NO_BASE:
            raise
    return make_report_on_laptop(machine, local_review)


def _find_execution(executions: Iterable[ModelExecution], model: str) -> ModelExecution | None:
    """Finds the model's execution; letter case, quotes and leading names may differ."""
    wanted = _normalize_typed_name(model)
    by_name = {_normalize_typed_name(one.model): one for one in executions}
    if wanted in by_name:
        return by_name[wanted]
    longer = [
        one
        for name, one in by_name.items()
        if name.endswith(f".{wanted}") or wanted.endswith(f".{name}")
    ]
    return longer[0] if len(longer) == 1 else None


def _normalize_typed_name(name: str) -> str:
    return name.lower().replace("`", "").replace('"', "")


def _explain_absent_witness(one: ModelExecution) -> str:
    if one.no_witness is not None:
        return one.no_witness
    if one.result == "alike":
        return f"they gave the same on {one.data_sets} generated data sets"
    return f"it was not tried on both versions: {one.reason or one.result}"


def _describe_models_with_changed_query(models: Iterable[str]) -> str:
    named = [f"`{name}`" for name in models]
    if not named:
        return "The change edits no query."
    return f"Models with a changed query: {', '.join(sorted(named)[:_NAMED])}."


def _find_project_of_model(
    report: Report, model: str, review: LaptopReview, machine: Machine
) -> Path:
    """Returns the directory of the project that holds the model's file."""
    root, projects = make_relative_projects(review.projects, machine.directory)
    paths = [change.path for change in report.changes if change.model == model and change.path]
    for path in paths:
        for project in sorted(projects, key=len, reverse=True):
            if project == "." or PurePosixPath(path).is_relative_to(project):
                return root / project
    return root / projects[0]
