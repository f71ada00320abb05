"""`ci-bot apply --probe` on a laptop, and the limit that an apply there holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci_bot.errors import EXIT_BAD_INPUT, EXIT_DONE, EXIT_REFUSED
from tests.integration.test_wrong_values import ci_bot
from tests.projects import Shop

APPLY = ("apply", "--environment", "pr_90")
POLICY = "version: 1\nlimits:\n  max-executor-hours: 0.000001\n"


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_probe__at_a_terminal_and_then_the_policys_limit(shop: Shop) -> None:
    shop.edit("models/orders.sql", "customer_id * 10 AS INT", "customer_id * 7 AS INT")

    probed = ci_bot(*APPLY, "--probe", directory=shop.project)

    assert probed.code == EXIT_DONE, probed.err
    text = " ".join(probed.out.split())
    assert "The newest batch of 1 model was built" in text
    assert "shop.revenue: its kind (FULL) is built as a whole" in text.replace("`", "")
    assert "ci-bot apply --environment pr_90 --plan-id" in text.replace("--project . ", "")
    assert "pr_90" not in shop.environments()

    shop.write(".sqlmesh-review.yaml", POLICY)
    refused = ci_bot(*APPLY, "--format", "json", directory=shop.project)
    assert refused.code == EXIT_REFUSED, refused.err
    document = json.loads(refused.out)
    assert (document["result"], document["reason_code"]) == ("refused", "over_budget")

    cleaned = ci_bot(
        "cleanup", "--environment", "pr_90", "--reclaim", "always", directory=shop.project
    )
    assert cleaned.code == EXIT_DONE, cleaned.out + cleaned.err
    assert "pr_90" not in shop.not_cleaned_up()


def test_probe__writes_no_files(tmp_path: Path) -> None:
    ran = ci_bot(*APPLY, "--probe", "--output", "report", directory=tmp_path)
    assert ran.code == EXIT_BAD_INPUT
    assert "`--output` is for the report of an environment, and a probe makes none." in ran.err
