"""R01 to R12 and the validation matrix: each fires on its case, and stays quiet beside it."""

from __future__ import annotations

import pytest

from ci_bot.bot.decision import BotFacts, TeamLimits
from ci_bot.protocol.plan import (
    AuditsCheck,
    ColumnChange,
    Lineage,
    LintCheck,
    ModelRange,
    ProdPlan,
    Restatement,
    TableDiffCheck,
    TestFailure,
    TestsCheck,
)
from ci_bot.protocol.review_report import Project
from tests.unit.decision.facts import (
    built,
    changed,
    checks,
    cost,
    dropped,
    failed,
    found,
    judged,
    only,
    weights,
)

BREAKING = changed(category="breaking")


# R01


@pytest.mark.parametrize(
    ("stage", "rule"), [("load", "R01-load-failed"), ("plan", "R01-plan-failed")]
)
def test_r01__a_failure_is_no_go(stage: str, rule: str) -> None:
    judgement = judged(failure=failed("boom", stage, path="models/a.sql", line=3))

    assert judgement.decision == "no_go"
    assert (only(judgement, rule).path, only(judgement, rule).line) == ("models/a.sql", 3)


OF_THE_BASE = failed("Failed to load model from file 'models/a.sql':\n\n  Expecting ).", "load")


@pytest.mark.parametrize(
    ("files", "severity", "decision"),
    [
        (("models/b.sql",), "high", "review"),
        (("README.md", "models/b.sql"), "high", "review"),
        (("README.md",), "medium", "no_changes"),
        (None, "high", "review"),
    ],
)
def test_r01__a_base_that_is_broken_by_others_is_never_no_go(
    files: tuple[str, ...] | None, severity: str, decision: str
) -> None:
    judgement = judged(
        BotFacts(changed_files=files),
        project=Project(paths=["."], gateway=None, dialect=None, models=0),
        prod_plan=None,
        base_failures=[OF_THE_BASE.model_copy(update={"path": "models/a.sql", "line": 3})],
    )

    risk = only(judgement, "R01-base-broken")
    assert (risk.severity, judgement.decision) == (severity, decision)
    assert (risk.path, risk.line) == ("models/a.sql", 3)
    assert "(`models/a.sql` line 3): Expecting )." in risk.evidence
    assert "This pull request is not why" in risk.evidence
    assert any("Expecting )" in reason for reason in judgement.reasons)


def test_r01__a_broken_bases_first_sentence_is_the_one_that_says_what() -> None:
    of_base = OF_THE_BASE.model_copy(update={"message": "The loader failed\nSecond line"})
    judgement = judged(prod_plan=None, base_failures=[of_base])

    assert "The loader failed." in only(judgement, "R01-base-broken").evidence


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (
            "Failed to load model from file 'models/a.sql':\n\n  Failed to load model from file "
            "'models/a.sql':\n    Duplicate SQL model name: 'shop.a'.",
            "Duplicate SQL model name: 'shop.a'.",
        ),
        ("Failed to load model from file 'a.sql':\n\n  boom: it broke", "boom: it broke."),
        ("The first half:", "The first half:"),
    ],
)
def test_r01__a_broken_bases_sentence_is_the_innermost_cause(message: str, says: str) -> None:
    of_base = OF_THE_BASE.model_copy(update={"message": message})
    evidence = only(judged(prod_plan=None, base_failures=[of_base]), "R01-base-broken").evidence
    assert evidence.startswith(f"The base branch does not load here: {says}")


def test_r01__a_model_of_another_project_is_not_the_base_branch() -> None:
    theirs = OF_THE_BASE.model_copy(
        update={"message": "`beta.b`, which the state holds for beta, fails.", "project": "beta"}
    )
    risk = only(judged(prod_plan=None, base_failures=[theirs]), "R01-base-broken")
    assert risk.evidence.startswith("`beta.b`, which the state holds for beta, fails. ")
    assert "base branch" not in f"{risk.evidence} {risk.clears_when}"


