"""Lists: selection, pages, and the bytes of a whole list without re-encoding its objects."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from workshop.testbed.server.kinds.errors import bad_request, expired
from workshop.testbed.server.kinds.resources import Json, Resource
from workshop.testbed.server.kinds.selectors import Test, parse_fields, parse_labels
from workshop.testbed.server.store.store import Record, Store, encode

from .messages import Request
from .routing import Target


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a resource a list or watch is about."""

    namespace: str | None = None
    labels: Test | None = None
    fields: Callable[[Json], bool] | None = None

    @property
    def everything(self) -> bool:
        """Return whether it leaves nothing out."""
        return self.namespace is None and self.labels is None and self.fields is None

    def matches(self, record: Record) -> bool:
        """Return whether `record` is selected."""
        if self.namespace is not None and record.namespace != self.namespace:
            return False
        labels = record.body["metadata"].get("labels") or {}
        if self.labels is not None and not self.labels(labels):
            return False
        return self.fields is None or self.fields(record.body)


def parse_selection(request: Request, target: Target) -> Selection:
    """Return what the query selects. Raises ApiError (400) for unreadable selectors."""
    labels = request.query.get("labelSelector")
    fields = request.query.get("fieldSelector")
    return Selection(
        target.namespace,
        parse_labels(labels) if labels else None,
        parse_fields(fields, target.resource) if fields else None,
    )


def select(store: Store, resource: Resource, selection: Selection) -> list[Record]:
    """Return the selected objects in the order of their keys."""
    records = store.listing(resource, selection.namespace)
    if selection.labels is None and selection.fields is None:
        return records
    return [record for record in records if selection.matches(record)]


@dataclass(slots=True)
class Page:
    """A part of a list: the version it shows, its objects, how to go on."""

    version: int
    records: list[Record]
    more: str = ""
    remaining: int = 0

    def metadata(self) -> Json:
        """Return the list's metadata."""
        metadata: Json = {"resourceVersion": str(self.version)}
        if self.more:
            metadata["continue"] = self.more
            metadata["remainingItemCount"] = self.remaining
        return metadata


class Pager:
    """Cuts lists into pages that all show one version; the latest 64 begun lists are kept."""

    def __init__(self) -> None:
        self._rests: OrderedDict[int, tuple[int, list[Record]]] = OrderedDict()
        self._next = 0

    def first(self, version: int, records: list[Record], limit: int) -> Page:
        """Return the first page of `records`; `limit` 0 means all."""
        if limit <= 0 or len(records) <= limit:
            return Page(version, records)
        return self._cut(version, records, 0, limit)

    def following(self, token: str, limit: int) -> Page:
        """Return the page that `token` asks for. Raises ApiError: 400 unreadable, 410 too old."""
        try:
            wanted = json.loads(base64.urlsafe_b64decode(token))
            number, start = int(wanted["list"]), int(wanted["start"])
        except (ValueError, KeyError, TypeError) as error:
            raise bad_request("continue key is not valid") from error
        if number not in self._rests:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        version, records = self._rests[number]
        return self._cut(version, records, start, limit or len(records), number)

    def _cut(
        self, version: int, records: list[Record], start: int, limit: int, number: int = 0
    ) -> Page:
        end = start + limit
        page = Page(version, records[start:end])
        if end < len(records):
            if not number:
                self._next += 1
                number = self._next
                self._rests[number] = (version, records)
            token = encode({"rv": version, "list": number, "start": end})
            page.more = base64.urlsafe_b64encode(token).decode()
            page.remaining = len(records) - end
        while len(self._rests) > 64:
            self._rests.popitem(last=False)
        return page


def encode_list(resource: Resource, page: Page) -> bytes:
    """Return the list as bytes; items carry no apiVersion and kind, as on a real server."""
    head = f'{{"apiVersion":"{resource.group_version}","kind":"{resource.kind}",'.encode()
    cut = len(head)
    items = b",".join(
        b"{" + raw[cut:] if (raw := record.raw).startswith(head) else raw for record in page.records
    )
    top = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        f"{resource.kind}List".encode(),
        resource.group_version.encode(),
        encode(page.metadata()),
    )
    return top + items + b"]}"
