"""A value that fits no contract never becomes a traceback, wherever it came from."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ci_bot
from ci_bot.bot.worker_calls.requests import checked
from ci_bot.contracts import messages
from ci_bot.contracts.documents.plan_identity import PlanFlags
from ci_bot.contracts.messages import ApplyRequest, Owner, Workplace
from ci_bot.errors import BadInput

ASKS = {
    name
    for name in vars(messages)
    if name.endswith("Ask") and name not in ("_Ask", "Ask", "AnyAsk")
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
    return ApplyRequest(**fields)  # type: ignore[arg-type]


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
def test_asking__a_value_that_does_not_fit__is_bad_input(
    field: str, value: object, says: str
) -> None:
    with pytest.raises(BadInput) as refused, checked():
        ask(**{field: value})
    assert says in refused.value.message
    assert refused.value.exit_code == 2
    refused.value.message.encode("utf-8")


def test_asking__also_where_a_part_of_the_question_is_made() -> None:
    with pytest.raises(BadInput, match="min-intervals"), checked():
        ask(flags=PlanFlags(min_intervals=-1))


def test_asking__says_all_that_is_wrong_at_once() -> None:
    with pytest.raises(BadInput) as refused, checked():
        ask(owner="", gateway="", plan_id="")
    for name in ("`owner`", "`gateway`", "`plan-id`"):
        assert name in refused.value.message


def test_asking__goes_around_every_question_of_the_bot() -> None:
    """A question that is made elsewhere would let its ValidationError out."""
    found: set[str] = set()
    for path in Path(ci_bot.__file__).parent.rglob("*.py"):
        if "worker" in path.parts or "contracts" in path.parts:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        inside = {
            call
            for block in ast.walk(tree)
            if isinstance(block, ast.With)
            and any(ast.unparse(item.context_expr) == "asking()" for item in block.items)
            for call in ast.walk(block)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ASKS:
                assert node in inside, f"{path.name}:{node.lineno} is not inside `checked`"
                found.add(node.func.id)  # type: ignore[attr-defined]
    assert found == ASKS
