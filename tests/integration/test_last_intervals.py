"""Tables whose interval is longer than the plan's window: what an environment gets of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlmesh.core.context import Context

from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.worker import Client

UNTIL = "2024-03-12"
MONTHLY = """\
MODEL (name shop.monthly, kind {kind}, cron '{cron}');

SELECT customer_id, SUM(amount) AS total FROM shop.orders GROUP BY customer_id
"""
READER = "MODEL (name shop.reader, kind FULL);\n\nSELECT SUM(total) AS total FROM shop.monthly\n"
BY_MONTH = """\
MODEL (
  name shop.monthly,
  kind INCREMENTAL_BY_TIME_RANGE (time_column order_date),
  cron '@monthly'
);

SELECT order_date, SUM(amount) AS total FROM shop.orders
WHERE order_date BETWEEN @start_ds AND @end_ds GROUP BY order_date
"""


def prod_with(tmp_path: Path, monthly: str, config: str = "") -> Shop:
    shop = write_duck_shop(tmp_path)
    shop.write("models/monthly.sql", monthly)
    shop.write("models/reader.sql", READER)
    if config:
        path = shop.project / "config.yaml"
        path.write_text(path.read_text() + config)
    run_prod(shop, UNTIL)
    shop.edit("models/monthly.sql", "SUM(amount)", "SUM(amount) + 1")
    return shop


def built(report: Report) -> dict[str, int]:
    return {item.model: item.intervals for item in report.backfill}


def window(report: Report, model: str) -> tuple[str | None, str | None]:
    assert report.identity is not None
    (found,) = (s for s in report.identity.snapshots if s.model.endswith(f'"{model}"'))
    return found.start, found.end


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("cron", "start", "last"),
    [
        ("@monthly", "2024-03-03", ("2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z")),
        # A week is filled by days: it ends on a Sunday.
        ("@weekly", "2024-03-11", ("2024-03-03T00:00:00Z", "2024-03-10T00:00:00Z")),
    ],
)
def test_full__gets_its_last_interval_where_the_window_has_none(
    tmp_path: Path, cron: str, start: str, last: tuple[str, str]
) -> None:
    shop = prod_with(tmp_path, MONTHLY.format(kind="FULL", cron=cron))

    report = Client(shop.project).review("pr_1", start=start)

    assert built(report).keys() == {"shop.monthly", "shop.reader"}
    assert window(report, "monthly") == last
    (note,) = (note for note in report.notes if "it gets its last one" in note)
    assert "holds no whole interval of `shop.monthly`" in note
    assert f"{last[0][:10]} to {last[1][:10]}" in note
    again = Client(shop.project).review("pr_1", start=start)
    assert again.plan_id == report.plan_id


@pytest.mark.night
@pytest.mark.parametrize(
    ("cron", "start"),
    [
        ("@monthly", "2024-02-20"),  # February ends in the window, and is longer than it
        ("0 0 5 * *", "2024-02-20"),
        ("0 0 5 * *", "2024-03-06"),  # a month is filled up to its first, whenever it runs
        ("@monthly", "2024-03-01"),
    ],
)
@pytest.mark.parametrize("forward_only", [None, True])
def test_full__gets_its_last_interval_in_a_window_shorter_than_that(
    tmp_path: Path, cron: str, start: str, *, forward_only: bool | None
) -> None:
    shop = prod_with(tmp_path, MONTHLY.format(kind="FULL", cron=cron))

    report = Client(shop.project).review(
        "pr_1", start=start, flags=GivenFlags(forward_only=forward_only)
    )

    assert built(report).keys() == {"shop.monthly", "shop.reader"}
    assert window(report, "monthly") == ("2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z")
    assert any("it gets its last one, 2024-02-01 to 2024-03-01" in note for note in report.notes)


@pytest.mark.night
def test_full__that_prod_has_not_run_for_two_intervals_gets_the_last_that_prod_has(
    tmp_path: Path,
) -> None:
    shop = write_duck_shop(tmp_path)
    shop.write("models/monthly.sql", MONTHLY.format(kind="FULL", cron="@monthly"))
    shop.write("models/reader.sql", READER)
    run_prod(shop, "2024-02-02")
    context = Context(paths=[str(shop.project)])
    context.run(
        "prod",
        end=UNTIL,
        execution_time=UNTIL,
        select_models=["shop.orders"],
        no_auto_upstream=True,
    )
    context.close()
    shop.edit("models/monthly.sql", "SUM(amount)", "SUM(amount) + 1")

    report = Client(shop.project).review("pr_1", start="2024-03-05")

    assert built(report)["shop.monthly"] == 1
    assert any("it gets its last one, 2024-01-01 to 2024-02-01" in note for note in report.notes)
    # The identity says what the window asks for; how far prod has come is no part of it.
    assert window(report, "monthly") == ("2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z")


@pytest.mark.night
def test_metadata__of_a_table_that_prod_holds_gets_no_interval(tmp_path: Path) -> None:
    shop = prod_with(tmp_path, MONTHLY.format(kind="FULL", cron="@monthly"))
    shop.edit("models/monthly.sql", "SUM(amount) + 1", "SUM(amount)")
    shop.edit("models/monthly.sql", "kind FULL,", "kind FULL, description 'By month.',")

    report = Client(shop.project).review("pr_1", start="2024-03-03")

    assert built(report) == {}
    assert not [note for note in report.notes if "window" in note]


@pytest.mark.night
def test_full__that_the_window_holds_stays_as_it_is(tmp_path: Path) -> None:
    shop = prod_with(tmp_path, MONTHLY.format(kind="FULL", cron="@daily"))

    report = Client(shop.project).review("pr_1", start="2024-03-03")

    assert window(report, "monthly") == ("2024-03-03T00:00:00Z", "2024-03-12T00:00:00Z")
    assert not [note for note in report.notes if "window" in note]


@pytest.mark.night
def test_full__with_the_bundled_bots_own_start(tmp_path: Path) -> None:
    config = "\ncicd_bot:\n  type: github\n  default_pr_start: 1 week ago\n"
    shop = prod_with(tmp_path, MONTHLY.format(kind="FULL", cron="@monthly"), config)

    report = Client(shop.project).review("pr_1")

    assert "shop.monthly" in built(report)
    assert any("it gets its last one" in note for note in report.notes)


@pytest.mark.night
def test_full__of_a_forward_only_plan_is_previewed_with_its_last_interval(tmp_path: Path) -> None:
    shop = prod_with(tmp_path, MONTHLY.format(kind="FULL", cron="@monthly"))

    report = Client(shop.project).review("pr_1", flags=GivenFlags(forward_only=True))

    assert "shop.monthly" in built(report)


@pytest.mark.night
def test_incremental__says_before_that_it_gets_no_data(tmp_path: Path) -> None:
    shop = prod_with(tmp_path, BY_MONTH)

    report = Client(shop.project).review("pr_1", start="2024-03-03")

    assert built(report).keys() == {"shop.reader"}
    assert any("`shop.monthly` gets no data" in note for note in report.notes)
    least = Client(shop.project).review(
        "pr_1", start="2024-03-03", flags=GivenFlags(min_intervals=1)
    )
    assert built(least).keys() == {"shop.monthly", "shop.reader"}
    assert not [note for note in least.notes if "gets no data" in note]
