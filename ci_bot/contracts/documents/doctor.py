"""What `ci-bot doctor` looks at: one line for each part, with the fix."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import SCHEMA_VERSION, Contract, Seconds, Timings, Versions
from ci_bot.contracts.documents.plan import ProjectCheck


class DoctorDocument(Contract):
    """The worker's answer. Nothing was changed for it, neither in state nor in warehouse."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["doctor"] = "doctor"
    checks: list[ProjectCheck] = Field(min_length=1)
    configured: bool = Field(description="Whether the configuration could be read at all.")
    seconds: Seconds
    timings: Timings = Field(default_factory=dict)
    versions: Versions
