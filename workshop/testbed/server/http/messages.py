"""Requests and answers, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import yaml

from workshop.testbed.server.kinds.errors import ApiError, bad_request
from workshop.testbed.server.store.store import encode

from .protobuf import decode

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(slots=True)
class Request:
    """One HTTP request; header names in lower case, the last value of a query key counts."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def content_type(self) -> str:
        """Return the media type of the body without parameters."""
        return self.headers.get("content-type", JSON).partition(";")[0].strip()

    def flag(self, name: str) -> bool:
        """Return whether the query sets `name` to true."""
        return self.query.get(name, "").lower() in ("true", "1")


@dataclass(slots=True)
class Reply:
    """One HTTP answer; `delay_s` wall seconds are waited before it is sent."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0

    def encode(self, *, close: bool = False) -> bytes:
        """Return the bytes for the wire."""
        extra = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        head = (
            f"HTTP/1.1 {self.code} {_PHRASES.get(self.code, 'Unknown')}\r\n"
            f"Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n"
            f"{extra}{'Connection: close' + chr(13) + chr(10) if close else ''}\r\n"
        )
        return head.encode() + self.body


_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def reply(value: Any, code: int = 200) -> Reply:
    """Return an answer with `value` as JSON."""
    return Reply(code, encode(value))


def refusal(error: ApiError) -> Reply:
    """Return the answer for `error`."""
    answer = reply(error.status(), error.code)
    if error.retry_after is not None:
        answer.headers["Retry-After"] = str(error.retry_after)
    return answer


def read_body(request: Request, *, optional: bool = False) -> Any:
    """Return the parsed body, JSON or YAML.

    Raises ApiError: 400 if it cannot be read, 415 for another content type.
    """
    if not request.body.strip():
        if optional:
            return {}
        raise bad_request("the request has no body: expected an object as JSON or YAML")
    kind = request.content_type
    if kind == PROTOBUF:
        return decode(request.body)
    if "json" not in kind and "yaml" not in kind:
        message = f"the body of the request was in an unknown format: {kind}"
        raise ApiError(415, "UnsupportedMediaType", message)
    return _parse(request.body, is_yaml="yaml" in kind)


def _parse(body: bytes, *, is_yaml: bool) -> Any:

    try:
        return json.loads(body)
    except ValueError as error:
        if not is_yaml:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from error
