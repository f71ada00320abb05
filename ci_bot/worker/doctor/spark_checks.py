"""What Java, Spark and its catalogs tell; plain questions, nothing is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ci_bot.contracts.documents.plan import ProjectCheck
from ci_bot.errors import BadInput
from ci_bot.secrets.cutting import shortened
from ci_bot.worker import compat
from ci_bot.worker.doctor.spark_network import LOCAL
from ci_bot.worker.process import java
from ci_bot.worker.warehouse import objects
from ci_bot.worker.warehouse.catalog import AdapterSql, Catalog, Relation, quoted
from ci_bot.worker.words.problems import headline

_MOST_VIEWS = 50
# A standalone cluster gives an executor within seconds, Kubernetes has to fetch an image first.
EXECUTOR_SECONDS = 60.0
_LONGEST = 3_000


def java_runtime(environ: Mapping[str, str], python: str) -> ProjectCheck:
    """Which Java Spark will run on.

    Raises:
        BadInput: there is none, or it does not run.
    """
    found = java.runtime({**environ, **java.java_environment(environ, python=python)})
    spark_ = java.spark_version()
    if found is None or found.version is None:
        raise BadInput(
            f"{found.program if found else 'java'} does not say which version it is.",
            hint="Point JAVA_HOME at a Java 17 runtime.",
            reason_code="no_java",
        )
    java.check(found, spark_)
    if found.version in java.runs_on(spark_):
        return ProjectCheck(name="java", status="ok", message=str(found))
    fix = f"{java.in_words(spark_)}; point JAVA_HOME at one of them."
    return ProjectCheck(name="java", status="warn", message=str(found), fix=fix)


def spark(context: Any, now: Callable[[], float]) -> ProjectCheck:
    """Whether a session starts, where, and how long that takes by the clock `now`."""
    began = now()
    session = context.engine_adapter.spark
    took = now() - began
    master = session.conf.get("spark.master", "unknown")
    message = f"Spark {session.version} on {master}, started in {took:.0f} s"
    return ProjectCheck(name="spark", status="ok", message=message)


def executors(context: Any, seconds: float = EXECUTOR_SECONDS) -> ProjectCheck | None:
    """Whether an executor does a job; None where the driver is the only one.

    That takes all that no look at settings shows: the way back to the driver, a worker that has as
    much memory as is asked for, and cores that are free.
    """
    if LOCAL.match(str(context.engine_adapter.spark.conf.get("spark.master", "local"))):
        return None
    why = compat.runs_a_job(context, seconds)
    if why is None:
        count = compat.executor_count(context)
        return ProjectCheck(
            name="executors", status="ok", message=f"{count} of them; one has done a job"
        )
    return ProjectCheck(
        name="executors",
        status="fail",
        message=f"No executor did a job in {seconds:.0f} s: none came, or the cluster is full.",
        fix="Open the ports of `spark.driver.port` and `spark.driver.blockManager.port` from the "
        "cluster to this machine, and ask for no more memory (`spark.executor.memory`) and cores "
        "than a worker has; the cluster's own page shows what it has, and why executors end.",
    )


def catalogs(context: Any) -> ProjectCheck:
    """Which catalogs there are, and whether the configuration names the default one."""
    sql = AdapterSql(context.engine_adapter)
    current = str(sql.rows("SELECT current_catalog()")[0][0])
    # Spark lists a catalog only once somebody has used it.
    names = sorted({str(row[0]) for row in sql.rows("SHOW CATALOGS")} | {current})
    shown = f"{', '.join(names)}; the default is {current}"
    guess = compat.default_catalog(context)
    if guess == current:
        return ProjectCheck(name="catalogs", status="ok", message=shown)
    return ProjectCheck(
        name="catalogs",
        status="warn",
        message=f"{shown}, and the configuration says {guess}",
        fix=f"Add `catalog: {current}` to the gateway's connection, so that a plan need not start "
        "Spark to ask.",
    )


def views_of_prod(context: Any, prod: Any) -> list[Relation]:
    """The views of the prod environment; none where there is no prod."""
    if prod is None:
        return []
    return sorted(objects.views_of(context, prod).values())


def views(context: Any, known: Sequence[Relation]) -> ProjectCheck:
    """Whether the catalog holds views, of which every environment consists."""
    catalog = known[0].catalog if known else str(compat.default_catalog(context))
    schema = known[0].schema if known else "default"
    if not Catalog(AdapterSql(context.engine_adapter)).holds_views(catalog, schema):
        return ProjectCheck(
            name="views",
            status="fail",
            message=f"The catalog {catalog} does not hold views, and every environment consists of "
            "views.",
            fix="Use a catalog that does: Hive's, or Iceberg's through REST or JDBC.",
        )
    return ProjectCheck(name="views", status="ok", message=f"the catalog {catalog} holds views")


def listing(context: Any, known: Sequence[Relation]) -> ProjectCheck:
    """Whether SQLMesh's own commands can list what a schema of prod holds.

    They ask with SHOW TABLE EXTENDED, and take a refusal for "nothing is there yet".
    """
    if not known:
        return ProjectCheck(name="listing", status="ok", message="there is nothing to list yet")
    place = f"{quoted(known[0].catalog)}.{quoted(known[0].schema)}"
    try:
        AdapterSql(context.engine_adapter).rows(f"SHOW TABLE EXTENDED IN {place} LIKE 'ci_bot'")
    except Exception as error:
        why = shortened(headline(error), _LONGEST)
        return ProjectCheck(
            name="listing",
            status="warn",
            message=f"SQLMesh cannot list what {known[0].catalog} holds ({why}); its own commands "
            "leave FULL and SEED tables empty there, and cannot replace views",
            fix="Look at prod's FULL and SEED tables after a `sqlmesh plan` or `run`. Applies of "
            "this action list the catalog by other means.",
        )
    message = f"SQLMesh can list what {known[0].catalog} holds"
    return ProjectCheck(name="listing", status="ok", message=message)


def rights(context: Any, known: Sequence[Relation]) -> ProjectCheck:
    """Whether prod can be read. Whether schemas may be created shows at the first apply."""
    asked = known[:_MOST_VIEWS]
    if not asked:
        message = "there is nothing to read yet; creating was not tried"
        return ProjectCheck(name="rights", status="ok", message=message)
    answers = Catalog(AdapterSql(context.engine_adapter)).resolve(asked)
    broken = {view: why for view, why in answers.items() if why is not None}
    read = f"{len(asked) - len(broken)} of {len(asked)} views of prod can be read"
    if not broken:
        message = f"{read}; creating was not tried"
        return ProjectCheck(name="rights", status="ok", message=message)
    view, why = next(iter(broken.items()))
    return ProjectCheck(
        name="rights",
        status="fail",
        message=f"{read}; {view.shown}: {shortened(headline(why), _LONGEST)}",
        fix="Give this account the right to read prod's schemas and the physical ones, or run "
        "`sqlmesh plan` if the view is broken.",
    )
