"""The plan id: one mutation for each field that it covers, and what must not change it."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.protocol.plan import Window
from ci_bot.protocol.plan_identity import (
    PlanFlags,
    PlanIdentity,
    ProdIdentity,
    ProdSnapshot,
    RestatedRange,
    StatementIdentity,
    TargetSnapshot,
    compare_identities,
    matches_plan_id,
)

SNAPSHOT = TargetSnapshot(
    model="shop.orders",
    fingerprint="1-2-3-4",
    category="breaking",
    preview=False,
    promoted=True,
    start="2024-01-01T00:00:00Z",
    end="2024-01-11T00:00:00Z",
)
OTHER = SNAPSHOT.model_copy(update={"model": "shop.revenue"})
STATEMENT = StatementIdentity(
    before_all=["SELECT 1"], after_all=["SELECT 2"], python_env_sha256="0" * 64
)
IDENTITY = PlanIdentity(
    environment="pr_7",
    gateway="spark",
    suffix_target="schema",
    catalog_mapping={"^pr_": "dev"},
    state_schema_version=102,
    flags=PlanFlags(),
    window=Window(start=None, end="2024-01-11T00:00:00Z", execution_time="2024-01-11T00:00:00Z"),
    snapshots=[SNAPSHOT, OTHER],
    removed=["shop.old"],
    restatements=[
        RestatedRange(model="shop.orders", start="2024-01-01T00:00:00Z", end="2024-01-02T00:00:00Z")
    ],
    statements=[STATEMENT],
)


def with_snapshot(**changes: Any) -> dict[str, Any]:
    return {"snapshots": [SNAPSHOT.model_copy(update=changes), OTHER]}


def with_flags(**changes: Any) -> dict[str, Any]:
    return {"flags": PlanFlags(**changes)}


def with_window(**changes: Any) -> dict[str, Any]:
    return {"window": IDENTITY.window.model_copy(update=changes)}


def with_statement(**changes: Any) -> dict[str, Any]:
    return {"statements": [STATEMENT.model_copy(update=changes)]}


MUTATIONS: dict[str, dict[str, Any]] = {
    "environment": {"environment": "pr_8"},
    "gateway": {"gateway": "other"},
    "suffix_target": {"suffix_target": "table"},
    "catalog_mapping": {"catalog_mapping": {"^pr_": "prod"}},
    "state_schema_version": {"state_schema_version": 103},
    "snapshot.model": with_snapshot(model="shop.order"),
    "snapshot.fingerprint": with_snapshot(fingerprint="1-2-3-5"),
    "snapshot.category": with_snapshot(category="non_breaking"),
    "snapshot.preview": with_snapshot(preview=True),
    "snapshot.promoted": with_snapshot(promoted=False),
    "snapshot.start": with_snapshot(start="2024-01-02T00:00:00Z"),
    "snapshot.end": with_snapshot(end="2024-01-10T00:00:00Z"),
    "snapshot added": {"snapshots": [SNAPSHOT]},
    "removed": {"removed": []},
    "restatements": {"restatements": []},
    "restatements.start": {
        "restatements": [
            IDENTITY.restatements[0].model_copy(update={"start": "2023-12-31T00:00:00Z"})
        ]
    },
    "flags.forward_only": with_flags(forward_only=True),
    "flags.include_unmodified": with_flags(include_unmodified=True),
    "flags.skip_backfill": with_flags(skip_backfill=True),
    "flags.min_intervals": with_flags(min_intervals=3),
    "flags.preview_start": with_flags(preview_start="2024-01-05"),
    "flags.preview_min_intervals": with_flags(preview_min_intervals=2),
    "flags.select_models": with_flags(select_models=["shop.orders"]),
    "flags.restate_models": with_flags(restate_models=["shop.orders"]),
    "flags.allow_destructive": with_flags(allow_destructive=["shop.orders"]),
    "window.start": with_window(start="2024-01-03T00:00:00Z"),
    "window.end": with_window(end="2024-01-12T00:00:00Z"),
    "window.execution_time": with_window(execution_time="2024-01-12T00:00:00Z"),
    "statements.before_all": with_statement(before_all=["SELECT 3"]),
    "statements.after_all": with_statement(after_all=["SELECT 3"]),
    "statements.python_env": with_statement(python_env_sha256="1" * 64),
    "statements order": {
        "statements": [STATEMENT, STATEMENT.model_copy(update={"before_all": ["SELECT 4"]})]
    },
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_plan_id__changes_with_every_field(name: str) -> None:
    changed = IDENTITY.model_copy(update=MUTATIONS[name])

    assert changed.plan_id() != IDENTITY.plan_id()


def test_mutations__cover_every_field_of_the_identity() -> None:
    named = {name.partition(".")[0].partition(" ")[0] for name in MUTATIONS}
    covered = {"snapshots" if name == "snapshot" else name for name in named}
    assert covered == set(PlanIdentity.model_fields)
    for prefix, model in (("snapshot", TargetSnapshot), ("flags", PlanFlags), ("window", Window)):
        fields = {name.partition(".")[2] for name in MUTATIONS if name.startswith(f"{prefix}.")}
        assert fields == set(model.model_fields)


def test_plan_id__does_not_depend_on_the_order_of_sets() -> None:
    turned = IDENTITY.model_copy(
        update={
            "snapshots": [OTHER, SNAPSHOT],
            "flags": PlanFlags(select_models=["b", "a"]),
        }
    )
    straight = IDENTITY.model_copy(update={"flags": PlanFlags(select_models=["a", "b"])})

    assert turned.plan_id() == straight.plan_id()


def test_plan_id__survives_json() -> None:
    again = PlanIdentity.model_validate_json(IDENTITY.to_json())

    assert again.plan_id() == IDENTITY.plan_id()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(8, True), (12, True), (64, True), (7, False), (0, False)],
)
def test_matches__takes_prefixes_of_eight_or_more(asked: int, *, expected: bool) -> None:
    plan_id = IDENTITY.plan_id()

    assert matches_plan_id(plan_id[:asked], plan_id) is expected
    assert matches_plan_id(plan_id[:asked].upper(), plan_id) is expected


def test_difference__names_sets_and_fields() -> None:
    current = IDENTITY.model_copy(
        update={
            "snapshots": [
                SNAPSHOT.model_copy(update={"fingerprint": "9"}),
                OTHER.model_copy(update={"model": "shop.new"}),
            ],
            "gateway": "other",
        }
    )

    found = compare_identities(IDENTITY, current)

    assert found.snapshots_changed == ["shop.orders"]
    assert found.snapshots_added == ["shop.new"]
    assert found.snapshots_gone == ["shop.revenue"]
    assert found.fields_changed == ["gateway"]


@pytest.mark.parametrize(
    ("models", "called"),
    [
        (['"lake"."shop"."orders"', '"lake"."shop"."new"'], ["shop.new", "shop.orders"]),
        (
            ['"lake"."shop"."orders"', '"raw"."shop"."orders"'],
            ["lake.shop.orders", "raw.shop.orders"],
        ),
        (['"shop"."orders"', "shop.new"], ["shop.new", "shop.orders"]),
        (['"lake"."shop"."a.b"'], ["shop.a.b"]),
    ],
)
def test_difference__calls_models_as_reports_do(models: list[str], called: list[str]) -> None:
    empty = IDENTITY.model_copy(update={"snapshots": []})
    snapshots = [SNAPSHOT.model_copy(update={"model": model}) for model in models]

    found = compare_identities(empty, IDENTITY.model_copy(update={"snapshots": snapshots}))

    assert found.snapshots_added == called


# --- prod's plan ----------------------------------------------------------------------------------

PROD = ProdIdentity(
    snapshots=[
        ProdSnapshot(model="a", fingerprint="1-2-3-4", category="breaking", forward_only=False),
        ProdSnapshot(model="b", fingerprint="5-6-7-8", category="metadata", forward_only=False),
    ],
    removed=["c", "d"],
    statements=[StatementIdentity(before_all=["SELECT 1"], after_all=[], python_env_sha256="0")],
)
OTHERS_OF_A_SNAPSHOT = {
    "model": "z",
    "fingerprint": "1-2-3-5",
    "category": "non_breaking",
    "forward_only": True,
}


@pytest.mark.parametrize("field", ProdSnapshot.model_fields)
def test_prod__every_field_of_a_model_changes_the_id(field: str) -> None:
    first, *rest = PROD.snapshots
    other = first.model_copy(update={field: OTHERS_OF_A_SNAPSHOT[field]})
    changed = PROD.model_copy(update={"snapshots": [other, *rest]})
    assert changed.plan_id() != PROD.plan_id()


@pytest.mark.parametrize("field", ProdIdentity.model_fields)
def test_prod__every_part_changes_the_id(field: str) -> None:
    fewer = PROD.model_copy(update={field: getattr(PROD, field)[1:]})
    assert fewer.plan_id() != PROD.plan_id()


def test_prod__the_order_in_which_things_are_found_does_not() -> None:
    turned = PROD.model_copy(
        update={"snapshots": PROD.snapshots[::-1], "removed": PROD.removed[::-1]}
    )
    assert turned.plan_id() == PROD.plan_id()