def test_r01__a_base_that_is_repaired_is_a_review_and_says_so() -> None:
    judgement = judged(base_failures=[OF_THE_BASE], changes=[changed(change="added")])

    assert judgement.decision == "review"
    assert "With this pull request it does" in only(judgement, "R01-base-broken").evidence


def test_r01__a_head_that_fails_is_told_once() -> None:
    judgement = judged(failure=failed("boom", "load"), base_failures=[OF_THE_BASE])

    assert judgement.decision == "no_go"
    assert not [risk for risk in judgement.risks if risk.rule == "R01-base-broken"]


def test_r01__leaves_the_excerpt_of_the_sql_to_the_failure() -> None:
    message = (
        "Failed to load model from file 'models/a.sql':\n"
        "  Expected table name but got 'WHERE'. Line 45, Col: 5.\n"
        "    SELECT 1 FROM\n  WHERE x"
    )

    found = only(judged(failure=failed(message, "load")), "R01-load-failed")

    assert found.evidence.endswith("Expected table name but got 'WHERE'. Line 45, Col: 5.")


def test_r01__names_the_model_that_the_change_touched() -> None:
    message = 'Detected a cycle.\n"c"."serving"."health" ->\n"c"."core"."devices" ->\n"c"."serving"."health"'
    bot = BotFacts(changed_files=("models/core/devices.sql",))

    risk = only(judged(bot, failure=failed(message, "load")), "R01-load-failed")

    assert risk.model == "core.devices"


def test_r01__uncategorized() -> None:
    judgement = judged(changes=[changed(category="uncategorized")])

    assert (judgement.decision, only(judgement, "R01-uncategorized").model) == (
        "no_go",
        "stg.orders",
    )


def test_r01__lint_errors_block_and_warnings_do_not() -> None:
    lint = LintCheck(
        status="failed",
        errors=1,
        warnings=1,
        findings=[found("noselectstar", "blocker"), found("nomissingaudits", "medium")],
    )

    judgement = judged(changes=[changed()], checks=checks(lint=lint))

    assert weights(judgement) == {
        "R01-lint-error": "blocker",
        "lint-warning": "low",
        "additive-change": "low",
    }


def test_r01__lint_errors_without_details_still_block() -> None:
    judgement = judged(checks=checks(lint=LintCheck(status="failed", errors=2)))

    assert "2 errors" in only(judgement, "R01-lint-error").evidence


def test_r01__a_merge_that_would_fail() -> None:
    plan = ProdPlan(changes=1, backfill=[], would_fail=True, failure="no such column")

    judgement = judged(changes=[changed()], prod_plan=plan)

    assert "no such column" in only(judgement, "R01-prod-plan-fails").evidence
    assert judgement.decision == "no_go"


def test_r01__a_merge_that_fails_as_the_environment_does_is_told_once() -> None:
    plan = ProdPlan(changes=1, backfill=[], would_fail=True, failure="no such column")

    judgement = judged(failure=failed("no such column"), prod_plan=plan)

    assert "R01-prod-plan-fails" not in weights(judgement)


@pytest.mark.parametrize(
    ("stage", "hint", "told"),
    [
        ("load", None, "the project loads"),
        ("plan", None, "SQLMesh accepts the plan"),
        ("plan", "Name the column.", "Name the column."),
    ],
)
def test_r01__a_failure_says_what_clears_it(stage: str, hint: str | None, told: str) -> None:
    (risk,) = judged(failure=failed("boom", stage, hint=hint)).risks[:1]

    assert risk.clears_when == told


@pytest.mark.parametrize(
    ("own", "told"), [(None, "the linter is satisfied"), ("it has a grain", "it has a grain")]
)
def test_r01__a_linters_finding_says_what_clears_it(own: str | None, told: str) -> None:
    lint = LintCheck(
        status="failed", errors=1, findings=[found("nograin", "blocker", clears_when=own)]
    )

    assert only(judged(checks=checks(lint=lint)), "R01-lint-error").clears_when == told


# R02


def failing(**parts: object) -> TestsCheck:
    """Two tests ran, and one of them fails."""
    values = {"name": "test_a", "model": "stg.orders", "path": "tests/test_a.yaml"}
    failure = TestFailure.model_validate({**values, "message": "\n1 != 2\nx", **parts})
    return TestsCheck(status="failed", run=2, failed=1, failures=[failure])


