"""What the changed files say by themselves, read by a process that has loaded nothing of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import SCHEMA_VERSION, Contract, Seconds
from ci_bot.contracts.documents.plan import Finding


class ScanFacts(Contract):
    """The worker's answer to a scan."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["scan"] = "scan"
    findings: list[Finding]
    without_plan: list[Finding] = Field(
        description="Of rules that see more where models are loaded: for a review without a plan."
    )
    statements: list[Finding] = Field(
        description="What SQL in the files does, as it stands: for a review whose plan was made "
        "beside code of the pull request."
    )
    seconds: Seconds
