"""A cleanup is expected to find something where the comment speaks of an apply."""

from __future__ import annotations

import pytest

from ci_bot.bot.handlers.cleanup import is_cleanup_expected_by_comment
from tests.factories import make_marker


@pytest.mark.parametrize("phase", ["applying", "applied", "apply_failed", "cleanup_failed"])
def test_expected__after_an_apply(phase: str) -> None:
    assert is_cleanup_expected_by_comment(make_marker(phase=phase))


@pytest.mark.parametrize("phase", ["planning", "planned", "no_changes", "plan_failed", "closed"])
def test_expected__not_of_a_pull_request_that_was_only_reviewed(phase: str) -> None:
    assert not is_cleanup_expected_by_comment(make_marker(phase=phase))


def test_expected__not_without_a_comment() -> None:
    assert not is_cleanup_expected_by_comment(None)