@pytest.mark.parametrize(
    ("parts", "rule", "severity", "why"),
    [
        ({"on_base": "passed"}, "R02-test-fails", "blocker", "passes on the base branch"),
        ({"on_base": "passed", "touched": False}, "R02-test-fails", "blocker", "passes on"),
        ({"on_base": "absent"}, "R02-test-fails", "blocker", "does not have it"),
        ({"on_base": "failed"}, "R02-test-failed-before", "low", "fails on the base branch, too"),
        ({"on_base": "failed", "touched": True}, "R02-test-failed-before", "low", "too"),
        ({}, "R02-test-fails", "blocker", "is not known"),
        ({"touched": True}, "R02-test-fails", "blocker", "is not known"),
        ({"touched": False}, "R02-test-failed-before", "medium", "changes neither the test nor"),
    ],
)
def test_r02__a_failing_unit_test_is_blamed_on_whom_it_concerns(
    parts: dict[str, object], rule: str, severity: str, why: str
) -> None:
    risk = only(judged(checks=checks(tests=failing(**parts))), rule)

    assert (risk.severity, risk.model) == (severity, "stg.orders")
    assert risk.evidence.startswith("Unit test `test_a` fails: 1 != 2. ")
    assert why in risk.evidence


def test_r02__the_cause_stands_in_the_sentence() -> None:
    tests = failing(cause="`n`: expected 2, actual 1", on_base="passed")

    text = only(judged(checks=checks(tests=tests)), "R02-test-fails").evidence

    assert text == (
        "Unit test `test_a` fails: `n`: expected 2, actual 1. It passes on the base branch."
    )


# R03


def test_r03__a_conflict() -> None:
    assert weights(judged(BotFacts(changed_files=(), conflict=True))) == {"R03-conflict": "blocker"}


# R04


def test_r04__a_removed_model_without_readers_is_a_persons_decision() -> None:
    judgement = judged(changes=[changed(change="removed", category=None)])

    assert weights(judgement) == {"R04-model-removed": "high"}


def test_r04__a_removed_model_with_readers_blocks() -> None:
    judgement = judged(changes=[changed(change="removed", category=None, readers=["mart.a"])])

    assert weights(judgement) == {"R04-model-removed": "blocker"}
    assert "`mart.a`" in only(judgement, "R04-model-removed").evidence


def test_r04__what_the_base_branch_has_removed_is_said_to_be_its() -> None:
    gone = changed(change="removed", category=None, from_base=True)
    judgement = judged(changes=[gone])
    assert weights(judgement) == {"R04-model-removed": "medium"}
    assert judgement.decision == "go"
    evidence = only(judgement, "R04-model-removed").evidence
    assert evidence.startswith("The base branch has removed this model, and prod still has it")
    read = judged(changes=[gone.model_copy(update={"readers": ["mart.a"]})])
    assert weights(read) == {"R04-model-removed": "high"}
    assert "`mart.a` still reads it" in only(read, "R04-model-removed").evidence


def test_r04__what_may_belong_to_another_project_is_a_persons_decision() -> None:
    gone = changed(change="removed", category=None, from_base=True, lies_elsewhere=True)
    judgement = judged(changes=[gone])
    assert weights(judgement) == {"R04-model-removed": "high"}
    risk = only(judgement, "R04-model-removed")
    assert "this pull request does not change that" in risk.evidence
    assert "`project:` key" in risk.clears_when


def test_r04__mass_removal_is_told_once() -> None:
    gone = [changed(f"old.m{n}", change="removed", category=None) for n in range(8)]
    new = [changed(f"new.m{n}", change="added", category="breaking") for n in range(8)]

    judgement = judged(changes=[*gone, *new])

    assert weights(judgement) == {"R04-mass-removal": "high"}
    assert "8 models of 10 go away, 8 models are new" in judgement.risks[0].evidence


