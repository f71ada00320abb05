"""This machine's network, asked with sockets: what the checks on where Spark runs ask."""

from __future__ import annotations

import socket

from ci_bot.worker.doctor.spark_network import Network

# A firewall that drops what it does not like never answers.
SECONDS = 5.0


def this_network() -> Network:
    """What the process sees from where it runs."""
    return Network(reach=_reach, addresses=_addresses, listen=_listen)


def _reach(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except TimeoutError:
        return f"no answer in {SECONDS:.0f} s"
    except socket.gaierror:
        return "nobody here knows that name"
    except OSError as error:
        return str(error.strerror or error)
    return None


def _addresses(host: str) -> list[str]:
    try:
        return sorted({str(found[4][0]) for found in socket.getaddrinfo(host, None)})
    except (OSError, UnicodeError):
        return []


def _listen(host: str) -> str | None:
    if not (found := _addresses(host)):
        return "nobody here knows that name"
    family = socket.AF_INET6 if ":" in found[0] else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((found[0], 0))
    except OSError as error:
        return str(error.strerror or error)
    return None
