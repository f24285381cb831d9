"""HTTP to one API server: the official client configures and authenticates, the JSON stays raw.

Typed models are strict and four times slower than plain ``json``, so every path here carries dicts.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson
import urllib3
from kubernetes import client as official
from kubernetes import config as official_config

from scheduling.cluster.connection.kubeconfig import configuration_from, configuration_of_text
from scheduling.cluster.connection.wire import Header, Stream, Wire

if TYPE_CHECKING:
    from scheduling.models import Cluster

Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
FIELD_MANAGER = "weir"

CONNECTIONS = 8
"""Writes at a time that the enforcement makes: so many starts, and so many others."""
KEPT = 24
"""Connections kept for the next request; each watch has one of its own on top."""
TRIES = 6
LEAVE_S = 2.0
"""An answer is waited for so long once the process is to end."""
TAIL_S = 10.0
"""Silence that ends the reading of a log."""
READ_TIMES = 16
"""So many times as much of a log is read as is kept of its end."""
BACK_OFF_S = (0.05, 5.0)
"""First and longest wait between tries."""
RETRIED = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Person:
    """In whose name a request is made: what the API server calls them, and their groups."""

    name: str = ""
    groups: tuple[str, ...] = ()


NOBODY = Person()
"""Weir itself."""


class ApiError(Exception):
    """The API server's refusal: its HTTP ``status``, ``reason`` and ``message``.

    ``causes`` are (field, message) pairs, as in a 422.
    """

    def __init__(
        self, status: int, reason: str, message: str, causes: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        super().__init__(f"{status} {reason}: {message}")


class ForbiddenError(ApiError):
    """403: RBAC or an admission policy says no."""


class NotFoundError(ApiError):
    """404: the object is gone."""


class ConflictError(ApiError):
    """409: somebody wrote the object since it was read; read it again and decide again.

    A patch that names the uid of an object that was replaced meanwhile is one as well, although
    servers answer 422: to them the uid is a field that cannot change.
    """


class GoneError(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class InvalidError(ApiError):
    """422: the object breaks a rule of its kind."""


class UnreachableError(ApiError):
    """No answer after every try."""


KINDS: dict[int, type[ApiError]] = {
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}


def configuration_of(cluster: Cluster) -> official.Configuration:
    """How ``cluster`` is reached: ``api_url``, else ``kubeconfig``, else the pod's service account.

    Raises the official client's ConfigException when a kubeconfig or service account is unusable,
    OSError when the token cannot be read.
    """
    from scheduling.models.credentials import is_kept, read

    configuration = official.Configuration()
    if cluster.api_url:
        configuration.host = cluster.api_url.rstrip("/")
        _trust(configuration, cluster.ca_file)
        _identify(configuration, cluster.token_file)
    elif cluster.kubeconfig:
        if is_kept(cluster.kubeconfig):
            text = read(cluster.kubeconfig)
            return configuration_of_text(text, f"kubeconfig of {cluster.name}", cluster.context)
        return configuration_from(cluster.kubeconfig, cluster.context)
    else:
        official_config.load_incluster_config(  # type: ignore[no-untyped-call] # as published
            client_configuration=configuration
        )
    return configuration


def _trust(configuration: official.Configuration, ca: str) -> None:
    from scheduling.models.credentials import is_kept, read

    if is_kept(ca):
        configuration.ca_cert_data = read(ca)
    else:
        configuration.ssl_ca_cert = ca or None


def _identify(configuration: official.Configuration, token: str) -> None:
    from scheduling.models.credentials import is_kept, read

    if is_kept(token):
        # Another one has another reference, and makes another client.
        configuration.api_key_prefix["authorization"] = "Bearer"
        configuration.api_key["authorization"] = read(token)
    elif token:
        _follow_token_file(configuration, Path(token))


def _follow_token_file(configuration: official.Configuration, path: Path) -> None:
    """Read the token again before each request: projected tokens are rotated under our feet."""

    def read(current: official.Configuration) -> None:
        current.api_key["authorization"] = path.read_text().strip()

    configuration.api_key_prefix["authorization"] = "Bearer"
    configuration.refresh_api_key_hook = read  # type: ignore[assignment] # typed as None
    read(configuration)


class Client:
    """Raw JSON requests with retries; safe to use from many threads."""

    def __init__(self, configuration: official.Configuration) -> None:
        self._api = official.ApiClient(configuration)
        manager: urllib3.PoolManager = self._api.rest_client.pool_manager
        self._wire = Wire(manager, configuration.host, KEPT)
        self._leaving = threading.Event()

    @classmethod
    def connect(cls, cluster: Cluster) -> Client:
        return cls(configuration_of(cluster))

    def leave(self) -> None:
        """Ask nothing twice any more, and wait for no answer for long: this process is about to end."""
        self._leaving.set()

    def sever(self) -> None:
        """End what other threads still ask: each gets an UnreachableError."""
        self._wire.sever()

    def close(self) -> None:
        """Ends what other threads still ask, too."""
        self._wire.close()

    def _rest(self, seconds: float) -> None:
        """Wait before the next try; not when the process is to end."""
        self._leaving.wait(seconds)

    def get(self, path: str, **query: str | int) -> Json:
        return self.request("GET", path, query=query)

    def create(self, path: str, body: Json, *, as_person: Person = NOBODY) -> Json:
        return self.request("POST", path, body=body, as_person=as_person)

    def replace(self, path: str, body: Json) -> Json:
        return self.request("PUT", path, body=body)

    def patch(self, path: str, body: Json, *, as_person: Person = NOBODY) -> Json:
        """A merge patch. ``metadata.resourceVersion`` in the body is its precondition."""
        return self.request("PATCH", path, body=body, as_person=as_person)

    def apply(self, path: str, body: Json, *, force: bool) -> Json:
        """Server-side apply as ``weir``; ``force`` takes our fields back from other managers.

        Raises ConflictError, naming field and manager, where another one differs and not ``force``.
        """
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        return self.request("PATCH", path, query=query, body=body, content_type=APPLY_PATCH)

    def delete(self, path: str, body: Json | None = None, *, as_person: Person = NOBODY) -> Json:
        return self.request("DELETE", path, body=body, as_person=as_person)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Json | None = None,
        as_person: Person = NOBODY,
        content_type: str = "",
        tries: int = TRIES,
        timeout_s: float = 30.0,
    ) -> Json:
        """One request, repeated on 429, 5xx and broken connections; the decoded answer.

        ``as_person`` acts in that person's name (impersonation). A repeated POST whose first answer
        was lost comes back as 409 AlreadyExists, which the caller sees. Raises ApiError.
        """
        target = _target(path, query)
        headers = self._headers(method, path, body, as_person, content_type)
        data = None if body is None else orjson.dumps(body)
        waits = back_off(*BACK_OFF_S)
        for attempt in range(1, tries + 1):
            leaving = self._leaving.is_set()
            last = attempt == tries or leaving
            within_s = min(timeout_s, LEAVE_S) if leaving else timeout_s
            try:
                answer = self._wire.ask(method, target, headers, data, within_s)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                if last:
                    raise UnreachableError(0, "Unreachable", str(error)) from error
                self._rest(next(waits))
                continue
            if answer.status < 300:
                return orjson.loads(answer.data)
            if last or answer.status not in RETRIED:
                raise error_of(answer.status, answer.data)
            self._rest(max(retry_after(answer.headers.get("retry-after")), next(waits)))
        raise AssertionError("unreachable: the last try returns or raises")

    def tail(
        self, path: str, query: Mapping[str, str | int], *, most: int, as_person: Person
    ) -> bytes:
        """The last ``most`` bytes of an answer that is text, such as a log; asked once.

        What is longer than ``READ_TIMES`` that is given up: no log fills this process. Raises ApiError.
        """
        tail, read = b"", 0
        try:
            with self.stream(path, query, timeout_s=TAIL_S, as_person=as_person) as stream:
                for piece in stream.pieces():
                    tail, read = (tail + piece)[-most:], read + len(piece)
                    if read > READ_TIMES * most:
                        break
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise UnreachableError(0, "Unreachable", str(error)) from error
        return tail

    @contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, str | int],
        *,
        timeout_s: float,
        as_person: Person = NOBODY,
    ) -> Iterator[Stream]:
        """An open watch, whose lines come as the server sends them.

        ``timeout_s`` bounds the silence between two lines. Raises ApiError when refused, OSError or
        urllib3's HTTPError when it breaks.
        """
        headers = self._headers("GET", path, None, as_person, "")
        stream = self._wire.open(_target(path, query), headers, timeout_s)
        try:
            if stream.status >= 300:
                raise error_of(stream.status, stream.read())
            yield stream
        finally:
            stream.close()

    def _headers(
        self, method: str, path: str, body: Json | None, as_person: Person, content_type: str
    ) -> list[Header]:
        headers = {"Accept": "application/json", "User-Agent": "weir"}
        if body is not None:
            usual = MERGE_PATCH if method == "PATCH" else "application/json"
            headers["Content-Type"] = content_type or usual
        self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        sent = list(headers.items())
        if as_person.name:
            sent.append(("Impersonate-User", as_person.name))
            sent += [("Impersonate-Group", group) for group in as_person.groups]
        return sent


def _target(path: str, query: Mapping[str, str | int] | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def error_of(status: int, data: bytes) -> ApiError:
    """The error that a Status object (or whatever a proxy put in its place) describes."""
    try:
        body = json.loads(data)
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    details = body.get("details") or {}
    causes = tuple((c.get("field", ""), c.get("message", "")) for c in details.get("causes") or [])
    kind = KINDS.get(status, ApiError)
    if status == 422 and any(field == "metadata.uid" for field, _ in causes):
        kind = ConflictError
    return kind(
        status,
        body.get("reason") or str(status),
        body.get("message") or data[:200].decode(errors="replace"),
        causes,
    )


def retry_after(value: str | None) -> float:
    """Seconds a Retry-After header asks for (a number or an HTTP date); 0 without one."""
    if not value:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def back_off(first_s: float, longest_s: float) -> Iterator[float]:
    """Endless waits: doubling from ``first_s`` to ``longest_s``, each with full jitter over its half.

    Many clients that lost the same server must not come back in step.
    """
    wait = first_s
    while True:
        yield wait * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides nothing
        wait = min(wait * 2, longest_s)