@pytest.mark.parametrize(
    ("gone", "models", "told"),
    [
        (5, 5, True),  # exactly half of ten, and exactly the smallest mass
        (5, 6, False),
        (4, 1, False),
    ],
)
def test_r04__mass_removal_is_half_of_the_models_and_at_least_five(
    gone: int, models: int, told: bool
) -> None:
    changes = [changed(f"old.m{n}", change="removed", category=None) for n in range(gone)]
    project = Project(paths=["."], gateway=None, dialect=None, models=models)

    assert ("R04-mass-removal" in weights(judged(changes=changes, project=project))) is told


@pytest.mark.parametrize(
    ("emptied", "others", "told"),
    [
        (5, 0, True),
        (5, 2, True),
        (4, 2, False),  # few
        (0, 6, False),  # many, but something is left where they were
    ],
)
def test_r04__mass_removal_is_also_all_of_a_schema(emptied: int, others: int, told: bool) -> None:
    changes = [
        changed(f"mart.m{n}", change="removed", category=None, lies_elsewhere=True)
        for n in range(emptied)
    ]
    changes += [changed(f"core.m{n}", change="removed", category=None) for n in range(others)]
    project = Project(paths=["."], gateway=None, dialect=None, models=100)

    judgement = judged(changes=changes, project=project)

    assert ("R04-mass-removal" in weights(judgement)) is told
    if told:
        assert only(judgement, "R04-mass-removal").evidence.startswith(
            f"5 models of {105 + others} go away, which are all of the schema `mart`"
        )
        alone = [risk.model for risk in judgement.risks if risk.rule == "R04-model-removed"]
        assert alone == [f"core.m{n}" for n in range(others)], "one question is asked once"


def test_r04__models_that_only_got_the_name_of_another_schema_are_no_mass_removal() -> None:
    gone = [
        changed(f"old.m{n}", change="removed", category=None, lies_elsewhere=True) for n in range(5)
    ]
    new = [changed(f"new.m{n}", change="added", category="breaking") for n in range(5)]
    renamed = [found("model-renamed", "info", model=change.model) for change in gone]

    judgement = judged(
        changes=[*gone, *new],
        findings=renamed,
        project=Project(paths=["."], gateway=None, dialect=None, models=100),
    )

    assert "R04-mass-removal" not in weights(judgement)


def test_r04__a_mass_removal_hides_no_model_that_is_still_read() -> None:
    gone = [changed(f"old.m{n}", change="removed", category=None) for n in range(7)]
    read = changed("old.read", change="removed", category=None, readers=["mart.a"])

    judgement = judged(
        changes=[*gone, read],
        project=Project(paths=["."], gateway=None, dialect=None, models=4),
    )

    assert weights(judgement) == {"R04-mass-removal": "high", "R04-model-removed": "blocker"}
    assert only(judgement, "R04-model-removed").model == "old.read"
    assert judgement.decision == "no_go"


def test_r04__columns() -> None:
    change = changed(columns=[dropped("a", "mart.x"), dropped("b")])

    risks = [r for r in judged(changes=[change]).risks if r.rule == "R04-column-dropped"]

    assert [(r.severity, "`a`" in r.evidence, "`b`" in r.evidence) for r in risks] == [
        ("blocker", True, False),
        ("high", False, True),
    ]


def test_r04__columns_of_a_model_that_goes_are_not_told_beside_it() -> None:
    change = changed(change="removed", category=None, columns=[dropped("a", "mart.x")])

    assert set(weights(judged(changes=[change]))) == {"R04-model-removed"}


def test_r04__a_model_that_follows_another_is_judged_there() -> None:
    change = changed(change="indirect", category="indirect_breaking", columns=[dropped("b")])

    assert weights(judged(changes=[change])) == {"R04-column-dropped": "low"}


def test_r04__the_bases_own_changes_are_named_and_not_judged() -> None:
    change = changed(from_base=True)

    assert weights(judged(changes=[change])) == {"base-drift": "info"}


# R05


def test_r05__a_refused_plan_without_a_finding() -> None:
    message = "Plan requires a destructive change to a forward-only model."

    assert "R05-forward-only-destructive" in weights(judged(failure=failed(message)))


