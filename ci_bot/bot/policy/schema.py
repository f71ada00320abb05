"""The JSON Schema with which an editor completes a policy, and finds what is wrong with it."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.policy.document import EVERY_RULE, PolicyFile
from ci_bot.bot.policy.known_rules import known_rules
from ci_bot.bot.policy.protected import UNWEIGHED


def policy_schema() -> dict[str, Any]:
    """Draft 2020-12, with the rules that a policy may name."""
    schema = PolicyFile.model_json_schema(mode="validation")
    rules = sorted(set(known_rules()) - set(UNWEIGHED))
    schema["$defs"]["RuleName"] = {"enum": [EVERY_RULE, *rules]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
