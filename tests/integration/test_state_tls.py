"""A state whose PostgreSQL takes no connection without TLS, and shows whose it is."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ci_bot.worker.state_store.leases import LeaseBook
from tests import databases
from tests.conftest import PROD_UNTIL, missing, run_python
from tests.integration.test_postgres_state import DUCKDB, own_database
from tests.integration.test_review import ADD_ORDERS
from tests.integration.test_state_servers import check_leases, duck_on, state_on
from tests.lease_process import FAST, connection
from tests.projects import CONFIG, Shop, write_shop
from tests.projects.duck import run_prod
from tests.worker import client

pytestmark = pytest.mark.postgres

# What libpq reads; SQLMesh's configuration has no key for it.
AUTHORITY = "PGSSLROOTCERT"
HOST = "localhost"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.certificate_for(HOST, tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def guarded(certificate: Path) -> Iterator[str]:
    """The URL of a server that takes TLS alone, by the name in its certificate."""
    given = os.environ.get("CI_BOT_TEST_POSTGRES_PROGRAMS")
    programs = Path(given) if given else databases.installed_postgres()
    if programs is None:
        missing("there is no PostgreSQL of Debian's on this machine")
    # Not below pytest's own directory, which each pytest that starts closes to other accounts.
    with (
        tempfile.TemporaryDirectory(prefix="ci-bot-tls-") as place,
        databases.postgresql(programs, Path(place) / "server", certificate) as url,
    ):
        yield url.replace("127.0.0.1", HOST)


@pytest.fixture
def state(guarded: str) -> Iterator[str]:
    """The URL of a database of the test's own there."""
    with own_database(guarded, "tls") as (name, _):
        yield f"{guarded.rpartition('/')[0]}/{name}"


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTHORITY, str(certificate))


def with_mode(config: str, mode: str) -> str:
    changed = re.sub(r"^( +)type: postgres$", rf"\g<0>\n\1sslmode: {mode}", config, flags=re.M)
    assert changed != config
    return changed


def shop_on(root: Path, url: str, mode: str = "verify-full") -> Shop:
    shop = duck_on(root, url)
    config = (shop.project / "config.yaml").read_text("utf-8")
    shop.write("config.yaml", with_mode(config, mode))
    return shop


def test_review__reads_a_state_whose_certificate_is_vouched_for(
    state: str, trusted: None, tmp_path: Path
) -> None:
    shop = shop_on(tmp_path / "shop", state)
    run_prod(shop, "2024-01-10")
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")

    report = client(shop).review("pr_6")

    assert report.failure is None
    assert report.baseline == "state"
    assert report.changes


@pytest.mark.parametrize("mode", ["verify-full", "disable"])
def test_review__of_a_state_that_is_not_vouched_for_or_without_tls__says_where_to_look(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    (tmp_path / "other").mkdir()
    other = databases.certificate_for(HOST, tmp_path / "other")
    monkeypatch.setenv(AUTHORITY, str(other))
    shop = shop_on(tmp_path / "shop", state, mode)

    failure = client(shop).review("pr_6").failure

    assert failure is not None
    assert failure.exit_code == 2
    assert "sslmode" in (failure.hint or "")
    assert str(urlsplit(state).password) not in failure.message


def test_leases__over_tls__one_run_at_a_time(state: str, trusted: None) -> None:
    guarded = connection(state).copy(update={"sslmode": "verify-full"})

    def known() -> LeaseBook:
        return LeaseBook(guarded.create_engine_adapter(concurrent_tasks=2), timing=FAST)

    check_leases(known(), known())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.night
def test_life__with_state_over_tls(state: str, trusted: None, tmp_path: Path, java: None) -> None:
    config = CONFIG.replace(DUCKDB, with_mode(state_on(state), "verify-full"))
    shop = write_shop(tmp_path / "shop", config=config)
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    worker = client(shop)

    report = worker.review("pr_6")
    applied = worker.apply("pr_6", plan_id=report.plan_id)
    removed = worker.cleanup("pr_6")

    assert (report.failure, applied.failure, removed.failure) == (None, None, None)
    assert (applied.result, removed.result) == ("applied", "removed")
    assert removed.state_record_removed
