"""One request, one answer: dispatch by path and method."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from workshop.testbed.server.kinds.errors import (
    ApiError,
    bad_request,
    invalid_options,
    method_not_allowed,
    not_found,
    required,
)
from workshop.testbed.server.kinds.faults import Faults
from workshop.testbed.server.kinds.resources import NAMESPACES, Json, Resource
from workshop.testbed.server.store.context import Caller, World
from workshop.testbed.server.store.custom import find, served
from workshop.testbed.server.store.store import Record, encode

from ..validation.known_fields import drop_unknown
from ..verbs.create import create
from ..verbs.delete import DeleteOptions, delete, delete_collection, parse_options
from ..verbs.patch import APPLY, KINDS, apply_patch, patch
from ..verbs.pods import bind, evict
from ..verbs.update import check_address, check_version, replace
from . import metrics
from .admin import administer
from .discovery import discover, is_discovery
from .identity import User, identify
from .lists import Page, Pager, encode_list, parse_selection, select
from .logs import log_of
from .messages import Reply, Request, read_body, refusal, reply
from .protocol import Stream
from .routing import Target, parse_path
from .tables import table, wants_table
from .watching import Watch, WatchOptions

log = logging.getLogger(__name__)

_HEALTH = ("/healthz", "/livez", "/readyz")
_WATCH_TIMEOUT_S = 1800.0


class Application:
    """Answers requests from the world's store."""

    def __init__(
        self,
        world: World,
        faults: Faults,
        tokens: Mapping[str, User] | None = None,
        bookmark_every_s: float = 60.0,
    ) -> None:
        self._world = world
        self._faults = faults
        self._tokens = tokens
        self._bookmark_every_s = bookmark_every_s
        self._pager = Pager()

    def __call__(self, request: Request) -> Reply | Stream:
        """Return the answer; every refusal is a Status."""
        try:
            return self._answer(request)
        except ApiError as error:
            return refusal(error)
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            # A body of the wrong shape (a list where a map belongs) fails wherever it is first
            # read; a real server reports the same while decoding. Nothing has been stored then.
            log.debug("%s %s", request.method, request.path, exc_info=True)
            return refusal(bad_request(f"the object has the wrong shape: {error!r}"))

    def _answer(self, request: Request) -> Reply | Stream:
        if request.path.rstrip("/") in _HEALTH:
            return Reply(200, b"ok", "text/plain")
        caller = identify(request, self._tokens)
        if request.path.startswith("/_weir/"):
            return administer(self._world, self._faults, request)
        if request.path == metrics.PATH:
            return metrics.query(self._world, request)
        if (document := self._document(request.path)) is not None:
            if request.method != "GET":
                raise method_not_allowed()
            return reply(document)
        _check_accept(request)
        delay_s = self._faults.strike(request.method, request.path)
        target = parse_path(request.path, partial(find, self._world.store))
        answer = self._dispatch(request, caller, target)
        answer.delay_s = delay_s
        return answer

    def _document(self, path: str) -> Json | None:
        with self._world.store.lock:
            return discover(path, served(self._world.store)) if is_discovery(path) else None

    def _dispatch(self, request: Request, caller: Caller, target: Target) -> Reply | Stream:
        with self._world.store.lock:
            if request.method == "GET":
                return self._read(request, target)
            if target.subresource == "log":
                raise method_not_allowed(target.resource)
            if target.subresource in ("binding", "eviction"):
                return self._act_on_pod(request, caller, target)
            if not target.name:
                return self._write_collection(request, caller, target)
            return self._write_object(request, caller, target)

    def _find(self, target: Target) -> Record:
        record = self._world.store.get(target.resource, target.namespace or "", target.name)
        if record is None:
            raise not_found(target.resource, target.name)
        return record

    def _read(self, request: Request, target: Target) -> Reply | Stream:
        if not target.resource.stored:
            raise method_not_allowed(target.resource)
        if request.flag("watch"):
            return self._watch(request, target)
        if not target.name:
            return self._list(request, target)
        if target.subresource in ("binding", "eviction", "finalize"):
            raise method_not_allowed(target.resource)
        if target.subresource == "log":
            return log_of(self._find(target), request, self._world.clock.seconds())
        return self._shown(request, self._find(target))

    def _shown(self, request: Request, record: Record, code: int = 200) -> Reply:
        if wants_table(request.headers.get("accept", "")):
            metadata = {"resourceVersion": str(record.version)}
            now = self._world.clock.seconds()
            return reply(table(record.resource, [record], now, metadata), code)
        return Reply(code, record.raw)

    def _list(self, request: Request, target: Target) -> Reply:
        page = self._page(request, target)
        if wants_table(request.headers.get("accept", "")):
            now = self._world.clock.seconds()
            return reply(table(target.resource, page.records, now, page.metadata()))
        return Reply(200, encode_list(target.resource, page))

    def _page(self, request: Request, target: Target) -> Page:
        limit = _number(request, "limit")
        if token := request.query.get("continue"):
            return self._pager.following(token, limit)
        store = self._world.store
        records = select(store, target.resource, parse_selection(request, target))
        return self._pager.first(store.version, records, limit)

    def _watch(self, request: Request, target: Target) -> Stream:
        if target.name:
            request.query["fieldSelector"] = f"metadata.name={target.name}"
        text = request.query.get("resourceVersion", "")
        if text and not text.isdigit():
            raise bad_request(f'resourceVersion: Invalid value: "{text}": must be a number')
        initial = request.flag("sendInitialEvents")
        options = WatchOptions(
            version=None if initial or text in ("", "0") else int(text),
            timeout_s=float(_number(request, "timeoutSeconds") or _WATCH_TIMEOUT_S),
            bookmarks=request.flag("allowWatchBookmarks"),
            bookmark_every_s=self._bookmark_every_s,
            initial_events=initial,
            drop_after_s=self._faults.watch_lifetime(request.path),
        )
        selection = parse_selection(request, target)
        as_table = wants_table(request.headers.get("accept", ""))
        shape = self._table_row if as_table else None
        return Watch(self._world.store, target.resource, selection, options, shape)

    def _table_row(self, record: Record) -> bytes:
        metadata = {"resourceVersion": str(record.version)}
        return encode(table(record.resource, [record], self._world.clock.seconds(), metadata))

    def _write_collection(self, request: Request, caller: Caller, target: Target) -> Reply:
        resource, namespace = target.resource, target.namespace or ""
        if request.method == "POST":
            body = _object(request, resource)
            if not resource.stored:
                # There is no RBAC here: whoever is let in may do everything.
                return reply({**body, "status": {"allowed": True}}, 201)
            if resource.namespaced and target.namespace is None:
                raise bad_request("an empty namespace may not be set during creation")
            return self._shown(request, create(self._world, caller, resource, namespace, body), 201)
        if request.method == "DELETE" and resource is not NAMESPACES:
            options = parse_options(read_body(request, optional=True), request.query)
            chosen = select(self._world.store, resource, parse_selection(request, target))
            delete_collection(self._world, caller, chosen, options)
            return Reply(200, encode_list(resource, Page(self._world.store.version, chosen)))
        raise method_not_allowed(resource)

    def _write_object(self, request: Request, caller: Caller, target: Target) -> Reply:
        match request.method:
            case "PUT":
                return self._put(request, caller, target)
            case "PATCH":
                return self._patch(request, caller, target)
            case "DELETE" if not target.subresource:
                return self._delete(request, caller, target)
        raise method_not_allowed(target.resource)

    def _put(self, request: Request, caller: Caller, target: Target) -> Reply:
        body = _object(request, target.resource)
        if target.subresource == "finalize":
            return self._finalize(request, caller, target, body)
        present = self._world.store.get(target.resource, target.namespace or "", target.name)
        if present is None and target.resource.create_on_update:
            namespace = target.namespace or ""
            record = create(self._world, caller, target.resource, namespace, body)
            return self._shown(request, record, 201)
        record = self._find(target)
        check_address(record, body)
        check_version(record, body)
        return self._shown(
            request, replace(self._world, caller, record, body, subresource=target.subresource)
        )

    def _finalize(self, request: Request, caller: Caller, target: Target, body: Json) -> Reply:
        record = self._find(target)
        spec = {**record.body["spec"], "finalizers": (body.get("spec") or {}).get("finalizers", [])}
        return self._shown(
            request, replace(self._world, caller, record, {**record.body, "spec": spec})
        )

    def _patch(self, request: Request, caller: Caller, target: Target) -> Reply:
        kind = request.content_type
        if kind not in KINDS:
            message = f"the body of the request was in an unknown format - accepted: {KINDS}"
            raise ApiError(415, "UnsupportedMediaType", message)
        change = read_body(request)
        if isinstance(change, dict):
            _drop_unknown(request, target.resource, change)
        sub = target.subresource
        if kind != APPLY:
            record = self._find(target)
            return self._shown(
                request, patch(self._world, caller, record, kind, change, subresource=sub)
            )
        if "fieldManager" not in request.query:
            fault = required("fieldManager", "is required for apply patch")
            raise invalid_options("PatchOptions", fault)
        record, new = apply_patch(
            self._world,
            caller,
            target.resource,
            target.namespace or "",
            change,
            name=target.name,
            subresource=sub,
        )
        return self._shown(request, record, 201 if new else 200)

    def _delete(self, request: Request, caller: Caller, target: Target) -> Reply:
        options = parse_options(read_body(request, optional=True), request.query)
        record = self._find(target)
        return self._deleted(record, delete(self._world, caller, record, options), options)

    def _deleted(self, before: Record, after: Record, options: DeleteOptions) -> Reply:
        resource = before.resource
        still_there = self._world.store.find(before.key) is not None
        if still_there or resource.returns_deleted:
            return Reply(200, after.raw)
        details = {
            "name": before.name, "group": resource.group, "kind": resource.plural,
            "uid": before.uid,
        }  # fmt: skip
        return reply(_success({k: v for k, v in details.items() if v}))

    def _act_on_pod(self, request: Request, caller: Caller, target: Target) -> Reply:
        if request.method != "POST":
            raise method_not_allowed(target.resource)
        body = read_body(request)
        pod = self._find(target)
        if target.subresource == "binding":
            bind(self._world, caller, pod, body)
        else:
            evict(self._world, caller, pod, body)
        return reply(_success(), 201)


