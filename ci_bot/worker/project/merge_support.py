"""Whether Spark can MERGE into the table that SQLMesh makes for a model.

SQLMesh merges into models of the kind INCREMENTAL_BY_UNIQUE_KEY, from their second batch on: the
first one replaces the whole table (`IncrementalByUniqueKeyStrategy` in `core/snapshot/evaluator`).
Spark can do that if the table's format has a MERGE of its own. The model decides which format the
table gets, else the catalog, else Spark's default. If the format cannot be known, nothing is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlmesh.core.config import Config
    from sqlmesh.core.model import Model

# Formats whose tables take a MERGE on Spark; names as written after USING.
_MERGING = frozenset({"delta", "iceberg", "hudi", "paimon"})
_SESSION_CATALOG = "spark_catalog"
_CATALOG = "spark.sql.catalog."
_DEFAULT_FORMAT = "spark.sql.sources.default"
_FACTS_OF_SPARK = (_CATALOG, _DEFAULT_FORMAT)


@dataclass(frozen=True)
class GatewayFacts:
    """The settings of a gateway that decide the format of its tables.

    Attributes:
        engine: SQLMesh's name of its type of connection.
        catalog: the connection's catalog; None if it names none.
        settings: Spark's settings that define a catalog, and the default format.
        complete: whether these are all settings; False if Spark also reads a file.
    """

    engine: str
    catalog: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True


def list_gateways_of_project(config: Config, chosen: str | None = None) -> dict[str, GatewayFacts]:
    """Reads the facts of each gateway, by its name in lower case; "" is the default one."""
    found: dict[str, GatewayFacts] = {}
    for name, gateway in config.gateways.items():
        if gateway.connection is not None:
            found[name.lower()] = _read_gateway_facts_of_project(gateway.connection)
    # If none is named, SQLMesh takes the first one.
    default = (chosen or config.default_gateway or next(iter(config.gateways), "")).lower()
    if default in found:
        found[""] = found[default]
    elif config.default_connection is not None:
        found[""] = _read_gateway_facts_of_project(config.default_connection)
    return found


def read_catalog_settings_of_session(get: Callable[[str, str], Any]) -> dict[str, str]:
    """Reads a running session's settings of its own catalog and of the default format.

    Args:
        get: returns a setting, or the second argument if it is not set.
    """
    keys = (f"{_CATALOG}{_SESSION_CATALOG}", _DEFAULT_FORMAT)
    return {key: str(value) for key in keys if (value := get(key, ""))}


def _read_gateway_facts_of_project(connection: Any) -> GatewayFacts:
    settings = getattr(connection, "config", None)
    return GatewayFacts(
        engine=str(connection.type_),
        catalog=getattr(connection, "catalog", None),
        settings={
            key: str(value)
            for key, value in (settings.items() if isinstance(settings, dict) else ())
            if key.startswith(_FACTS_OF_SPARK)
        },
        complete=not getattr(connection, "config_dir", None),
    )


def describe_merge_obstacle_in_project(
    model: Model, gateways: Mapping[str, GatewayFacts]
) -> str | None:
    """Describes why the second batch of a model fails, as the end of a sentence.

    None if it does not fail, if SQLMesh merges nothing, or if that cannot be known.
    """
    if not model.kind.is_incremental_by_unique_key:
        return None
    gateway = gateways.get((model.gateway or "").lower())
    if gateway is None or gateway.engine not in ("spark", "databricks"):
        return None
    named = _read_declared_format_of_model(model, gateway.engine)
    if named is not None and named in _MERGING:
        return None
    if gateway.engine == "databricks":  # whose default is Delta
        return _describe_format_merge_obstacle(named) if named is not None else None
    return _describe_spark_merge_obstacle(model, gateway, named)


def _read_declared_format_of_model(model: Model, engine: str) -> str | None:
    """Returns the format that SQLMesh writes after USING; None if it writes none."""
    of_table = str(model.table_format or "").lower() if engine == "spark" else ""
    return of_table or str(model.storage_format or "").lower() or None


def _describe_spark_merge_obstacle(
    model: Model, gateway: GatewayFacts, named: str | None
) -> str | None:
    catalog = str(model.catalog or gateway.catalog or _SESSION_CATALOG).strip('"`')
    if catalog != _SESSION_CATALOG:
        # A custom catalog makes tables of its own format, whatever follows USING; a catalog that is
        # not in this configuration is configured elsewhere.
        return None
    if named is not None:
        return _describe_format_merge_obstacle(named)
    default = gateway.settings.get(_DEFAULT_FORMAT, "").lower()
    if default in _MERGING or not gateway.complete:
        return None
    kind = gateway.settings.get(f"{_CATALOG}{_SESSION_CATALOG}")
    if kind is not None and "iceberg" in kind.lower():
        return None  # it may use its own format for tables without one
    return _describe_format_merge_obstacle(default or None)


def _describe_format_merge_obstacle(name: str | None) -> str:
    table = f"a table of the format `{name}`" if name else "a table without a table format"
    return f"Spark cannot MERGE into {table}"
