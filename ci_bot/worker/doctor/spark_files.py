"""What Spark needs beside itself, by the gateway's settings: jars, and credentials of a cloud.

Spark names a class that it does not find, and no jar; some clients ask a store without credentials
for minutes. Both are looked for before, in files and variables.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_bot.contracts.documents.plan import ProjectCheck
from ci_bot.worker.doctor.spark_network import SparkSettings

_CLASS_SETTING = re.compile(
    r"spark\.sql\.catalog\.\w+(\.(catalog-impl|io-impl))?\Z|spark\.sql\.extensions\Z"
    r"|spark\.hadoop\.fs\.\w+\.impl\Z"
)
_CLASS = re.compile(r"[a-z_]\w*(\.\w+)+\Z")
# By the first package that fits: which jar brings it.
_BROUGHT_BY = {
    "org.apache.iceberg.aws.": "iceberg-aws-bundle",
    "org.apache.iceberg.gcp.": "iceberg-gcp-bundle",
    "org.apache.iceberg.azure.": "iceberg-azure-bundle",
    "org.apache.iceberg.": "iceberg-spark-runtime-3.5_2.12",
    "io.delta.": "delta-spark_2.12 and delta-storage",
    "org.apache.spark.sql.delta.": "delta-spark_2.12 and delta-storage",
    "org.apache.hadoop.fs.s3a.": "hadoop-aws and the AWS SDK's bundle",
    "org.apache.hadoop.fs.azurebfs.": "hadoop-azure",
    "com.google.cloud.hadoop.": "gcs-connector",
}
# What Hadoop finds by a scheme's name alone, where no `spark.hadoop.fs.<scheme>.impl` says more.
_BY_SCHEME = {
    "s3a": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
}
_PLACE = re.compile(r"(?P<scheme>s3a?n?|abfss?|wasbs?|gs)://")


@dataclass(frozen=True)
class _Cloud:
    """How a cloud's clients get credentials.

    Attributes:
        settings: Beginnings of settings that give some, without `spark.hadoop.`.
        variables: Variables of which one is enough.
        files: Those of the variables that name a file.
    """

    name: str
    settings: tuple[str, ...]
    variables: tuple[str, ...]
    files: tuple[str, ...] = ()


_AWS = _Cloud(
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
_AZURE = _Cloud(
    "Azure",
    ("fs.azure.account.", "fs.azure.sas."),
    ("AZURE_CLIENT_ID", "AZURE_STORAGE_KEY", "AZURE_FEDERATED_TOKEN_FILE"),
    ("AZURE_FEDERATED_TOKEN_FILE",),
)
_GOOGLE = _Cloud(
    "Google Cloud",
    ("fs.gs.auth.", "google.cloud.auth."),
    ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
    ("GOOGLE_APPLICATION_CREDENTIALS",),
)
_CLOUDS = {"s3": _AWS, "s3a": _AWS, "s3n": _AWS, "gs": _GOOGLE}
_CLOUDS |= dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), _AZURE)


def checks(
    settings: SparkSettings, environ: Mapping[str, str], own_jars: Iterable[Path]
) -> Iterator[ProjectCheck]:
    """A line for each part that these settings name.

    Args:
        settings: What the session gets: `spark.*`.
        environ: The worker's variables.
        own_jars: The directories of Spark's own jars.
    """
    classes = dict(_classes(settings))
    named = _listed(settings.get("spark.jars", ""))
    if classes or named:
        yield _jars(settings, classes, named, own_jars)
    clouds = {_CLOUDS[scheme].name: _CLOUDS[scheme] for scheme in _schemes(settings)}
    for _, cloud in sorted(clouds.items()):
        yield _credentials(cloud, settings, environ)


def _classes(settings: SparkSettings) -> Iterator[tuple[str, str]]:
    """Each class that a setting names or a scheme stands for, with whose word that is."""
    for key, value in sorted(settings.items()):
        if _CLASS_SETTING.match(key):
            for name in _listed(value):
                if _CLASS.match(name):
                    yield name, f"`{key}`"
    for scheme in sorted(_schemes(settings)):
        if scheme in _BY_SCHEME and f"spark.hadoop.fs.{scheme}.impl" not in settings:
            yield _BY_SCHEME[scheme], f"{scheme}://"


def _schemes(settings: SparkSettings) -> set[str]:
    return {found["scheme"] for value in settings.values() for found in _PLACE.finditer(value)}


def _listed(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _jars(
    settings: SparkSettings, classes: Mapping[str, str], named: list[str], own_jars: Iterable[Path]
) -> ProjectCheck:
    here = [Path(jar.removeprefix("file:").replace("//", "/")) for jar in named if _is_local(jar)]
    absent = [jar for jar in here if not jar.is_file()]
    if absent:
        return ProjectCheck(
            name="jars",
            status="fail",
            message=f"`spark.jars` names {_several(map(str, absent))}, and there is no such file "
            "that this account may read.",
            fix="An earlier step has to download it into the workspace, readable for everybody; in "
            "the container that is /github/workspace.",
        )
    extra = _listed(settings.get("spark.driver.extraClassPath", "").replace(":", ","))
    given = [*here, *(Path(path) for path in extra if path.endswith(".jar"))]
    missing = _not_in(_not_in(set(classes), given), _in_all(own_jars))
    # What is fetched, or stands on a path of another kind, is only known to the session.
    elsewhere = (
        len(here) < len(named)
        or len(extra) + len(here) > len(given)
        or bool(settings.get("spark.jars.packages"))
    )
    if not missing or elsewhere:
        found = f"{len(classes) - len(missing)} of {len(classes)} classes found before Spark starts"
        return ProjectCheck(name="jars", status="ok", message=found if classes else "all are there")
    shown = ", ".join(f"{name} (asked for by {classes[name]})" for name in sorted(missing))
    brought = sorted({_brought_by(name) for name in missing})
    return ProjectCheck(
        name="jars",
        status="fail",
        message=f"No jar has {shown}.",
        fix=f"Name {' and '.join(brought)} in `spark.jars` or `spark.jars.packages`, in the build "
        "for this Spark and Scala.",
    )


def _brought_by(name: str) -> str:
    found = (jar for beginning, jar in _BROUGHT_BY.items() if name.startswith(beginning))
    return next(found, "the jar that brings it")


def _is_local(jar: str) -> bool:
    return "://" not in jar.removeprefix("file://") and not jar.startswith("local:")


def _not_in(classes: set[str], jars: Iterable[Path]) -> set[str]:
    """Those of `classes` that none of the jars holds."""
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


def _credentials(
    cloud: _Cloud, settings: SparkSettings, environ: Mapping[str, str]
) -> ProjectCheck:
    for variable in cloud.files:
        path = environ.get(variable)
        if path and not Path(path).is_file():
            return ProjectCheck(
                name=f"credentials of {cloud.name}",
                status="fail",
                message=f"{variable} names {path}, and there is no such file that this account may "
                "read.",
                fix="The file has to lie below the workspace, readable for everybody, and the path "
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


def _in_all(directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        yield from sorted(directory.glob("*.jar"))


def _several(names: Iterable[str]) -> str:
    first, *others = names
    return f"{first} and {len(others)} more" if others else first
