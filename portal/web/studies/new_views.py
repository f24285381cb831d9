"""A study as it is put together: a what-if in the address, an experiment in one form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render

from portal.boundary.reading import one_line, whole_or
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, form_view
from portal.web.operations.mode import operated
from portal.web.studies import asking, forms
from portal.web.studies.what_if import WORDS
from scheduling.models import Cluster, PriorityClass, Queue, Study
from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import KNOBS
from scheduling.services.studies import doors
from scheduling.services.studies import what_if as questions
from scheduling.services.studies.experiments import asking as experiments
from scheduling.services.studies.experiments import traces
from scheduling.services.studies.experiments.figures import FIGURES
from scheduling.services.studies.kinds import EXPERIMENTS, WHAT_IFS
from scheduling.services.studies.whatif import answers
from scheduling.services.studies.whatif.changes import read

LISTED = 12
SETTINGS = (
    "sharing", "order", "history_strength", "user_history_strength", "preemption_delay_s",
    "eviction_cap", "placement", "spread_weight", "fair_share_delay_s", "max_evictions", "max_moves",
    "cooldown_s", "claim_hold_s", "charge_s", "reserve_after_s", "backfill_quantile",
    "usage_half_life_s",
)  # fmt: skip
PLANNED_BY = (
    "cycle_interval_s", "idle_after_s", "cull_after_s", "lowering_grace_s", "class_order",
    "topology_levels",
)  # fmt: skip
"""Fields of the policy by which nothing is lived differently in a replay."""


@form_view
def what_if(request: PersonRequest, cluster: str) -> HttpResponse:
    """The question as it grows in the address, and those that were asked before."""
    found = operated(request, cluster)
    query = request.POST if request.method == "POST" else request.GET
    changes: list[dict[str, Any]] = []
    fault: ServiceError | None = None
    try:
        changes = forms.changes_in(query)
        if query.get("add"):
            grown = [*changes, forms.added(query)]
            read(grown)
            return redirect(f"{request.path}?{forms.as_query(grown)}")
        if request.method == "POST":
            return _ask_what_if(request, found, changes)
    except ServiceError as error:
        fault = error
    context = _what_if(found, changes, fault)
    before = Study.objects.filter(cluster=found, kind__in=WHAT_IFS)
    context |= {"typed": query, "page": page_of(request, before, size=LISTED)}
    return render(request, "web/lab/what_ifs.html", context, status=400 if fault else 200)


def _ask_what_if(
    request: PersonRequest, cluster: Cluster, changes: list[dict[str, Any]]
) -> HttpResponse:
    days = request.POST.get("days", "7")
    more = {"replays": False} if days == "now" else {"days": whole_or(days, 0)}
    question = questions.ask(
        cluster=cluster, document=changes, author=request.user.get_username(), **more
    )
    doors.start(question)
    return redirect("web:study", cluster=cluster.name, pk=question.pk)


def _what_if(
    cluster: Cluster, changes: list[dict[str, Any]], fault: ServiceError | None
) -> dict[str, Any]:
    rows = []
    for i, one in enumerate(changes):
        rest = changes[:i] + changes[i + 1 :]
        rows.append(
            (WORDS.get(one.get("kind", ""), "Change"), _title(one), one, forms.as_query(rest))
        )
    queues = Queue.objects.filter(cluster=cluster, parent__isnull=False)
    return {
        "cluster": cluster,
        "rows": rows,
        "hidden": [forms.as_text(one) for one in changes],
        "fault": fault,
        "queues": queues,
        "leaves": [queue for queue in queues if not queue.children.exists()],
        "classes": list(cluster.gpu_classes.all()),
        "priorities": list(PriorityClass.objects.all()),
        "settings": SETTINGS,
        "tab": "what_if",
    }


def _title(change: dict[str, Any]) -> str:
    try:
        return answers.title(read([change]))
    except ServiceError as error:
        return str(error)


@form_view
def experiment(request: PersonRequest, cluster: str) -> HttpResponse:
    """One form: every button but the last shows it again, with a variant more or fewer."""
    found = operated(request, cluster)
    fault: ServiceError | None = None
    form = _former(request, found)
    if request.method == "POST":
        try:
            form = asking.read_form(request.POST)
            if "add" in request.POST or "remove" in request.POST:
                form = replace(form, variants=asking.with_next(form, request.POST))
            elif "look" not in request.POST:
                return _begin(request, found, form)
        except ServiceError as error:
            fault = error
    context = _composing(found, form, fault)
    context["post"] = request.POST
    return render(request, "web/lab/experiment_new.html", context, status=400 if fault else 200)


def _former(request: PersonRequest, cluster: Cluster) -> asking.ComposedForm:
    clone = whole_or(request.GET.get("clone", ""), 0)
    rows = Study.objects.filter(cluster=cluster, kind__in=EXPERIMENTS).defer("world", "work")
    former = rows.filter(pk=clone).first() if clone else None
    return asking.again(former) if former else asking.empty(cluster)


def _begin(request: PersonRequest, cluster: Cluster, form: asking.ComposedForm) -> HttpResponse:
    readable("name", form.name)
    question = asking.question_of(cluster, form)
    made = experiments.ask(cluster=cluster, author=request.user.get_username(), question=question)
    doors.start(made)
    return redirect("web:study", cluster=cluster.name, pk=made.pk)


def readable(field: str, text: str) -> None:
    try:
        one_line(text)
    except ValidationError as error:
        raise ServiceError(
            "bad_text", "That cannot stand here.", error.messages[0], field=field
        ) from error


def _composing(
    cluster: Cluster, form: asking.ComposedForm, fault: ServiceError | None
) -> dict[str, object]:
    try:
        question = asking.question_of(cluster, form)
    except ServiceError:
        question = None
    queues = Queue.objects.filter(cluster=cluster, parent__isnull=False)
    return {
        "cluster": cluster,
        "told": form,
        "rows": asking.rows(form, fault),
        "left": max(0, len(experiments.LETTERS) - 1 - len(form.variants)),
        "most": len(experiments.LETTERS),
        "count": len(form.variants) + 1,
        "fault": fault,
        "drawing": asking.drawing(cluster, question),
        "asked": question,
        "resolution": asking.resolution(cluster, form),
        "queues": list(queues),
        "classes": list(cluster.gpu_classes.all()),
        "knobs": [knob for knob in KNOBS if knob.field not in PLANNED_BY],
        "figures": FIGURES,
        "kept_traces": traces.trace_names(),
        "endings": traces.SENT_AS,
        "most_sent": traces.MOST_SENT,
        "tab": "studies",
    }
