"""How reports call physical tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_bot.worker.messages.names import MessageNames


@dataclass
class Snapshot:
    """What a table's name depends on, and how often it was asked for."""

    version: str | None
    name: str = '"spark_catalog"."shop"."orders"'
    dev_version: str = "7"
    asked: list[bool] = field(default_factory=list)

    def table_name(self, is_deployable: bool = True) -> str:
        self.asked.append(is_deployable)
        version = self.version if is_deployable else f"{self.dev_version}__dev"
        return f"spark_catalog.sqlmesh__shop.shop__orders__{version}"


def test_table__is_asked_for_once_and_told_without_the_default_catalog() -> None:
    names, snapshot = MessageNames("spark_catalog", "spark"), Snapshot("1")

    told = [names.table_name(snapshot, deployable=True) for _ in range(3)]

    assert told == ["sqlmesh__shop.shop__orders__1"] * 3
    assert snapshot.asked == [True]


def test_table__of_another_version_or_a_preview_is_another() -> None:
    names = MessageNames("spark_catalog", "spark")
    names.table_name(Snapshot("1"), deployable=True)

    assert names.table_name(Snapshot("2"), deployable=True) == "sqlmesh__shop.shop__orders__2"
    assert names.table_name(Snapshot("1"), deployable=False) == "sqlmesh__shop.shop__orders__7__dev"
    later = Snapshot("1", dev_version="8")
    assert names.table_name(later, deployable=False) == "sqlmesh__shop.shop__orders__8__dev"
