"""Where Spark runs, by the gateway's settings: who must be reachable, and by whom.

A master that does not answer costs Spark a minute, and what it says then names no part. So the
parts are asked one by one before Spark is started, each with its own sentence.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ci_bot.protocol.plan import ProjectCheck

_UNKNOWN_NAME = "nobody here knows that name"

SparkSettings = Mapping[str, str]

LOCAL = re.compile(r"local(\[.*\]|-cluster.*)?\Z")

_METASTORES = ("spark.hadoop.hive.metastore.uris", "spark.hive.metastore.uris")

_CATALOG_URI = re.compile(r"spark\.sql\.catalog\.(\w+)\.uri\Z")

_FIX = (
    "Start it, correct its address in the gateway's connection, or open the way from this machine "
    "to it."
)

_HOST_FIX = "Write the address by which the cluster reaches this machine."

_BIND_FIX = "0.0.0.0 listens on all of this machine's addresses."

_JDBC = re.compile(r"jdbc:(?P<kind>\w+)://(?P<place>[^/?;]+)")

_PORTS = {"http": 80, "https": 443, "thrift": 9083, "postgresql": 5432, "mysql": 3306}

_PORTS |= {"mariadb": 3306, "spark": 7077}


@dataclass(frozen=True)
class NetworkFacts:
    """What this machine can tell of the network around it.

    Attributes:
        reach: Why a host and port do not answer; None where they do.
        addresses: The addresses that a name stands for; empty if nobody knows it.
        listen: Why this machine cannot listen on an address; None where it can.
    """

    reach: Callable[[str, int], str | None]
    addresses: Callable[[str], list[str]]
    listen: Callable[[str], str | None]


@dataclass(frozen=True)
class NetworkEndpoint:
    """A server, by its name or address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def check_spark_network(
    settings: SparkSettings, environ: Mapping[str, str], network: NetworkFacts
) -> Iterator[ProjectCheck]:
    """A line for each part that these settings name; none for a Spark in this process alone.

    Args:
        settings: What the session gets: `spark.*`.
        environ: The worker's variables.
    """
    master = settings.get("spark.master", "local[*]").strip()
    if not LOCAL.match(master):
        yield _check_master(master, environ, network)
        yield _check_driver(master, settings, network)
    metastores = [uri for key in _METASTORES for uri in settings.get(key, "").split(",")]
    if any(uri.strip() for uri in metastores):
        yield _check_answering(
            "metastore", "The Hive metastore", _parse_endpoints(metastores), network
        )
    for key, value in sorted(settings.items()):
        if (named := _CATALOG_URI.match(key)) and (found := _parse_endpoints(value.split(","))):
            yield _check_answering(
                f"catalog {named[1]}", f"The service of {named[1]}", found, network
            )


def _parse_endpoints(uris: Iterable[str]) -> list[NetworkEndpoint]:
    """The servers of addresses such as thrift://host:9083; what names none is left out."""
    found = []
    for uri in map(str.strip, uris):
        jdbc = _JDBC.match(uri)
        text = f"{jdbc['kind']}://{jdbc['place']}" if jdbc else uri.removeprefix("k8s://")
        try:
            parts = urlsplit(text)
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            continue
        if parts.hostname and port:
            found.append(NetworkEndpoint(parts.hostname, port))
    return found


def _parse_masters(master: str) -> list[NetworkEndpoint]:
    if master.startswith("k8s://") and "://" not in master.removeprefix("k8s://"):
        return _parse_endpoints([master.replace("k8s://", "https://", 1)])
    first, *others = master.split(",")
    scheme = first.partition("://")[0]
    return _parse_endpoints([first, *(f"{scheme}://{other}" for other in others)])


def _check_master(master: str, environ: Mapping[str, str], network: NetworkFacts) -> ProjectCheck:
    if master == "yarn":
        return _check_yarn(environ)
    found = _parse_masters(master)
    if not found:
        return ProjectCheck(
            name="master",
            status="warn",
            message=f"`spark.master` is {master}, which names no server that could be asked",
            fix="Write spark://host:port, k8s://https://host:port, yarn or local[*].",
        )
    fix = (
        "Start it, or correct `spark.master`. A runner on GitHub's machines reaches no private "
        "network: it takes a self-hosted runner in the cluster's (docs/where-spark-runs.md)."
    )
    return _check_answering("master", "The master", found, network, fix)


