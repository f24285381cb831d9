"""Beside the rules: a test delivery, and the page of what fired in 90 days."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from portal.alerts import past as past_of
from portal.alerts.past import DAYS, PastFirings, Took
from portal.alerts.rules import visible
from portal.alerts.testing import Receipt, send_test
from portal.display.format import counted, duration, zone
from portal.web.alerts.views import opened
from portal.web.frame.context import Shell
from portal.web.frame.requests import PersonRequest, act_view, acted, attached_csv, page_view
from scheduling.models import Cluster


@act_view
def test(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Send a made-up firing of the rule, and say who hears of it by which way."""
    found = opened(request, cluster)
    rule = get_object_or_404(visible(request.user, found), pk=pk)
    acted(request, lambda: send_test(rule, by=request.user), _in_words)
    return redirect("web:alert_rule", found.name, rule.pk)


def _in_words(heard: Iterable[Receipt]) -> str:
    """'A test was sent. ann: bell, mail. bob: nothing, alerts are turned off.'"""
    said = " ".join(f"{_one(one)}." for one in heard)
    return f"A test was sent. {said}" if said else "Nobody would hear of it."


def _one(one: Receipt) -> str:
    name = one.user if one.circle == 1 else f"{one.user}, of the second circle"
    if one.stands_in:
        name = f"{name}, in place of whom only a true firing names"
    if one.due_at is None:
        return f"{name}: nothing, alerts are turned off"
    later = one.due_at - timezone.now()
    after = f" in {duration(later)}" if later > timedelta(minutes=1) else ""
    return f"{name}: {', '.join(one.ways)}{after}"


@page_view
def past(request: PersonRequest, cluster: str) -> HttpResponse:
    """What fired in the last 90 days, by rule and day."""
    found = opened(request, cluster)
    seen = _past(request, found)
    context = {
        "cluster": found,
        "past": seen,
        "finding": _finding(seen),
        "only_mine": _only_mine(request),
        "days": DAYS,
    }
    return render(request, "web/alerts/past.html", context)


@page_view
def past_csv(request: PersonRequest, cluster: str) -> HttpResponse:
    """The same, a line a firing."""
    found = opened(request, cluster)
    return attached_csv(past_of.table(_past(request, found)), f"{found.name}-alerts.csv")


def _past(request: PersonRequest, cluster: Cluster) -> PastFirings:
    tz: Any = zone(Shell(request).zone)
    return past_of.past(request.user, cluster, tz, only_mine=_only_mine(request))


def _only_mine(request: PersonRequest) -> bool:
    return request.GET.get("show") == "mine"


def _finding(seen: PastFirings) -> tuple[str, str]:
    if not seen.firings:
        return f"Nothing fired in the last {DAYS} days.", ""
    of = sum(row.fired > 0 for row in seen.rows)
    bold = f"{of} of {counted(len(seen.rows), 'rule')} fired {counted(len(seen.firings), 'time')}."
    rest = []
    if seen.acknowledged.count:
        rest.append(f"Somebody acknowledged {_in_time(seen.acknowledged)}.")
    else:
        rest.append("Nobody acknowledged any.")
    if seen.resolved.count:
        over = "is over" if seen.resolved.count == 1 else "are over"
        rest.append(f"{_in_time(seen.resolved, over)}.")
    return bold, " ".join(rest)


def _in_time(took: Took, done: str = "") -> str:
    """'2 are over, half of them within 12 h': how many, and in what time half of them; of one its own."""
    within = "after" if took.count == 1 else "half of them within"
    return f"{took.count} {done}".rstrip() + f", {within} {duration(took.median_s)}"
