"""Why no answer came from a server, distinguished by what fixes it. Pure.

The exceptions of `requests` wrap those of urllib3, which wrap those of Python; the reason is the
innermost one. A connection that was lost may be there again in a second. A certificate that nobody
trusts, a proxy that is not there or a name that does not exist stay as they are until a setting is
changed, so nothing is asked twice there.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

NetworkFault = Literal[
    "lost", "untrusted_certificate", "wrong_certificate", "no_tls", "proxy", "unknown_host", "url"
]

# OpenSSL's reasons for an answer that is no TLS record; which of them depends on its version.
_NO_TLS = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "HTTPS_PROXY_REQUEST",
        "UNKNOWN_PROTOCOL",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
    }
)
# X509_V_ERR_*: the certificate is for another name or address, or not of this day. A certificate
# authority that is added to the trusted ones changes nothing about these.
_NOT_OF_THIS_SERVER = frozenset({9, 10, 62, 64})
_NO_SUCH_NAME = frozenset(
    code
    for code in (getattr(socket, name, None) for name in ("EAI_NONAME", "EAI_NODATA"))
    if code is not None
)
_PROXY = frozenset({"ProxyError", "InvalidProxyURL", "ProxySchemeUnknown"})
_URL = frozenset({"InvalidURL", "InvalidSchema", "MissingSchema", "LocationParseError"})
# The proxy's word for a failure of the server behind it, which may pass.
_BEHIND_THE_PROXY = re.compile(r"Tunnel connection failed: 5\d\d")


@dataclass(frozen=True)
class NetworkTrouble:
    """`kind` is what it takes: patience where it is `lost`, otherwise a setting.

    `words` are for people; the libraries' own hold URLs and the addresses of objects.
    """

    kind: NetworkFault
    words: str


def classify_network_error(error: BaseException) -> NetworkTrouble:
    """Why a request ended in `error`."""
    causes = list(_iterate_causes(error))
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if names & _PROXY or "SOCKS" in str(error):
        behind = any(_BEHIND_THE_PROXY.search(str(cause)) for cause in causes)
        return NetworkTrouble("lost" if behind else "proxy", "the proxy failed")
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            return _classify_tls_error(cause)
        if isinstance(cause, socket.gaierror) and cause.errno in _NO_SUCH_NAME:
            return NetworkTrouble("unknown_host", "its name is not known")
    if names & _URL:
        return NetworkTrouble("url", "its address cannot be read")
    for name, words in (
        ("ConnectTimeout", "no connection in time"),
        ("ReadTimeout", "no answer in time"),
    ):
        if name in names:
            return NetworkTrouble("lost", words)
    return NetworkTrouble("lost", "the connection failed")


def _classify_tls_error(error: ssl.SSLError) -> NetworkTrouble:
    if isinstance(error, ssl.SSLCertVerificationError):
        kind: NetworkFault = "untrusted_certificate"
        if error.verify_code in _NOT_OF_THIS_SERVER:
            kind = "wrong_certificate"
        return NetworkTrouble(kind, f"its certificate is not accepted: {error.verify_message}")
    if "X509" in str(error):
        return NetworkTrouble(
            "untrusted_certificate", "the file of trusted certificates holds none"
        )
    if error.reason in _NO_TLS:
        return NetworkTrouble("no_tls", "it answers without TLS")
    return NetworkTrouble("lost", "the secure connection failed")


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """`error` and everything that it was made from, the outermost first, each once."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = (getattr(one, "reason", None), one.__cause__, one.__context__, *one.args)
        waiting += [each for each in inner if isinstance(each, BaseException)]
