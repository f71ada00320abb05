"""`ci-bot policy check` and `ci-bot policy explain` on a laptop, with the real worker."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.cli.policy_check import check_policy_on_laptop, explain_policy_on_laptop
from ci_bot.errors import BadInput
from ci_bot.host import Machine, make_process_machine
from tests.projects.repository import Repository, write_repository

POLICY = "project/.sqlmesh-review.yaml"
TEXT = """\
severity:
  - {rule: select-star, severity: low, reason: everywhere}
  - {rule: filter-changed, severity: low, models: shop.top*, reason: thresholds move}
  - {rule: join-changed, severity: "off", models: tag:scratch, reason: a sandbox}
  - {rule: filter-changed, severity: blocker, models: +shop.top_customers, reason: feeds a bill}
ignore:
  - {rule: missing-grain, paths: "*/models/top*", reason: a view, until: 2020-01-31}
data-diff:
  - {models: shop.orders, tolerance: 0.5, reason: random}
owners:
  - {models: shop.*, github: [alice, acme/data]}
  - {owner: data, github: bob}
"""


def machine(directory: Path) -> tuple[Machine, io.StringIO]:
    out = io.StringIO()
    return replace(make_process_machine(), directory=directory, out=out, log=io.StringIO()), out


def explain(made: Repository, model: str, base_ref: str | None = None) -> str:
    around, out = machine(made.root)
    code = explain_policy_on_laptop(
        around,
        model=model,
        projects=("project",),
        gateway=None,
        base_ref=base_ref,
        python_path=(),
        worker_env="",
        timeout_minutes=5,
    )
    assert code == 0
    return out.getvalue()


def told(text: str) -> str:
    """The text without its line ends."""
    return " ".join(text.split())


def lines(text: str) -> list[int]:
    """The lines of the policy that are shown, in the order in which they are."""
    return [int(number) for number in re.findall(r"^  line (\d+) ", text, re.MULTILINE)]


def test_explain__shows_the_entries_about_a_model_with_their_lines(tmp_path: Path) -> None:
    made = write_repository(tmp_path, {POLICY: TEXT})
    top = explain(made, "shop.top_customers")
    assert lines(top) == [2, 3, 5, 7, 11]
    assert "shop.top_customers" in top.splitlines()[0]
    assert "project/models/top_customers.sql" in top
    assert "of this directory; a pull request is judged by the base branch's" in told(top)
    assert "filter-changed on shop.top* weighs low" in top
    assert "thresholds move" in top
    assert "it is over, and ignores nothing any more" in told(top)
    assert "@alice and @acme/data, by project/.sqlmesh-review.yaml line 11" in top

    orders = explain(made, "shop.orders", base_ref="HEAD")
    assert lines(orders) == [2, 5, 9, 11]
    assert re.search(r"\.sqlmesh-review\.yaml of commit [0-9a-f]{7}", orders)


def test_explain__names_codeowners_where_the_policy_names_nobody(tmp_path: Path) -> None:
    files = {".github/CODEOWNERS": "*.sql @carol\n/project/models/top* @dave @acme/bi\n"}
    made = write_repository(tmp_path, files)
    text = told(explain(made, "shop.top_customers"))
    assert "No entry is about this model" in text
    assert "@dave and @acme/bi, by .github/CODEOWNERS line 2" in text


def test_explain__of_no_model_names_its_neighbours(tmp_path: Path) -> None:
    made = write_repository(tmp_path)
    with pytest.raises(BadInput) as caught:
        explain(made, "shop.top_customer")
    assert caught.value.reason_code == "unknown_model"
    assert "`shop.top_customers`" in str(caught.value.hint)


def test_check__prints_each_entry_or_refuses(tmp_path: Path) -> None:
    (tmp_path / ".sqlmesh-review.yaml").write_text(TEXT)
    around, out = machine(tmp_path)
    assert check_policy_on_laptop(around, path=".") == 0
    assert lines(out.getvalue()) == [2, 3, 4, 5, 7, 9, 11, 12]
    assert "8 entries, all of them can be used" in out.getvalue()

    (tmp_path / ".sqlmesh-review.yaml").write_text(TEXT.replace("shop.top*", "'(shop.top*'"))
    around, out = machine(tmp_path)
    with pytest.raises(BadInput) as caught:
        check_policy_on_laptop(around, path=".sqlmesh-review.yaml")
    assert (caught.value.path, caught.value.line) == (".sqlmesh-review.yaml", 3)
    assert "SQLMesh cannot read the selection" in caught.value.message
    assert out.getvalue() == ""


def test_check__of_nothing_says_where_a_policy_is(tmp_path: Path) -> None:
    around, _ = machine(tmp_path)
    with pytest.raises(BadInput, match=r"There is no policy '\.sqlmesh-review\.yaml'"):
        check_policy_on_laptop(around, path=".")
