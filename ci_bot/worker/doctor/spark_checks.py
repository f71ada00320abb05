"""Checks of Java, Spark and its catalogs; they create nothing."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_bot.errors import BadInput
from ci_bot.protocol.plan import ProjectCheck
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.doctor.spark_network import LOCAL, SparkSettings
from ci_bot.worker.messages import extract_headline_of_error
from ci_bot.worker.runtime import (
    SparkCatalog,
    SparkCatalogAdapterSql,
    SparkRelation,
    java,
    quote_spark_identifier,
    spark_catalog,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

_NOT_READABLE = "and there is no such file that this account may read."
_DELTA_JARS = "delta-spark_2.12 and delta-storage"
_MOST_VIEWS = 50
# A standalone cluster gives an executor within seconds, Kubernetes has to fetch an image first.
EXECUTOR_SECONDS = 60.0
_LONGEST = 3_000


def check_java_runtime(environ: Mapping[str, str], python: str) -> ProjectCheck:
    """Checks which Java Spark will run on.

    Raises:
        BadInput: there is none, or it does not run.
    """
    found = java.find_java_runtime(
        {**environ, **java.find_java_environment(environ, python=python)}
    )
    spark_version = java.read_spark_version()
    if found is None or found.version is None:
        raise BadInput(
            f"{found.program if found else 'java'} does not say which version it is.",
            hint="Point JAVA_HOME at a Java 17 runtime.",
            reason_code="no_java",
        )
    java.check_java_before_spark_starts(found, spark_version)
    if found.version in java.list_java_versions(spark_version):
        return ProjectCheck(name="java", status="ok", message=str(found))
    fix = f"{java.describe_java_versions(spark_version)}. {java.CHOOSE_ONE}"
    return ProjectCheck(name="java", status="warn", message=str(found), fix=fix)


def check_spark_session(context: Context, now: Callable[[], float]) -> ProjectCheck:
    """Checks whether and where a session starts, and how long that takes by the clock `now`."""
    began = now()
    session = sqlmesh_compat.get_spark_session_of_sqlmesh(context.engine_adapter)
    took = now() - began
    master = session.conf.get("spark.master", "unknown")
    message = f"Spark {session.version} on {master}, started in {took:.0f} s"
    return ProjectCheck(name="spark", status="ok", message=message)


def check_spark_executors(
    context: Context, seconds: float = EXECUTOR_SECONDS
) -> ProjectCheck | None:
    """Checks whether an executor runs a job; None if the driver is the only executor.

    A job needs things that settings do not show: the way back to the driver, a worker with enough
    memory, and free cores.
    """
    session = sqlmesh_compat.get_spark_session_of_sqlmesh(context.engine_adapter)
    if LOCAL.match(str(session.conf.get("spark.master", "local"))):
        return None
    why = sqlmesh_compat.try_spark_job_of_sqlmesh(context, seconds)
    if why is None:
        count = sqlmesh_compat.count_spark_executors_of_sqlmesh(context)
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


def check_spark_catalogs(context: Context) -> ProjectCheck:
    """Lists the catalogs, and checks whether the configuration names the default one."""
    sql = SparkCatalogAdapterSql(context.engine_adapter)
    current = str(sql.query_rows("SELECT current_catalog()")[0][0])
    # Spark lists a catalog only after its first use.
    names = sorted({str(row[0]) for row in sql.query_rows("SHOW CATALOGS")} | {current})
    shown = f"{', '.join(names)}; the default is {current}"
    guess = sqlmesh_compat.read_default_catalog_of_sqlmesh(context)
    if guess == current:
        return ProjectCheck(name="catalogs", status="ok", message=shown)
    return ProjectCheck(
        name="catalogs",
        status="warn",
        message=f"{shown}, and the configuration says {guess}",
        fix=f"Add `catalog: {current}` to the gateway's connection, so that a plan need not start "
        "Spark to ask.",
    )


def list_prod_views_for_doctor(context: Context, prod: Any) -> list[SparkRelation]:
    """Lists the views of prod; empty if there is no prod."""
    if prod is None:
        return []
    return sorted(spark_catalog.list_spark_views_of_environment(context, prod).values())


def check_catalog_supports_views(context: Context, known: Sequence[SparkRelation]) -> ProjectCheck:
    """Checks whether the catalog supports views, because every environment consists of views."""
    catalog = (
        known[0].catalog if known else str(sqlmesh_compat.read_default_catalog_of_sqlmesh(context))
    )
    schema = known[0].schema if known else "default"
    if not SparkCatalog(SparkCatalogAdapterSql(context.engine_adapter)).holds_views(
        catalog, schema
    ):
        return ProjectCheck(
            name="views",
            status="fail",
            message=f"The catalog {catalog} does not hold views, and every environment consists of "
            "views.",
            fix="Use a catalog that does: Hive's, or Iceberg's through REST or JDBC.",
        )
    return ProjectCheck(name="views", status="ok", message=f"the catalog {catalog} holds views")


def check_spark_listing(context: Context, known: Sequence[SparkRelation]) -> ProjectCheck:
    """Checks whether SQLMesh's own commands can list the objects in a schema of prod.

    They use SHOW TABLE EXTENDED, and read a refusal as "nothing is there yet".
    """
    if not known:
        return ProjectCheck(name="listing", status="ok", message="there is nothing to list yet")
    place = f"{quote_spark_identifier(known[0].catalog)}.{quote_spark_identifier(known[0].schema)}"
    try:
        SparkCatalogAdapterSql(context.engine_adapter).query_rows(
            f"SHOW TABLE EXTENDED IN {place} LIKE 'ci_bot'"
        )
    except Exception as error:
        why = shorten_redacted(extract_headline_of_error(error), _LONGEST)
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


def check_spark_rights(context: Context, known: Sequence[SparkRelation]) -> ProjectCheck:
    """Checks whether prod can be read. The right to create schemas shows at the first apply."""
    checked_views = known[:_MOST_VIEWS]
    if not checked_views:
        message = "there is nothing to read yet; creating was not tried"
        return ProjectCheck(name="rights", status="ok", message=message)
    answers = SparkCatalog(SparkCatalogAdapterSql(context.engine_adapter)).resolve_relations(
        checked_views
    )
    broken = {view: why for view, why in answers.items() if why is not None}
    read = f"{len(checked_views) - len(broken)} of {len(checked_views)} views of prod can be read"
    if not broken:
        message = f"{read}; creating was not tried"
        return ProjectCheck(name="rights", status="ok", message=message)
    view, why = next(iter(broken.items()))
    return ProjectCheck(
        name="rights",
        status="fail",
        message=f"{read}; {view.shown_name}: "
        f"{shorten_redacted(extract_headline_of_error(why), _LONGEST)}",
        fix="Give this account the right to read prod's schemas and the physical ones, or run "
        "`sqlmesh plan` if the view is broken.",
    )


# Files that the gateway's settings require besides Spark: jars, and credentials of a cloud.
#
# Spark's error names a missing class, but no jar; some clients retry a store without credentials
# for minutes. So both are checked before Spark starts, in files and variables.


_CLASS_SETTING = re.compile(
    r"spark\.sql\.catalog\.\w+(\.(catalog-impl|io-impl))?\Z|spark\.sql\.extensions\Z"
    r"|spark\.hadoop\.fs\.\w+\.impl\Z"
)

_CLASS = re.compile(r"[a-z_]\w*(\.\w+)+\Z")
# The jar of each package; the first match counts.
_BROUGHT_BY = {
    "org.apache.iceberg.aws.": "iceberg-aws-bundle",
    "org.apache.iceberg.gcp.": "iceberg-gcp-bundle",
    "org.apache.iceberg.azure.": "iceberg-azure-bundle",
    "org.apache.iceberg.": "iceberg-spark-runtime-3.5_2.12",
    "io.delta.": _DELTA_JARS,
    "org.apache.spark.sql.delta.": _DELTA_JARS,
    "org.apache.hadoop.fs.s3a.": "hadoop-aws and the AWS SDK's bundle",
    "org.apache.hadoop.fs.azurebfs.": "hadoop-azure",
    "com.google.cloud.hadoop.": "gcs-connector",
}
# Hadoop's class of a scheme, if no `spark.hadoop.fs.<scheme>.impl` sets one.
_BY_SCHEME = {
    "s3a": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
}

_PLACE = re.compile(r"(?P<scheme>s3a?n?|abfss?|wasbs?|gs)://")


@dataclass(frozen=True)
class _CloudCredentials:
    """The places where a cloud's clients find credentials.

    Attributes:
        settings: Prefixes of settings with credentials, without `spark.hadoop.`.
        variables: Environment variables; one of them is enough.
        files: Those of the variables that name a file.
    """

    name: str
    settings: tuple[str, ...]
    variables: tuple[str, ...]
    files: tuple[str, ...] = ()


_AWS = _CloudCredentials(
    "AWS",
    (
        "fs.s3a.access.key",
        "fs.s3a.aws.credentials.provider",
        "fs.s3a.assumed.role.",
        "fs.s3a.bucket.",
    ),
    (
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_SHARED_CREDENTIALS_FILE",
    ),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SHARED_CREDENTIALS_FILE"),
)

_AZURE = _CloudCredentials(
    "Azure",
    ("fs.azure.account.", "fs.azure.sas."),
    ("AZURE_CLIENT_ID", "AZURE_STORAGE_KEY", "AZURE_FEDERATED_TOKEN_FILE"),
    ("AZURE_FEDERATED_TOKEN_FILE",),
)

_GOOGLE = _CloudCredentials(
    "Google Cloud",
    ("fs.gs.auth.", "google.cloud.auth."),
    ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
    ("GOOGLE_APPLICATION_CREDENTIALS",),
)

_CLOUDS = {
    "s3": _AWS, "s3a": _AWS, "s3n": _AWS, "gs": _GOOGLE,
    "abfs": _AZURE, "abfss": _AZURE, "wasb": _AZURE, "wasbs": _AZURE,
}  # fmt: skip


def check_spark_files(
    settings: SparkSettings, environ: Mapping[str, str], own_jars: Iterable[Path]
) -> Iterator[ProjectCheck]:
    """Checks each jar and cloud that these settings name.

    Args:
        settings: The session's settings: `spark.*`.
        environ: The worker's variables.
        own_jars: The directories of Spark's own jars.
    """
    classes = dict(_list_classes(settings))
    named = _split_spark_setting(settings.get("spark.jars", ""))
    if classes or named:
        yield _check_spark_jars(settings, classes, named, own_jars)
    clouds = {
        _CLOUDS[scheme].name: _CLOUDS[scheme] for scheme in _list_storage_schemes_of_spark(settings)
    }
    for _, cloud in sorted(clouds.items()):
        yield _check_cloud_credentials(cloud, settings, environ)


def _list_classes(settings: SparkSettings) -> Iterator[tuple[str, str]]:
    """Yields each class that a setting or a scheme requires, with its source."""
    for key, value in sorted(settings.items()):
        if _CLASS_SETTING.match(key):
            for name in _split_spark_setting(value):
                if _CLASS.match(name):
                    yield name, f"`{key}`"
    for scheme in sorted(_list_storage_schemes_of_spark(settings)):
        if scheme in _BY_SCHEME and f"spark.hadoop.fs.{scheme}.impl" not in settings:
            yield _BY_SCHEME[scheme], f"{scheme}://"


def _list_storage_schemes_of_spark(settings: SparkSettings) -> set[str]:
    return {found["scheme"] for value in settings.values() for found in _PLACE.finditer(value)}


def _split_spark_setting(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _check_spark_jars(
    settings: SparkSettings, classes: Mapping[str, str], named: list[str], own_jars: Iterable[Path]
) -> ProjectCheck:
    here = [
        Path(jar.removeprefix("file:").replace("//", "/"))
        for jar in named
        if _is_local_spark_jar(jar)
    ]
    absent = [jar for jar in here if not jar.is_file()]
    if absent:
        return ProjectCheck(
            name="jars",
            status="fail",
            message=f"`spark.jars` names {_name_first_and_more(map(str, absent))}, {_NOT_READABLE}",
            fix="An earlier step has to download it into the workspace, readable for everybody; in "
            "the container that is /github/workspace.",
        )
    extra = _split_spark_setting(settings.get("spark.driver.extraClassPath", "").replace(":", ","))
    given = [*here, *(Path(path) for path in extra if path.endswith(".jar"))]
    missing = _list_classes_missing_from_jars(
        _list_classes_missing_from_jars(set(classes), given), _iterate_spark_jars(own_jars)
    )
    # Only the session knows jars that it downloads or finds on other paths.
    elsewhere = (
        len(here) < len(named)
        or len(extra) + len(here) > len(given)
        or bool(settings.get("spark.jars.packages"))
    )
    if not missing or elsewhere:
        found = f"{len(classes) - len(missing)} of {len(classes)} classes found before Spark starts"
        return ProjectCheck(name="jars", status="ok", message=found if classes else "all are there")
    shown = ", ".join(f"{name} (asked for by {classes[name]})" for name in sorted(missing))
    brought = sorted({_name_spark_jar_of_class(name) for name in missing})
    return ProjectCheck(
        name="jars",
        status="fail",
        message=f"No jar has {shown}.",
        fix=f"Name {' and '.join(brought)} in `spark.jars` or `spark.jars.packages`, in the build "
        "for this Spark and Scala.",
    )


def _name_spark_jar_of_class(name: str) -> str:
    found = (jar for beginning, jar in _BROUGHT_BY.items() if name.startswith(beginning))
    return next(found, "the jar that brings it")


def _is_local_spark_jar(jar: str) -> bool:
    return "://" not in jar.removeprefix("file://") and not jar.startswith("local:")


def _list_classes_missing_from_jars(classes: set[str], jars: Iterable[Path]) -> set[str]:
    """Lists those of `classes` that none of the jars contains."""
    left = {f"{name.replace('.', '/')}.class": name for name in classes}
    for jar in jars:
        if not left:
            break
        try:
            with zipfile.ZipFile(jar) as archive:
                held = archive.NameToInfo
                left = {path: name for path, name in left.items() if path not in held}
        except (OSError, zipfile.BadZipFile):
            continue
    return set(left.values())


def _check_cloud_credentials(
    cloud: _CloudCredentials, settings: SparkSettings, environ: Mapping[str, str]
) -> ProjectCheck:
    for variable in cloud.files:
        path = environ.get(variable)
        if path and not Path(path).is_file():
            return ProjectCheck(
                name=f"credentials of {cloud.name}",
                status="fail",
                message=f"{variable} names {path}, {_NOT_READABLE}",
                fix="The file has to be below the workspace, readable for everybody, and the path "
                "is the container's.",
            )
    keys = (key.removeprefix("spark.hadoop.") for key in settings)
    by_setting = sorted(key for key in keys if key.startswith(cloud.settings))
    by_variable = [name for name in cloud.variables if environ.get(name)]
    if by_setting or by_variable:
        message = f"given by {(by_setting or by_variable)[0]}; whether they are valid was not asked"
        return ProjectCheck(name=f"credentials of {cloud.name}", status="ok", message=message)
    prefix = cloud.variables[0].partition("_")[0]
    return ProjectCheck(
        name=f"credentials of {cloud.name}",
        status="warn",
        message=f"the settings name a store of {cloud.name}, and neither they nor a variable give "
        "credentials; a machine's own role cannot be seen from here",
        fix=f"Let the cloud's login action run before, and name {prefix}_* in `worker-env`.",
    )


def _iterate_spark_jars(directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        yield from sorted(directory.glob("*.jar"))


def _name_first_and_more(names: Iterable[str]) -> str:
    first, *others = names
    return f"{first} and {len(others)} more" if others else first