def _check_yarn(environ: Mapping[str, str]) -> ProjectCheck:
    names = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
    given = {name: Path(environ[name]) for name in names if environ.get(name)}
    if not given:
        message = "`spark.master` is yarn, and neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"
    elif not any((path / "yarn-site.xml").is_file() for path in given.values()):
        shown = " and ".join(f"{name} ({path})" for name, path in given.items())
        message = f"`spark.master` is yarn, and there is no yarn-site.xml in {shown}"
    else:
        return ProjectCheck(name="master", status="ok", message="yarn, by its own configuration")
    return ProjectCheck(
        name="master",
        status="fail",
        message=message,
        fix="Put the cluster's yarn-site.xml and core-site.xml below the workspace, readable for "
        "everybody, and set HADOOP_CONF_DIR to that directory.",
    )


def _check_answering(
    name: str,
    what: str,
    servers: list[NetworkEndpoint],
    network: NetworkFacts,
    fix: str | None = None,
) -> ProjectCheck:
    """One of several is enough: clients take the next where one does not answer."""
    silent = []
    for server in servers:
        why = network.reach(server.host, server.port)
        if why is None:
            return ProjectCheck(name=name, status="ok", message=f"{server} answers")
        silent.append(f"{server} ({why})")
    return ProjectCheck(
        name=name,
        status="fail",
        message=f"{what} does not answer: {', '.join(silent) or 'no address could be read'}.",
        fix=fix or _FIX,
    )


def _check_driver(master: str, settings: SparkSettings, network: NetworkFacts) -> ProjectCheck:
    """Executors call the driver back: by an address that is not only this machine's."""
    host = settings.get("spark.driver.host", "").strip()
    bind = settings.get("spark.driver.bindAddress", "").strip()
    masters = _parse_masters(master)
    here = bool(masters) and all(_is_loopback(server.host) for server in masters)
    wrong = _not_bound(bind, network) or _not_known(host, network)
    if wrong is None and not here:
        wrong = _only_here(master, host, bind)
    if wrong is not None:
        message, fix = wrong
        return ProjectCheck(name="driver address", status="fail", message=message, fix=fix)
    if not host and not here:
        return ProjectCheck(
            name="driver address",
            status="warn",
            message="`spark.driver.host` is not set, so executors get this machine's own "
            "name, which in a container nobody else knows",
            fix=_HOST_FIX,
        )
    shown = host or "this machine's own name"
    return ProjectCheck(name="driver address", status="ok", message=f"executors get {shown}")


def _not_bound(bind: str, network: NetworkFacts) -> tuple[str, str] | None:
    if not bind or (why := network.listen(bind)) is None:
        return None
    message = f"`spark.driver.bindAddress` is {bind}, and this machine cannot listen there: {why}."
    return message, _BIND_FIX


def _not_known(host: str, network: NetworkFacts) -> tuple[str, str] | None:
    if not host or network.addresses(host):
        return None
    return f"`spark.driver.host` is {host}, and nobody here knows that name.", _HOST_FIX


def _only_here(master: str, host: str, bind: str) -> tuple[str, str] | None:
    """What is wrong where executors are on other machines."""
    if host and _is_loopback(host):
        message = f"`spark.driver.host` is {host}: executors of {master} would look for the driver "
        return message + "on their own machine.", _HOST_FIX
    if bind and _is_loopback(bind):
        message = f"`spark.driver.bindAddress` is {bind}, so the driver hears this machine only, "
        return message + f"and no executor of {master}.", _BIND_FIX
    return None


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# This machine's network, asked with sockets: what the checks on where Spark runs ask.


# A firewall that drops what it does not like never answers.
SECONDS = 5.0


def this_network() -> NetworkFacts:
    """What the process sees from where it runs."""
    return NetworkFacts(reach=_reach_port, addresses=_resolve_addresses, listen=_listen_on)


def _reach_port(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except TimeoutError:
        return f"no answer in {SECONDS:.0f} s"
    except socket.gaierror:
        return _UNKNOWN_NAME
    except OSError as error:
        return str(error.strerror or error)
    return None


def _resolve_addresses(host: str) -> list[str]:
    try:
        return sorted({str(found[4][0]) for found in socket.getaddrinfo(host, None)})
    except (OSError, UnicodeError):
        return []


def _listen_on(host: str) -> str | None:
    if not (found := _resolve_addresses(host)):
        return _UNKNOWN_NAME
    family = socket.AF_INET6 if ":" in found[0] else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((found[0], 0))
    except OSError as error:
        return str(error.strerror or error)
    return None
