"""The audit log: who did what, as what, whence and why; refused tries too. Nothing here changes anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.formats import date_format

from portal.accounts.capabilities import Capability
from portal.audit.chain import verify
from portal.audit.kinds import GROUPS, EntryKind, kind_of
from portal.audit.models import AuditEntry, Via
from portal.audit.reading import DAYS, AuditQuery, audited_paths, may_audit, visible_entries
from portal.display.csv import Table
from portal.display.format import NONE, duration, number, utc
from portal.teams.rights import rights_of
from portal.web.audit.quotas import KEY, EditOfQuotas, edits_of
from portal.web.frame.context import Shell
from portal.web.frame.requests import PersonRequest, attached_csv, page_view

IN_SECONDS = "_s"
"""How the names of fields end that hold durations."""
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def name_of(field: str) -> str:
    """'inference, h100-80gb, borrowing_limit' -> 'inference, h100-80gb, borrowing limit'."""
    return field.removesuffix(IN_SECONDS).replace("_", " ")


def words_of(field: str, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return NONE
    if isinstance(value, list):
        return ", ".join(words_of(field, one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return duration(value) if field.endswith(IN_SECONDS) else number(value, 3)
    return _instant(value) if isinstance(value, str) and INSTANT.match(value) else str(value)


def _instant(text: str) -> str:
    try:
        return utc(datetime.fromisoformat(text))
    except ValueError:
        return text


PAGE = 50
MOST_CHANGES = 3
"""Changed fields that a line shows; all of them stand below it."""
MOST_CSV = 50_000
COLUMNS = (
    "number", "at", "actor", "allowed_as", "kind", "refused", "cluster", "queue", "subject", "before",
    "after", "reason", "via", "address", "request_id", "digest",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldChange:
    field: str
    before: str
    after: str
    is_fact: bool
    """It says what the act was about: nothing is known to have been otherwise before."""


@dataclass(frozen=True)
class AuditLine:
    """``edit``: the change of quotas that it tells of."""

    entry: AuditEntry
    edit: EditOfQuotas | None = None

    @property
    def kind(self) -> EntryKind:
        return kind_of(self.entry.kind)

    @property
    def changes(self) -> list[FieldChange]:
        before, after = self.entry.before or {}, self.entry.after or {}
        return [
            FieldChange(
                name_of(name),
                words_of(name, before.get(name)),
                words_of(name, after.get(name)),
                is_fact=name not in before,
            )
            for name in {**before, **after}
            if name != KEY
        ]

    @property
    def first_changes(self) -> list[FieldChange]:
        return self.changes[:MOST_CHANGES]

    @property
    def more(self) -> int:
        return max(0, len(self.changes) - MOST_CHANGES)


@page_view
def audit(request: PersonRequest) -> HttpResponse:
    _check(request)
    query = AuditQuery(request.GET.dict())
    seen = visible_entries(request.user)
    found = query.of(seen)
    page = found.filter(number__lt=query.before) if query.before else found
    shown = list(page[: PAGE + 1])
    edits = edits_of(shown, request.user)
    lines = [AuditLine(entry, edits.get(entry.number)) for entry in shown]
    context = {
        "asked": query,
        "ranges": DAYS,
        "groups": GROUPS.items(),
        "ways": Via.choices,
        "people": _people(seen),
        "paths": audited_paths(request.user),
        "days": list(_days(lines[:PAGE], Shell(request).zone)),
        "older": lines[PAGE - 1].entry.number if len(lines) > PAGE else None,
        "matching": found.count(),
        "total": seen.count(),
        "by_way": _by_way(found),
        "refused": found.filter(refused=True).count(),
        "verdict": verify() if _sees_all(request) else None,
        "first": seen.order_by("number").first(),
        "query": _query(request),
    }
    return render(request, "web/audit/audit.html", context)


@page_view
def audit_csv(request: PersonRequest) -> HttpResponse:
    """What the filters leave, newest first."""
    _check(request)
    found = AuditQuery(request.GET.dict()).of(visible_entries(request.user))[:MOST_CSV]
    rows = [[_cell(getattr(entry, name)) for name in COLUMNS] for entry in found]
    return attached_csv(Table("audit", "Audit log", COLUMNS, rows), "audit.csv")


def _cell(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value


def _check(request: PersonRequest) -> None:
    """Raises Http404 for whoever audits nothing."""
    if not may_audit(request.user):
        raise Http404


def _sees_all(request: PersonRequest) -> bool:
    return rights_of(request.user).everywhere(Capability.AUDIT)


def _people(seen: Any) -> list[str]:
    names = seen.exclude(actor="").order_by("actor").values_list("actor", flat=True)
    return list(names.distinct())


def _by_way(found: Any) -> list[tuple[str, int]]:
    counts = dict(found.order_by().values_list("via").annotate(Count("number")))
    return [(label, counts[way]) for way, label in Via.choices if way in counts]


def _days(lines: Sequence[AuditLine], zone: str) -> Iterator[tuple[str, list[AuditLine]]]:
    here = ZoneInfo(zone)
    for day, group in groupby(lines, key=lambda line: line.entry.at.astimezone(here).date()):
        yield date_format(day, "D j M Y"), list(group)


def _query(request: PersonRequest) -> str:
    """The filters as an address holds them, without where the page begins."""
    query = request.GET.copy()
    query.pop("before", None)
    return query.urlencode()