def test_r05__is_told_once_when_the_rules_saw_it() -> None:
    message = "Plan requires a destructive change to a forward-only model."
    finding = found("forward-only-destructive", "blocker", model="stg.orders")

    assert set(weights(judged(failure=failed(message), findings=[finding]))) >= {
        "forward-only-destructive",
        "R01-plan-failed",
    }
    assert "R05-forward-only-destructive" not in weights(
        judged(failure=failed(message), findings=[finding])
    )


def test_r05__another_failure_is_no_refusal() -> None:
    assert "R05-forward-only-destructive" not in weights(judged(failure=failed("boom")))


def test_r05__what_other_rules_saw_of_the_model_hides_nothing() -> None:
    plan = ProdPlan(
        changes=1, backfill=[], would_fail=False, forward_only_schema_changes=["stg.orders"]
    )
    other = found("filter-changed", "high", model="stg.orders")
    nameless = found("forward-only-destructive", "blocker")

    assert "R05-forward-only-schema" in weights(judged(prod_plan=plan, findings=[other]))
    message = "Plan requires a destructive change to a forward-only model."
    told = weights(judged(failure=failed(message), findings=[nameless]))
    assert "R05-forward-only-destructive" in told


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("INCREMENTAL_BY_TIME_RANGE", "its history is not computed again."),
        ("INCREMENTAL_BY_UNIQUE_KEY", "and other rows stay."),
        ("FULL", "computes the whole table again."),
    ],
)
def test_r05__says_what_becomes_of_old_rows_by_the_kind(kind: str, told: str) -> None:
    plan = ProdPlan(
        changes=1, backfill=[], would_fail=False, forward_only_schema_changes=["stg.orders"]
    )
    judgement = judged(prod_plan=plan, changes=[changed(category="forward_only", kind=kind)])

    assert only(judgement, "R05-forward-only-schema").evidence.endswith(told)
    rules = only(judgement, "logic-changed-forward-only").evidence
    assert ("history is not computed again" in rules) is (kind == "INCREMENTAL_BY_TIME_RANGE")


def test_r05__a_merge_that_alters_a_table_in_place() -> None:
    plan = ProdPlan(
        changes=1, backfill=[], would_fail=False, forward_only_schema_changes=["stg.orders"]
    )

    assert weights(judged(prod_plan=plan)) == {"R05-forward-only-schema": "high"}

    more = changed(columns=[ColumnChange(name="note", before=None, after="STRING", readers=[])])
    other = changed(columns=[ColumnChange(name="note", before="INT", after=None, readers=[])])
    weight = [
        weights(judged(prod_plan=plan, changes=[one]))["R05-forward-only-schema"]
        for one in (more, other)
    ]
    assert weight == ["medium", "high"]


def test_refusal__names_each_model_without_the_end_of_its_sentence() -> None:
    message = (
        "Plan requires a destructive change to a forward-only model: stg.orders, mart.a. "
        "`allow-destructive` permits it."
    )

    risks = judged(failure=failed(message)).risks

    told = {item.model for item in risks if item.rule == "R05-forward-only-destructive"}
    assert told == {"mart.a", "stg.orders"}


# R06


def test_r06__is_no_lighter_for_what_else_is_found() -> None:
    findings = [
        found("same-result", "info", model="stg.others"),
        found("x", "low", model="stg.orders"),
    ]

    judgement = judged(changes=[BREAKING], findings=findings)

    assert only(judgement, "R06-breaking-rebuild").severity == "high"


def test_r06__a_breaking_change_counts_every_modified_reader() -> None:
    judgement = judged(
        changes=[
            BREAKING,
            changed("mart.a", change="indirect", category="indirect_breaking"),
            changed("mart.b", change="indirect", category="indirect_non_breaking", kind="VIEW"),
            changed("mart.c", change="direct", category="non_breaking"),
            changed("mart.far"),
        ],
        backfill=[
            built(),
            built("mart.a"),
            built("mart.b", action="recreate_view", intervals=1, batches=1),
            built("mart.c"),
        ],
        lineage=Lineage(
            edges=[
                ("stg.orders", "mart.a"),
                ("mart.a", "mart.b"),
                ("stg.orders", "mart.c"),
                ("stg.others", "mart.far"),
            ]
        ),
    )

    risk = only(judgement, "R06-breaking-rebuild")
    assert risk.severity == "high"
    assert "60 intervals since 2024-01-01 are computed again; 3 models below get a" in risk.evidence
    assert "2 tables and 1 view rebuilt" in risk.evidence


