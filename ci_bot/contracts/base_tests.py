"""Unit tests on the base branch: whether what fails in a pull request failed before it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import SCHEMA_VERSION, Contract, Name


class TestName(Contract):
    """A unit test by its file, relative to the repository, and its name."""

    __test__ = False  # the name is the field's, not a test case for pytest

    path: Name | None
    name: Name


class TestOutcome(TestName):
    result: Literal["passed", "failed", "absent"]


class BaseTests(Contract):
    """How the tests that were asked for end on the base branch."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["base_tests"] = "base_tests"
    outcomes: list[TestOutcome] = Field(default_factory=list)
