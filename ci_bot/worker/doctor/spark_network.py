"""The network of Spark, by the gateway's settings: which servers must be reachable, and from where.

Spark waits a minute for a master that does not answer, and its error names no cause. So each server
is checked before Spark starts.
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
_PORTS = {
    "http": 80, "https": 443, "thrift": 9083,
    "postgresql": 5432, "mysql": 3306, "mariadb": 3306, "spark": 7077,
}  # fmt: skip


@dataclass(frozen=True)
class NetworkFacts:
    """Checks of the network from this machine.

    Attributes:
        reach: Returns why a host and port do not answer; None if they do.
        addresses: Returns the addresses of a name; empty if it does not resolve.
        listen: Returns why this machine cannot listen on an address; None if it can.
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
    """Checks each server that these settings name; none for a Spark in this process alone.

    Args:
        settings: The session's settings: `spark.*`.
        environ: The worker's variables.
    """
    master = settings.get("spark.master", "local[*]").strip()
    if not LOCAL.match(master):
        yield _check_spark_master_answers(master, environ, network)
        yield _check_spark_driver_address(master, settings, network)
    metastores = [uri for key in _METASTORES for uri in settings.get(key, "").split(",")]
    if any(uri.strip() for uri in metastores):
        yield _check_server_answers(
            "metastore", "The Hive metastore", _parse_metastore_endpoints(metastores), network
        )
    for key, value in sorted(settings.items()):
        if (named := _CATALOG_URI.match(key)) and (
            found := _parse_metastore_endpoints(value.split(","))
        ):
            yield _check_server_answers(
                f"catalog {named[1]}", f"The service of {named[1]}", found, network
            )


def _parse_metastore_endpoints(uris: Iterable[str]) -> list[NetworkEndpoint]:
    """Parses the servers of addresses such as thrift://host:9083; leaves out others."""
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


def _parse_spark_masters(master: str) -> list[NetworkEndpoint]:
    if master.startswith("k8s://") and "://" not in master.removeprefix("k8s://"):
        return _parse_metastore_endpoints([master.replace("k8s://", "https://", 1)])
    first, *others = master.split(",")
    scheme = first.partition("://")[0]
    return _parse_metastore_endpoints([first, *(f"{scheme}://{other}" for other in others)])


def _check_spark_master_answers(
    master: str, environ: Mapping[str, str], network: NetworkFacts
) -> ProjectCheck:
    if master == "yarn":
        return _check_yarn_settings(environ)
    found = _parse_spark_masters(master)
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
    return _check_server_answers("master", "The master", found, network, fix)


def _check_yarn_settings(environ: Mapping[str, str]) -> ProjectCheck:
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


def _check_server_answers(
    name: str,
    what: str,
    servers: list[NetworkEndpoint],
    network: NetworkFacts,
    fix: str | None = None,
) -> ProjectCheck:
    """Checks that one of several servers answers: clients try the next one."""
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


def _check_spark_driver_address(
    master: str, settings: SparkSettings, network: NetworkFacts
) -> ProjectCheck:
    """Checks that executors can reach the driver, at an address that is valid on other machines."""
    host = settings.get("spark.driver.host", "").strip()
    bind = settings.get("spark.driver.bindAddress", "").strip()
    masters = _parse_spark_masters(master)
    here = bool(masters) and all(_is_loopback_driver_address(server.host) for server in masters)
    wrong = _describe_unbound_driver_address(bind, network) or _describe_unknown_driver_host(
        host, network
    )
    if wrong is None and not here:
        wrong = _describe_loopback_driver(master, host, bind)
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


def _describe_unbound_driver_address(bind: str, network: NetworkFacts) -> tuple[str, str] | None:
    if not bind or (why := network.listen(bind)) is None:
        return None
    message = f"`spark.driver.bindAddress` is {bind}, and this machine cannot listen there: {why}."
    return message, _BIND_FIX


def _describe_unknown_driver_host(host: str, network: NetworkFacts) -> tuple[str, str] | None:
    if not host or network.addresses(host):
        return None
    return f"`spark.driver.host` is {host}, and {_UNKNOWN_NAME}.", _HOST_FIX


def _describe_loopback_driver(master: str, host: str, bind: str) -> tuple[str, str] | None:
    """Describes a driver address that executors on other machines cannot reach; None if it is
    fine.
    """
    if host and _is_loopback_driver_address(host):
        message = f"`spark.driver.host` is {host}: executors of {master} would look for the driver "
        return message + "on their own machine.", _HOST_FIX
    if bind and _is_loopback_driver_address(bind):
        message = f"`spark.driver.bindAddress` is {bind}, so the driver hears this machine only, "
        return message + f"and no executor of {master}.", _BIND_FIX
    return None


def _is_loopback_driver_address(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# This machine's network, checked with sockets.


# A firewall that drops packets never answers.
SECONDS = 5.0


def make_network_facts_for_doctor() -> NetworkFacts:
    """Makes the network checks of this machine."""
    return NetworkFacts(
        reach=_check_port_is_reachable,
        addresses=_resolve_addresses,
        listen=_check_listening_on_address,
    )


def _check_port_is_reachable(host: str, port: int) -> str | None:
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


def _check_listening_on_address(host: str) -> str | None:
    if not (found := _resolve_addresses(host)):
        return _UNKNOWN_NAME
    family = socket.AF_INET6 if ":" in found[0] else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((found[0], 0))
    except OSError as error:
        return str(error.strerror or error)
    return None