def _success(details: Json | None = None) -> Json:
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    else:
        status["code"] = 201
    return status


def _number(request: Request, name: str) -> int:
    text = request.query.get(name) or "0"
    if not text.isdigit():
        raise bad_request(f'{name}: Invalid value: "{text}": must be a number')
    return int(text)


def _object(request: Request, resource: Resource) -> Json:
    body: Any = read_body(request)
    if not isinstance(body, dict):
        raise bad_request("the body must be an object")
    given = (body.get("apiVersion", resource.group_version), body.get("kind", resource.kind))
    if given[1] != resource.kind:
        raise bad_request(
            f"{given[1]} in version {given[0]} cannot be handled as a {resource.kind}"
        )
    if given[0] != resource.group_version:
        raise bad_request(
            f"the API version in the data ({given[0]}) does not match the expected API version "
            f"({resource.group_version})"
        )
    for part in ("metadata", "spec", "status"):
        if body.get(part) is not None and not isinstance(body[part], dict):
            raise bad_request(f"{part}: cannot unmarshal into an object: {body[part]!r}")
    _drop_unknown(request, resource, body)
    return body


def _drop_unknown(request: Request, resource: Resource, body: Json) -> None:
    unknown = drop_unknown(resource.kind, body)
    if unknown and request.query.get("fieldValidation") == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: strict decoding error: {listed}"
        )


def _check_accept(request: Request) -> None:
    accept = request.headers.get("accept", "")
    if accept and not any(kind in accept for kind in ("json", "*/*", "application/*")):
        message = "only the following media types are accepted: application/json"
        raise ApiError(406, "NotAcceptable", message)
