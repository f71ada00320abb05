"""The event payloads fit GitHub's webhook schema."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import pytest

from tests.github_standin import events
from tests.github_standin.parts import Parts

pytestmark = pytest.mark.standin

FACTS = events.PullFacts()
PULL_EVENTS = {
    **{
        action: events.pull_request(
            action, dataclasses.replace(FACTS, draft=action == "converted_to_draft")
        )
        for action in events.PULL_ACTIONS
    },
    "merged": events.merged(),
    "closed-unmerged": events.closed(),
    "fork": events.from_fork(),
    "deleted-fork": events.from_deleted_fork(),
    "dependabot": events.from_dependabot("synchronize"),
    "private-draft": events.pull_request(
        "opened", dataclasses.replace(FACTS, private=True, draft=True, merge_sha=None)
    ),
}
COMMENT_EVENTS = {
    "on-pull": events.issue_comment("/sqlmesh apply 0123456789ab"),
    "on-issue": events.issue_comment("hello", on_pull=False),
    "edited": events.issue_comment("new", action="edited"),
}


def schema_errors(parts: Parts, name: str, event: dict[str, Any]) -> list[str]:
    """What GitHub's webhook schema says against an event."""
    schema = json.loads(parts.webhook_schema.read_bytes())
    validator = jsonschema.Draft7Validator(
        {"$ref": f"#/definitions/{name}", "definitions": schema["definitions"]}
    )
    return [f"{error.json_path}: {error.message[-200:]}" for error in validator.iter_errors(event)]


@pytest.mark.parametrize("case", PULL_EVENTS)
def test_events__pull_request_fits_the_schema(github_parts: Parts, case: str) -> None:
    event = PULL_EVENTS[case]
    assert schema_errors(github_parts, f"pull_request${event['action']}", event) == []


@pytest.mark.parametrize("case", COMMENT_EVENTS)
def test_events__issue_comment_fits_the_schema(github_parts: Parts, case: str) -> None:
    event = COMMENT_EVENTS[case]
    assert schema_errors(github_parts, f"issue_comment${event['action']}", event) == []
    assert ("pull_request" in event["issue"]) is (case != "on-issue")


@pytest.mark.parametrize("inputs", [None, {}, {"pr-number": "7"}])
def test_events__workflow_dispatch_fits_the_schema(
    github_parts: Parts, inputs: dict[str, str] | None
) -> None:
    event = events.workflow_dispatch(inputs)
    assert schema_errors(github_parts, "workflow_dispatch$event", event) == []


@pytest.mark.parametrize(
    "facts", [FACTS, dataclasses.replace(FACTS, head_repo="outsider/warehouse")]
)
def test_events__workflow_run_fits_the_schema(github_parts: Parts, facts: events.PullFacts) -> None:
    event = events.workflow_run(facts=facts)
    assert schema_errors(github_parts, "workflow_run$completed", event) == []


def test_events__say_what_the_bot_decides_on() -> None:
    assert PULL_EVENTS["merged"]["pull_request"]["merged"] is True
    assert PULL_EVENTS["closed-unmerged"]["pull_request"]["merged"] is False
    assert PULL_EVENTS["fork"]["pull_request"]["head"]["repo"]["full_name"] != FACTS.repo
    assert PULL_EVENTS["deleted-fork"]["pull_request"]["head"]["repo"] is None
    assert PULL_EVENTS["dependabot"]["sender"]["type"] == "Bot"
    assert PULL_EVENTS["synchronize"]["after"] == FACTS.head_sha
    assert events.schedule()["schedule"] == "17 3 * * *"


def test_events__use_only_fields_of_githubs_examples(github_parts: Parts) -> None:
    published = json.loads(github_parts.webhook_examples.read_bytes())
    examples = next(entry for entry in published if entry["name"] == "pull_request")["examples"]
    fields = {name for example in examples for name in example["pull_request"]}
    assert set(PULL_EVENTS["opened"]["pull_request"]) <= fields