def test_r06__a_proven_rewrite_costs_and_endangers_nothing() -> None:
    same = found("same-result", "info", model="stg.orders")

    judgement = judged(changes=[BREAKING], findings=[same])

    assert (judgement.decision, only(judgement, "R06-breaking-rebuild").severity) == (
        "go",
        "low",
    )


@pytest.mark.parametrize(
    ("readers", "severity", "decision"), [((), "low", "go"), (("mart.a",), "high", "review")]
)
def test_r06__another_source_table_is_harmless_only_where_nothing_reads_it(
    readers: tuple[str, ...], severity: str, decision: str
) -> None:
    source = changed("raw.orders", category="breaking", kind="EXTERNAL")
    below = [changed(name, change="indirect", category="indirect_breaking") for name in readers]

    judgement = judged(
        changes=[source, *below],
        lineage=Lineage(edges=[("raw.orders", name) for name in readers]),
    )

    assert only(judgement, "R06-breaking-rebuild").severity == severity
    assert judgement.decision == decision


def test_r06__non_breaking_is_not_breaking() -> None:
    assert weights(judged(changes=[changed()], backfill=[built()])) == {"additive-change": "low"}


@pytest.mark.parametrize(("limit", "expected"), [(59, True), (60, False), (None, False)])
def test_r06__interval_limit(limit: int | None, expected: bool) -> None:
    judgement = judged(limits=TeamLimits(max_intervals=limit), backfill=[built()])

    assert ("R06-interval-limit" in weights(judgement)) is expected


@pytest.mark.parametrize(("intervals", "expected"), [(10_000, False), (10_001, True)])
def test_r06__interval_limit_is_there_without_a_policy(intervals: int, expected: bool) -> None:
    judgement = judged(backfill=[built(intervals=intervals)])

    found = [risk for risk in judgement.risks if risk.rule == "R06-interval-limit"]
    assert bool(found) is expected
    assert all("the limit by default is 10,000" in risk.evidence for risk in found)


# R07


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0.9, {"R07-over-budget": "blocker"}),
        (1.5, {"R07-near-budget": "medium"}),
        (2.0, {}),
        (None, {}),
    ],
)
def test_r07__budget(limit: float | None, expected: dict[str, str]) -> None:
    assert weights(judged(limits=TeamLimits(max_executor_hours=limit))) == expected


def test_r07__an_unknown_cost_is_within_no_budget_and_over_none() -> None:
    unknown = cost(
        executor_hours_low=None,
        executor_hours_mid=None,
        executor_hours_high=None,
        tables=1,
        unknown=["stg.orders"],
    )

    judgement = judged(limits=TeamLimits(max_executor_hours=1), cost=unknown, changes=[changed()])

    assert "R10-not-checked" in weights(judgement)
    assert not {"R07-over-budget", "R07-near-budget"} & set(weights(judgement))


def test_batches__one_job_for_a_long_history() -> None:
    long = built(intervals=500, batches=1)

    assert weights(judged(backfill=[long])) == {"batch-size-missing": "medium"}
    assert weights(judged(backfill=[built(intervals=500, batches=17)])) == {}


def test_batches__a_hundred_intervals_are_few() -> None:
    assert weights(judged(backfill=[built(intervals=100, batches=1)])) == {}
    assert weights(judged(backfill=[built(intervals=101, batches=1)])) != {}


# R08


@pytest.mark.parametrize(
    ("environments", "expected"),
    [(["pr_8", "dev"], {"R08-restatement-elsewhere": "high"}), ([], {})],
)
def test_r08(environments: list[str], expected: dict[str, str]) -> None:
    restated = Restatement(
        model="stg.orders",
        start="2024-01-01T00:00:00Z",
        end="2024-02-01T00:00:00Z",
        environments=environments,
    )

    assert weights(judged(restatements=[restated])) == expected


