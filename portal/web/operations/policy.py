"""The policy of a cluster: every field with its meaning, its default and whom it touches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from portal.display.format import counted, duration
from portal.plans import asking as plans
from portal.plans.asking import PlanState
from portal.plans.kinds import CHANGES
from portal.teams.access import is_admin
from portal.web.frame.requests import PersonRequest, form_view
from portal.web.operations.mode import operated
from portal.web.quotas.preview import UNPLANNED, EditPreview, readable, tried
from portal.web.studies.drafts import DRAFT
from portal.web.studies.ways import each_way
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import KNOBS, Knob, check, policy_of, set_policy
from scheduling.services.studies import doors
from scheduling.services.studies.experiments.sharing import ask_of_sharing
from scheduling.services.studies.whatif.documents import changes_of_policy

Json = dict[str, Any]
MINUTE_S = 60


def live_each_way(request: PersonRequest, cluster: Cluster) -> HttpResponse:
    """Have the last weeks lived in each way; on to that experiment."""
    try:
        study = ask_of_sharing(cluster, request.user.get_username())
    except ServiceError as error:
        messages.error(request, str(error))
        return redirect("web:policy", cluster.name)
    doors.start(study)
    return redirect("web:study", cluster=cluster.name, pk=study.pk)


@form_view
def policy(request: PersonRequest, cluster: str) -> HttpResponse:
    """Operators read it; whoever administers changes it, with a reason."""
    found = operated(request, cluster)
    faults: dict[str, str] = {}
    seen: EditPreview | None = None
    plan_state: PlanState | None = None
    if request.method == "POST":
        if not is_admin(request.user):
            raise Http404
        if "each_way" in request.POST:
            return live_each_way(request, found)
        values, faults = _read(request.POST)
        if not faults and "preview" in request.POST:
            seen = tried(request.user, found, changes_of_policy(found, values))
        elif not faults:
            faults = _save(request, found, values)
            if not faults:
                return redirect("web:policy", found.name)
    typed = request.POST
    if request.method != "POST" and DRAFT in request.GET and is_admin(request.user):
        typed = request.GET
        values, faults = _read(typed)
        seen, plan_state = (None, None) if faults else _awaited(request, found, values)
    groups = _groups(found, typed, faults)
    context = {
        "cluster": found,
        "is_draft": typed is request.GET,
        "groups": groups,
        "edited": [row for _, rows in groups for row in rows if row["was"]],
        "faults": faults,
        "told": seen,
        **plans.context_of(plan_state),
        "reason": typed.get("reason", ""),
        "may_set": is_admin(request.user),
        "changed": sum(getattr(found, knob.field) != knob.default for knob in KNOBS),
        "count": len(KNOBS),
        **each_way(found),
    }
    return render(request, "web/operations/policy.html", context, status=400 if faults else 200)


def _awaited(
    request: PersonRequest, cluster: Cluster, values: Mapping[str, Any]
) -> tuple[EditPreview | None, PlanState | None]:
    """What is known of what ``values`` would do, and how its plan stands."""
    changes = changes_of_policy(cluster, values)
    if not changes:
        return EditPreview(why=UNPLANNED), None
    plan_state = plans.ask(cluster, CHANGES, {"changes": list(changes)})
    seen = None if plan_state.answer is None else readable(request.user, cluster, plan_state.answer)
    return seen, plan_state


def _read(query: QueryDict) -> tuple[dict[str, Any], dict[str, str]]:
    """Values and faults by field."""
    values, faults = {}, {}
    for knob in KNOBS:
        if knob.field not in query:
            continue
        try:
            values[knob.field] = read(knob, query.get(knob.field, "").strip())
            check(knob.field, values[knob.field])
        except ServiceError as error:
            faults[knob.field] = str(error)
    return values, faults


def _save(request: PersonRequest, cluster: Cluster, values: Mapping[str, Any]) -> dict[str, str]:
    """Faults by field; none where it was saved."""
    reason = request.POST.get("reason", "")
    try:
        before = set_policy(cluster=cluster, values=values, author=request.user, reason=reason)
    except ServiceError as error:
        return {error.field or "reason": str(error)}
    fields = counted(len(before), "field")
    messages.success(request, f"{fields} changed, in force with the next cycle.")
    return {}


def read(knob: Knob, text: str) -> Any:
    """What ``text`` says of it. Raises ServiceError where that is no number."""
    if not text and knob.optional:
        return None
    if knob.choices or knob.read:
        return text
    try:
        return int(text) if knob.whole else float(text)
    except ValueError:
        raise ServiceError(
            "no_number", f"{knob.name} is a number.", f"Its default is {knob.default}.",
            field=knob.field,
        ) from None  # fmt: skip


def _words(knob: Knob, text: str) -> str:
    """``text`` with the choices of the API as people write them."""
    for choice in knob.choices:
        text = text.replace(choice, choice.replace("_", " "))
    return text


def _groups(
    cluster: Cluster, typed: Mapping[str, str], faults: Mapping[str, str]
) -> list[tuple[str, list[dict[str, Any]]]]:
    values = policy_of(cluster)
    groups: dict[str, list[dict[str, Any]]] = {}
    for knob in KNOBS:
        value = values[knob.field]
        shown = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        text = typed.get(knob.field, shown)
        row = {
            "knob": knob,
            "value": text,
            "was": shown or "no bound" if text.strip() != shown else "",
            "length": duration(value) if knob.unit == "s" and value and value >= MINUTE_S else "",
            "default": "no bound" if knob.default is None else _words(knob, str(knob.default)),
            "words": _words(knob, text),
            "meaning": _words(knob, knob.meaning),
            "touches": _words(knob, knob.touches),
            "choices": [(choice, _words(knob, choice)) for choice in knob.choices],
            "own": value != knob.default,
            "fault": faults.get(knob.field, ""),
        }
        groups.setdefault(knob.group, []).append(row)
    return list(groups.items())
