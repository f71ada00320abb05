"""Hold the traffic against GitHub's OpenAPI description, both directions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from werkzeug.datastructures import Headers, ImmutableMultiDict

from .deviations import NOT_REST, SLASHED, UNDOCUMENTED_STATUSES, Deviation, apply_corrections
from .wire import Answer, Exchange, Request

_PARAMETER = re.compile(r"\{([^}]+)\}")


@dataclass(frozen=True)
class Finding:
    """One disagreement with the description. `side` is `request` (the client's) or `response`
    (ours).
    """

    operation: str
    side: str
    message: str

    def __str__(self) -> str:
        return f"{self.operation} [{self.side}] {self.message}"


@dataclass
class _WireRequest:
    """What openapi-core wants to know about a request."""

    host_url: str
    path: str
    method: str
    content_type: str
    body: bytes | None
    parameters: RequestParameters


@dataclass
class _WireResponse:
    """What openapi-core wants to know about a response."""

    status_code: int
    content_type: str
    headers: Headers
    data: bytes | None


@dataclass
class Conformance:
    """GitHub's description, loaded once (about 0.7 s and 130 MB)."""

    url: str
    spec: dict[str, Any]
    deviations: tuple[Deviation, ...]
    used: set[Deviation] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.spec["servers"] = [{"url": self.url}]
        apply_corrections(self.spec)
        # The description itself is GitHub's affair; only traffic is validated.
        self._openapi = OpenAPI.from_dict(self.spec, config=Config(spec_validator_cls=None))
        self._templates: list[tuple[str, re.Pattern[str]]] = [
            (template, re.compile(_PARAMETER.sub("[^/]+", template)))
            for template in sorted(self.spec["paths"], key=lambda path: path.count("{"))
        ]

    @classmethod
    def load(cls, file: Path, url: str, deviations: Iterable[Deviation]) -> Conformance:
        """From `api.github.com.json`, for a server at `url`."""
        return cls(url, json.loads(file.read_bytes()), tuple(deviations))

    def check(self, exchanges: Iterable[Exchange]) -> list[Finding]:
        """What is wrong and not on the list of known deviations."""
        return [
            finding
            for exchange in exchanges
            for finding in self._check(exchange)
            if not self._is_known(finding)
        ]

    def unused(self) -> list[Deviation]:
        """Deviations of the list that no checked exchange has shown."""
        return [deviation for deviation in self.deviations if deviation not in self.used]

    def _is_known(self, finding: Finding) -> bool:
        known = [one for one in self.deviations if one.covers(*_parts(finding))]
        self.used.update(known)
        return bool(known)

    def _check(self, exchange: Exchange) -> Iterator[Finding]:
        request, answer = exchange.request, exchange.answer
        if NOT_REST.fullmatch(request.path):
            return
        path = SLASHED.sub(lambda found: found[1] + quote(found[2], safe=""), request.path)
        template = self._template(path, request.method)
        operation = f"{request.method} {template or request.path}"
        if template is None:
            yield Finding(operation, "request", "GitHub has no such operation")
            return
        wire = self._request(request, path)
        yield from self._unknown_parameters(operation, template, request)
        yield from _errors(operation, "request", lambda: self._openapi.validate_request(wire))
        if exchange.scripted or answer is None or answer.reset:
            return  # Faults are meant to be wrong.
        documented = self.spec["paths"][template][request.method.lower()]["responses"]
        if str(answer.status) not in documented and answer.status in UNDOCUMENTED_STATUSES:
            yield from _basic_error(operation, answer)
            return
        reply = _response(answer)
        yield from _errors(
            operation,
            "response",
            lambda: self._openapi.validate_response(wire, reply),
            answer.status,
        )

    def _template(self, path: str, method: str) -> str | None:
        for template, pattern in self._templates:
            if pattern.fullmatch(path) and method.lower() in self.spec["paths"][template]:
                return template
        return None

    def _request(self, request: Request, path: str) -> _WireRequest:
        return _WireRequest(
            host_url=self.url,
            path=path,
            method=request.method.lower(),
            content_type=request.headers.get("content-type", "application/json"),
            body=request.body or None,
            parameters=RequestParameters(
                query=ImmutableMultiDict(request.query), header=Headers(dict(request.headers))
            ),
        )

    def _unknown_parameters(
        self, operation: str, template: str, request: Request
    ) -> Iterator[Finding]:
        """The description allows unknown query parameters; a client that sends one has a typing
        error.
        """
        held = self.spec["paths"][template]
        listed = held.get("parameters", []) + held[request.method.lower()].get("parameters", [])
        known = {self._resolve(one)["name"] for one in listed}
        for name in sorted(set(request.query) - known):
            yield Finding(operation, "request", f"unknown query parameter {name!r}")

    def _resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            target: Any = self.spec
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node


def _parts(finding: Finding) -> tuple[str, str, str]:
    return finding.operation, finding.side, finding.message


def _response(answer: Answer) -> _WireResponse:
    headers = Headers(dict(answer.headers))
    kind = headers.get("Content-Type", "application/json").split(";")[0]
    return _WireResponse(answer.status, kind, headers, answer.body or None)


def _errors(
    operation: str, side: str, validate: Any, status: int | None = None
) -> Iterator[Finding]:
    try:
        validate()
    except Exception as error:
        prefix = f"{status}: " if status else ""
        cause = error.__cause__
        found = list(getattr(cause, "schema_errors", None) or [])
        if not found:
            text = f"{type(error).__name__}: {error}"
            if cause is not None:
                text += f" ({type(cause).__name__}: {cause})"
            yield Finding(operation, side, prefix + text[:500])
        for one in found:
            where = "/".join(str(part) for part in one.absolute_path) or "."
            yield Finding(operation, side, f"{prefix}{where}: {one.message[-300:]}")


def _basic_error(operation: str, answer: Answer) -> Iterator[Finding]:
    """GitHub answers these statuses everywhere, also where the description is silent; check the
    basic shape.
    """
    try:
        message = answer.json["message"]
    except (ValueError, TypeError, KeyError):
        message = None
    if not isinstance(message, str):
        yield Finding(operation, "response", f"{answer.status}: no JSON object with a message")
