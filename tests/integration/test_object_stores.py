"""Lives in a warehouse that lies in an object store, through Hadoop's file systems of the clouds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import PROD_UNTIL, missing, run_python
from tests.go_programs import GoProgramMissingError
from tests.integration.test_doctor import examine
from tests.integration.test_other_catalogs import brought
from tests.integration.test_standalone import live
from tests.maven import AWS_SDK, GCS_CONNECTOR, HADOOP_AWS, Artifact
from tests.object_stores import ObjectStore, gcs, s3
from tests.projects import Shop, write_shop
from tests.worker import client

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.night,
    pytest.mark.own_jvm,  # jars belong to a JVM
]


def running(store: AbstractContextManager[ObjectStore]) -> Iterator[ObjectStore]:
    try:
        with store as found:
            yield found
    except GoProgramMissingError as error:
        missing(str(error))


@pytest.fixture
def on_s3(tmp_path: Path, java: None) -> Iterator[ObjectStore]:
    yield from running(s3(tmp_path / "s3"))


@pytest.fixture
def on_gcs(tmp_path: Path, java: None) -> Iterator[ObjectStore]:
    yield from running(gcs(tmp_path / "gcs"))


def shop_in(
    store: ObjectStore, jars: tuple[Artifact, ...], root: Path, monkeypatch: pytest.MonkeyPatch
) -> Shop:
    """The shop, whose tables lie in a store, with prod built there."""
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    shop = write_shop(root)
    settings = {"spark.jars": ",".join(brought(*jars)), **store.spark}
    lines = [f'{name}: "{value}"' for name, value in settings.items()]
    shop.edit("config.yaml", "spark.master", "\n        ".join([*lines, "spark.master"]))
    shop.edit("config.yaml", str(shop.warehouse), f"{store.place}/warehouse")
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    return shop


def check_life(shop: Shop, store: ObjectStore, scratch: Path, parts: set[str]) -> None:
    """Doctor, review, apply, cleanup; `parts` are lines of doctor's."""
    _, checks, _ = examine(shop.project, scratch)
    assert {part: checks[part]["status"] for part in parts} == dict.fromkeys(parts, "ok")
    before = store.objects()
    assert before, "prod is not in the store"

    removed = live(shop, client(shop), merged=False, reclaim="always")

    assert len(removed.tables_reclaimed) == 2
    assert sum(table.bytes or 0 for table in removed.tables_reclaimed) > 0
    assert store.objects() == before, "the store holds what it held before the pull request"


def test_life__in_s3(on_s3: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = shop_in(on_s3, (HADOOP_AWS, AWS_SDK), tmp_path / "shop", monkeypatch)

    check_life(shop, on_s3, tmp_path / "doctor", {"jars", "credentials of AWS", "listing"})


def test_life__in_google_cloud_storage(
    on_gcs: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_in(on_gcs, (GCS_CONNECTOR,), tmp_path / "shop", monkeypatch)

    check_life(
        shop, on_gcs, tmp_path / "doctor", {"jars", "credentials of Google Cloud", "listing"}
    )
