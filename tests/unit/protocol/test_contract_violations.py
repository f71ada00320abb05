"""A value that fits no contract never becomes a traceback, wherever it came from."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ci_bot
from ci_bot.bot.worker_client.failures import check_worker_request, make_error_of_worker_failure
from ci_bot.errors import BadInput
from ci_bot.protocol import messages
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import ApplyRequest, Owner, Workplace
from ci_bot.protocol.plan_identity import GivenFlags

REQUESTS = {
    name
    for name in vars(messages)
    if name.endswith("Request") and name not in ("_Request", "AnyRequest")
}
PLACE = Workplace(repository="/r", cache_dir="/c", scratch_dir="/s")


def ask(**changes: object) -> ApplyRequest:
    fields: dict[str, object] = {
        "projects": ["/r"],
        "workplace": PLACE,
        "owner": Owner(name="o"),
        "environment": "pr_1",
        **changes,
    }
    return ApplyRequest(**fields)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("gateway", "x" * 1_001, "and 941 more characters"),
        ("gateway", "", "`gateway` cannot be ''"),
        ("plan_id", "", "`plan-id` cannot be ''"),
        ("gateway", "\udcff", "`gateway` cannot be '\\udcff'"),
        ("projects", [], "`projects` cannot be '[]'"),
        ("projects", ["/r", ""], "`projects.1` cannot be ''"),
        ("flags", {"min_intervals": -1}, "`flags.min-intervals` cannot be '-1'"),
    ],
)
def test_checked__a_value_that_does_not_fit__is_bad_input(
    field: str, value: object, says: str
) -> None:
    with pytest.raises(BadInput) as refused, check_worker_request():
        ask(**{field: value})
    assert says in refused.value.message
    assert refused.value.exit_code == 2
    refused.value.message.encode("utf-8")


def test_checked__also_where_a_part_of_the_question_is_made() -> None:
    with pytest.raises(BadInput, match="min-intervals"), check_worker_request():
        ask(flags=GivenFlags(min_intervals=-1))


def test_checked__says_all_that_is_wrong_at_once() -> None:
    with pytest.raises(BadInput) as refused, check_worker_request():
        ask(owner="", gateway="", plan_id="")
    for name in ("`owner`", "`gateway`", "`plan-id`"):
        assert name in refused.value.message


def test_request__is_made_by_the_client_and_nowhere_else() -> None:
    """A request that is made elsewhere would let its ValidationError out."""
    for path in Path(ci_bot.__file__).parent.rglob("*.py"):
        if "worker" in path.parts or "contracts" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in REQUESTS, f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("exit_code", [1, 2, 3, 4])
def test_error__of_a_workers_failure_keeps_its_exit_code_and_its_place(exit_code: int) -> None:
    failure = Failure(
        stage="state",
        reason_code="held",
        exit_code=exit_code,
        message="Somebody has it.",
        hint="Wait.",
        path="config.yaml",
        line=7,
    )

    error = make_error_of_worker_failure(failure)

    assert (error.exit_code, error.reason_code) == (exit_code, "held")
    assert (error.message, error.hint) == ("Somebody has it.", "Wait.")
    assert (error.path, error.line) == ("config.yaml", 7)
