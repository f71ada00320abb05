"""Which options a plan is made with: inputs, what the project writes, defaults."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from sqlmesh.core.config import CategorizerConfig

from ci_bot.errors import BadInput
from ci_bot.protocol.files import MOST_INTERVALS
from ci_bot.protocol.plan_identity import GivenFlags, PlanFlags, PlanOption, selects_by_git
from ci_bot.worker.planning.plan_options import PlanOptions, name_plan_option, resolve_plan_options
from ci_bot.worker.project.checks import OF_A_PLAN, PlanSettings

NOTHING = GivenFlags()


def of(
    given: dict[str, Any] | None = None, *, branch: str | None = None, **bot: Any
) -> PlanOptions:
    return resolve_plan_options(
        GivenFlags(**(given or {})), PlanSettings(bot=bot), head_branch=branch
    )


def test_nothing_said__is_the_default_of_everything() -> None:
    found = of()

    assert found.flags == PlanFlags()
    assert (found.start, found.end, found.categorizer, found.said) == (None, None, None, ())


@pytest.mark.parametrize(
    ("key", "written", "flag", "given", "other"),
    [
        ("pr_include_unmodified", True, "include_unmodified", False, False),
        ("skip_pr_backfill", True, "skip_backfill", False, False),
        ("skip_pr_backfill", False, "skip_backfill", True, True),
        ("pr_min_intervals", 3, "min_intervals", 0, 0),
        ("pr_preview_min_intervals", 2, "preview_min_intervals", 5, 5),
        ("default_pr_preview_start", "2024-01-05", "preview_start", "2024-01-07", "2024-01-07"),
    ],
)
def test_written_key__holds_until_an_input_says_otherwise(
    key: str, written: Any, flag: str, given: Any, other: Any
) -> None:
    project = of(**{key: written})
    said = of({flag: given}, **{key: written})

    name = flag.replace("_", "-")
    assert getattr(project.flags, flag) == written
    assert [(o.name, o.source, o.key) for o in project.said] == [
        (name, "project", f"cicd_bot.{key}")
    ]
    assert getattr(said.flags, flag) == other
    assert [(o.name, o.source, o.key) for o in said.said] == [(name, "input", None)]
    # Nothing else moves.
    assert project.flags.model_copy(update={flag: getattr(PlanFlags(), flag)}) == PlanFlags()


def test_every_key_of_a_plan__is_read() -> None:
    values: dict[str, Any] = {
        "auto_categorize_changes": CategorizerConfig.all_off(),
        "default_pr_start": "2024-01-01",
        "default_pr_preview_start": "2024-01-05",
        "pr_min_intervals": 1,
        "pr_preview_min_intervals": 2,
        "skip_pr_backfill": True,
        "pr_include_unmodified": True,
        "forward_only_branch_suffix": "-fo",
    }
    assert set(values) == set(OF_A_PLAN)

    found = of(branch="change-fo", **values)

    assert {option.key for option in found.said} == {f"cicd_bot.{key}" for key in OF_A_PLAN}
    assert found.start == "2024-01-01"
    assert found.flags == PlanFlags(
        forward_only=True,
        include_unmodified=True,
        skip_backfill=True,
        min_intervals=1,
        preview_start="2024-01-05",
        preview_min_intervals=2,
    )


@pytest.mark.parametrize(
    ("given", "branch", "suffix", "plan", "expected", "source"),
    [
        (None, "fix-forward-only", "-forward-only", False, True, "project"),
        (None, "fix", "-forward-only", False, False, None),
        (None, "fix-forward-only", None, False, False, None),  # that bot's default is not ours
        (None, "fix-forward-only", "", False, False, None),
        (None, None, "-forward-only", False, False, None),
        (None, "fix", "-forward-only", True, True, "project"),
        (False, "fix-forward-only", "-forward-only", True, False, "input"),
        (True, "fix", None, False, True, "input"),
        (False, "fix", None, True, False, "input"),
    ],
)
def test_forward_only__by_input_then_branch_then_project(
    given: bool | None,
    branch: str | None,
    suffix: str | None,
    plan: bool,
    expected: bool,
    source: str | None,
) -> None:
    bot = {} if suffix is None else {"forward_only_branch_suffix": suffix}
    settings = PlanSettings(forward_only=plan, bot=bot)

    found = resolve_plan_options(GivenFlags(forward_only=given), settings, head_branch=branch)

    assert found.flags.forward_only is expected
    assert [option.source for option in found.said] == ([source] if source else [])


def test_include_unmodified__of_plan_is_below_that_of_the_bot() -> None:
    settings = PlanSettings(include_unmodified=True, bot={"pr_include_unmodified": False})

    assert not resolve_plan_options(NOTHING, settings).flags.include_unmodified
    assert resolve_plan_options(
        NOTHING, PlanSettings(include_unmodified=True)
    ).flags.include_unmodified
    said = resolve_plan_options(NOTHING, PlanSettings(include_unmodified=True)).said
    assert [option.key for option in said] == ["plan.include_unmodified"]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("1 week ago", "1 week ago"),
        (date(2024, 1, 5), "2024-01-05"),  # YAML makes one of `2024-01-05`
        (datetime(2024, 1, 5, 3, 0), "2024-01-05T03:00:00"),
        (1_704_412_800_000, "1704412800000"),
    ],
)
def test_date__however_it_is_written_is_a_text(written: Any, text: str) -> None:
    found = of(default_pr_start=written, default_pr_preview_start=written)

    assert (found.start, found.flags.preview_start) == (text, text)


def test_dates__of_a_review_are_no_inputs() -> None:
    found = resolve_plan_options(
        NOTHING,
        PlanSettings(bot={"default_pr_start": "1 week ago"}),
        start="2024-01-01T00:00:00Z",
        end="2024-01-05T00:00:00Z",
        pinned=True,
    )

    assert found.start == "2024-01-01T00:00:00Z"
    assert [(option.name, option.source) for option in found.said] == [
        ("start", "review"),
        ("end", "review"),
    ]


@pytest.mark.parametrize("key", ["pr_min_intervals", "pr_preview_min_intervals"])
@pytest.mark.parametrize("number", [-1, MOST_INTERVALS + 1])
def test_number__that_cannot_be_meant_is_told_with_its_key(key: str, number: int) -> None:
    with pytest.raises(BadInput, match=rf"`cicd_bot.{key}` is {number}") as refused:
        of(**{key: number})

    assert refused.value.reason_code == "bad_config"


def test_models__are_one_option_each() -> None:
    found = of({"select_models": ["a.b", "tag:daily"], "allow_destructive": ["c.d"]})

    assert found.flags.select_models == ["a.b", "tag:daily"]
    assert [(option.name, option.value) for option in found.said] == [
        ("select-model", "a.b"),
        ("select-model", "tag:daily"),
        ("allow-destructive", "c.d"),
    ]


def test_categorizer__is_handed_on_and_shown() -> None:
    config = CategorizerConfig(sql="off")

    found = of(auto_categorize_changes=config)

    assert found.categorizer is config
    assert found.said == (
        PlanOption(
            name="auto-categorize-changes",
            value="external: full, python: full, sql: off, seed: full",
            source="project",
            key="cicd_bot.auto_categorize_changes",
        ),
    )


def test_name__in_a_message_is_where_it_was_said() -> None:
    assert (
        name_plan_option("start", of(default_pr_start="soon").said) == "cicd_bot.default_pr_start"
    )
    assert name_plan_option("start", ()) == "start"


@pytest.mark.parametrize(
    ("text", "by_git"),
    [("git:main", True), ("+GIT:main+", True), ("a & git :main", True), ("digit:x", False)],
)
def test_selection__by_git_is_seen(text: str, by_git: bool) -> None:
    assert selects_by_git(GivenFlags(select_models=[text])) is by_git
    assert selects_by_git(GivenFlags(restate_models=[text])) is by_git
