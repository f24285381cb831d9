"""Alerts: rules with their state now, and what an edit of one would have done, before it is saved."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.alerts import words
from portal.alerts.figure import drawn, is_drawable
from portal.alerts.firing import RuleState
from portal.alerts.forms import RuleForm, initial
from portal.alerts.models import Rule, Watch
from portal.alerts.page import RuleRow, Trial, dates, rows, tried
from portal.alerts.rules import acknowledge_rule, may_watch, save, visible
from portal.alerts.rules import delete as delete_it
from portal.display.format import counted, duration, zone
from portal.display.sentences import and_list
from portal.web.frame.context import Shell
from portal.web.frame.forms import saved
from portal.web.frame.requests import PersonRequest, act_view, form_view, page_view
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError


@form_view
def alerts(request: PersonRequest, cluster: str) -> HttpResponse:
    """All rules; a new one is saved here."""
    found = opened(request, cluster)
    return _page(request, found, None)


@form_view
def rule(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """The same with one of them to edit."""
    found = opened(request, cluster)
    return _page(request, found, get_object_or_404(visible(request.user, found), pk=pk))


def opened(request: PersonRequest, name: str) -> Cluster:
    found = get_cluster(request, name)
    if not may_watch(request.user, found):
        raise Http404
    return found


def _page(request: PersonRequest, cluster: Cluster, edited: Rule | None) -> HttpResponse:
    form = _form(request, cluster, edited)

    def keep() -> Rule:
        return save(by=request.user, cluster=cluster, wish=form.wish(), rule=edited)

    if saved(request, form, keep, lambda rule: f"Saved: {words.fires(rule)}."):
        return redirect("web:alerts", cluster.name)
    only_mine = request.GET.get("show") == "mine"
    found = rows(request.user, cluster, only_mine=only_mine)
    open_form = edited is not None or "new" in request.GET or request.method == "POST"
    context = {
        "cluster": cluster,
        "rows": found,
        "dates": dates(cluster.now(), zone(Shell(request).zone)),
        "counts": Counter(row.verdict for row in found),
        "finding": _finding(found),
        "looked_at": Watch.objects.filter(cluster=cluster).values_list("at", flat=True).first(),
        "edited": edited,
        "form": form if open_form else None,
        "only_mine": only_mine,
        "fired_all": sum(row.fired for row in found),
        "edited_told": words.whom(edited) if edited else "",
        **(_tried(request, cluster, form, edited) if open_form else {}),
    }
    return render(request, "web/alerts/alerts.html", context, status=400 if form.errors else 200)


def _form(request: PersonRequest, cluster: Cluster, edited: Rule | None) -> RuleForm:
    return RuleForm(
        request.POST if request.method == "POST" else None,
        user=request.user, cluster=cluster, initial=initial(edited),
    )  # fmt: skip


def _tried(
    request: PersonRequest, cluster: Cluster, form: RuleForm, edited: Rule | None
) -> dict[str, Any]:
    """What the rule as it is typed would have done; of a form nobody has changed, as it is."""
    if form.is_bound and not form.is_valid():
        return {}
    if form.is_bound:
        wish = form.wish()
        candidate = Rule(cluster=cluster, **wish.columns())
    elif edited is not None:
        candidate = edited
    else:
        return {}
    seen = tried(request.user, candidate, edited, cluster.now())
    figure = drawn(seen, zone(Shell(request).zone)) if is_drawable(seen) else None
    return {"tried": seen, "told": _outcome(seen), "figure": figure}


def _outcome(seen: Trial) -> tuple[str, str]:
    """(what it would have done, beside what the rule did as it is)."""
    if not seen.is_kept:
        return "Its past is not kept, so nobody knows what it would have done.", ""
    count = len(seen.spells)
    bold = f"Would have fired {counted(count, 'time')} in the last 14 days"
    bold += f", for {duration(seen.lasted_s)} in all." if count else "."
    if seen.before is None:
        return bold, ""
    return bold, f"As it is, it would have fired {counted(seen.fired_before, 'time')}."


def _finding(found: list[RuleRow]) -> tuple[str, str]:
    firing = [row for row in found if row.verdict == RuleState.FIRING]
    if not firing:
        near = sum(row.verdict == RuleState.NEAR for row in found)
        return f"None of {counted(len(found), 'rule')} fires.", (
            f"{counted(near, 'rule')} {'is' if near == 1 else 'are'} near." if near else ""
        )
    verb = "fires" if len(firing) == 1 else "fire"
    kinds = Counter(row.rule.get_figure_display() for row in firing)
    names = and_list(f"{kind} ({n})" if n > 1 else kind for kind, n in kinds.items())
    open_ = sum(row.firing is not None and row.firing.acknowledged_at is None for row in firing)
    rest = "Nobody has acknowledged any of them." if open_ == len(firing) else ""
    if open_ == 1 == len(firing):
        rest = "Nobody has acknowledged it."
    elif 0 < open_ < len(firing):
        has = "has" if open_ == 1 else "have"
        rest = f"{open_} of them {has} not been acknowledged."
    return f"{len(firing)} of {counted(len(found), 'rule')} {verb}: {names}.", rest


@page_view
def preview(request: PersonRequest, cluster: str) -> HttpResponse:
    """What a rule as it is typed would have done in the last two weeks. Keeps nothing."""
    found = opened(request, cluster)
    text = request.GET.get("rule", "")
    edited = None
    if text.isdecimal() and len(text) < 18:
        edited = visible(request.user, found).filter(pk=int(text)).first()
    form = RuleForm(request.GET, user=request.user, cluster=found)
    context = {"cluster": found, **_tried(request, found, form, edited)}
    if not form.is_valid():
        context["faults"] = [str(error) for errors in form.errors.values() for error in errors]
    return render(request, "web/alerts/_tried.html", context)


@act_view
def delete(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = opened(request, cluster)
    gone = get_object_or_404(visible(request.user, found), pk=pk)
    delete_it(gone, by=request.user)
    messages.success(request, f"Deleted: {words.fires(gone)}.")
    return redirect("web:alerts", found.name)


@act_view
def acknowledge(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Of the rule: that somebody looks after what fires now."""
    found = opened(request, cluster)
    watched = get_object_or_404(visible(request.user, found), pk=pk)
    try:
        acknowledge_rule(watched, by=request.user, now=found.now())
        messages.success(request, f"You look after {watched.get_figure_display().lower()}.")
    except ServiceError as refused:
        messages.error(request, str(refused))
    return redirect("web:alerts", found.name)