@pytest.mark.parametrize(
    ("environments", "told"),
    [
        (["dev"], "which `dev` also uses."),
        (["dev", "pr_8"], "which `dev`, `pr_8` also use."),
    ],
)
def test_r08__says_what_is_cleared_and_for_whom(environments: list[str], told: str) -> None:
    restated = Restatement(
        model="stg.orders",
        start="2024-01-01T00:00:00Z",
        end="2024-02-01T00:00:00Z",
        environments=environments,
    )

    risk = only(judged(restatements=[restated]), "R08-restatement-elsewhere")

    assert risk.evidence == f"Clears 2024-01-01 to 2024-02-01, {told}"


# R10


def test_r10__what_was_not_checked_has_not_passed() -> None:
    missing = checks(
        tests=TestsCheck(status="none"),
        lint=LintCheck(status="off"),
        audits=AuditsCheck(status="not_run", not_run_because="they need the data"),
        table_diff=TableDiffCheck(status="not_run"),
    )

    judgement = judged(
        BotFacts(),
        changes=[changed()],
        checks=missing,
        prod_plan=None,
        cost=cost(executor_hours_mid=None, tables=1, unknown=["stg.orders"]),
    )

    gone = [
        risk.evidence.partition(":")[0]
        for risk in judgement.risks
        if risk.rule == "R10-not-checked"
    ]
    assert sorted(gone) == [
        "Audits",
        "Changed files",
        "Cost",
        "Data diff",
        "Lint",
        "Prod plan",
        "Unit tests",
    ]
    assert judgement.decision == "go"


def test_r10__a_plan_that_failed_has_not_been_checked_either() -> None:
    judgement = judged(failure=failed("boom"), checks=checks(tests=TestsCheck(status="none")))

    assert only(judgement, "R10-not-checked").evidence == "Unit tests: the project has none."


def test_r10__a_plan_without_changes_needs_no_evidence() -> None:
    assert judged(BotFacts(), checks=checks(tests=TestsCheck(status="none"))).risks == ()


def test_fork__cannot_be_applied() -> None:
    assert weights(judged(BotFacts(changed_files=(), fork=True))) == {"R10-fork": "info"}


@pytest.mark.parametrize(
    "bot",
    [
        BotFacts(changed_files=("a.md",), unread_because="it was killed by signal SIGKILL"),
        BotFacts(changed_files=None, pull_request=True),
    ],
    ids=["no answer", "not known"],
)
def test_r10__files_that_nobody_has_read__are_a_reason_to_look(bot: BotFacts) -> None:
    """A credential in one of them would be silent, with and without a change of the plan."""
    for parts in ({}, {"changes": [changed()]}):
        judgement = judged(bot, **parts)

        assert only(judgement, "R10-files-not-read").severity == "high"
        assert judgement.decision == "review"


# R11, R12


def test_r11__another_pull_request_changes_the_same_model() -> None:
    risk = only(judged(changes=[changed(also_in=["#9", "#12"])]), "R11-changed-elsewhere")

    assert (risk.severity, risk.evidence) == ("medium", "Also changed by #9, #12.")


def test_r11__what_the_base_branch_changes_is_nobodys() -> None:
    judgement = judged(changes=[changed(also_in=["#9"], from_base=True)])

    assert "R11-changed-elsewhere" not in weights(judgement)


def test_r12__code_that_computed_the_report() -> None:
    bot = BotFacts(changed_files=("macros/m.py",), code_on_load=("macros/m.py",))

    judgement = judged(bot)

    assert judgement.decision == "review"
    assert (
        "runs while this report is computed, so this pull request could falsify it"
        in judgement.reasons[0]
    )


def test_r12__where_it_is_not_known_what_was_opened__it_says_so() -> None:
    bot = BotFacts(changed_files=("a.py",), code_on_load=("a.py",), load_known=False)

    found = only(judged(bot), "R12-code-on-load")

    assert found.severity == "high"
    assert "it is not known which files were opened" in found.evidence


def test_r12__models_that_change_although_their_files_do_not() -> None:
    bot = BotFacts(changed_files=("macros/m.py",))

    assert only(judged(bot, changes=[changed()]), "R12-shared-change").severity == "medium"


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (
            ["a.b"],
            ["1 model changes although its file does not", "1 model changes in metadata only"],
        ),
        (
            ["a.b", "a.c"],
            ["2 models change although their files do not", "2 models change in metadata only"],
        ),
    ],
)
def test_counts__agree_with_their_verbs(models: list[str], told: list[str]) -> None:
    bot = BotFacts(changed_files=("macros/m.py",))
    shared = judged(bot, changes=[changed(model) for model in models])
    kept = judged(changes=[changed(model, change="metadata") for model in models])

    assert told[0] in only(shared, "R12-shared-change").evidence
    assert told[1] in only(kept, "metadata-only").evidence


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (("a.py",), "`a.py` runs while this report is computed"),
        (("a.py", "b.py"), "`a.py`, `b.py` run while this report is computed"),
    ],
)
def test_r12__code_on_load_says_it_of_one_file_and_of_two(
    files: tuple[str, ...], told: str
) -> None:
    bot = BotFacts(changed_files=files, code_on_load=files, load_known=True)

    assert told in only(judged(bot), "R12-code-on-load").evidence


@pytest.mark.parametrize(
    ("files", "removed", "told"),
    [
        (("a.py",), ("a.py",), "`a.py` is removed: code that uses it"),
        (("a.py", "b.py"), ("a.py", "b.py"), "`a.py`, `b.py` are removed: code that uses them"),
        (("a.py", "b.py"), ("a.py",), "falsify it. `a.py` is removed"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_r12__code_that_is_removed_does_not_run(
    files: tuple[str, ...], removed: tuple[str, ...], told: str, known: bool
) -> None:
    bot = BotFacts(changed_files=files, code_on_load=files, removed_code=removed, load_known=known)

    evidence = only(judged(bot), "R12-code-on-load").evidence
    assert told.replace("falsify it. ", "" if not known else "falsify it. ") in evidence
    assert "`a.py` runs" not in evidence
    assert ("`b.py`" in evidence) is ("b.py" in files)


@pytest.mark.parametrize(
    "parts",
    [
        {"changes": [changed()]},
        {"changes": [changed("ref.countries", kind="SEED")]},
        {"changes": [changed(path=None)]},
        {
            "changes": [changed(), changed("mart.a")],
            "lineage": Lineage(edges=[("stg.orders", "mart.a")]),
        },
        # The table that it reads was external, and is a model now.
        {
            "changes": [changed(change="added"), changed("mart.a")],
            "lineage": Lineage(edges=[("stg.orders", "mart.a")]),
        },
    ],
)
def test_r12__own_files_seeds_and_followers_are_no_shared_change(parts: dict[str, object]) -> None:
    assert "R12-shared-change" not in weights(judged(**parts))


# the matrix


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed(category="forward_only"), {"logic-changed-forward-only": "medium"}),
        (changed(category="non_breaking"), {"additive-change": "low"}),
        (changed(category="non_breaking", statements_changed=True), {}),
        (changed(change="metadata", category="metadata"), {"metadata-only": "info"}),
        (changed(change="added", category="breaking"), {}),
        (changed(category="non_breaking", from_base=True), {"base-drift": "info"}),
        (changed(category="forward_only", from_base=True), {"base-drift": "info"}),
    ],
)
def test_matrix(change: object, expected: dict[str, str]) -> None:
    assert weights(judged(changes=[change])) == expected


def test_matrix__gaps_of_prod() -> None:
    gap = ModelRange(model="stg.orders", start="2024-01-01T00:00:00Z", end="2024-01-02T00:00:00Z")
    plan = ProdPlan(changes=0, backfill=[], would_fail=False, gaps=[gap])

    assert weights(judged(prod_plan=plan)) == {"prod-gaps": "medium"}
