"""Policy lab, Experiments: begun, left, found again, cancelled, promoted."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.boundary.reading import one_line, whole_or
from portal.display.csv import csv_lines
from portal.web.experiments import asking, basis, doors, shown
from portal.web.experiments.tables import table
from portal.web.frame.requests import PersonRequest
from portal.web.operations.mode import operated
from scheduling.models import Cluster, Experiment, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.lab import experiments as kept
from scheduling.services.lab import running, traces
from scheduling.services.lab.figures import FIGURES
from scheduling.services.lab.promoting import promote as note_promotion
from scheduling.services.policy.knobs import KNOBS

LISTED = 100
PLANNED_BY = ("cycle_interval_s", "idle_after_s", "cull_after_s", "lowering_grace_s", "class_order")
"""Fields of the policy by which nothing is lived differently in a replay."""


def _of(cluster: Cluster) -> QuerySet[Experiment]:
    """Without what only a worker reads: that is megabytes."""
    return (
        Experiment.objects.filter(cluster=cluster).defer("world", "work").select_related("cluster")
    )


def _one(cluster: Cluster, pk: int) -> Experiment:
    return get_object_or_404(_of(cluster), pk=pk)


@login_required
@require_safe
def experiments(request: PersonRequest, cluster: str) -> HttpResponse:
    found = operated(request, cluster)
    by = request.GET.get("by", "people")
    if by not in kept.BY:
        by = "people"
    rows = (
        _of(found)
        .filter(kept.BY[by])
        .prefetch_related("variants")
        .annotate(
            done=Count("variants__replays", filter=Q(variants__replays__done_at__isnull=False)),
            of=Count("variants__replays"),
        )
    )
    listed = [
        (one, _state(one), [v for v in one.variants.all() if v.promoted_at])
        for one in rows[:LISTED]
    ]
    context = {
        "cluster": found,
        "rows": listed,
        "by": by,
        "counts": _counts(found),
        "tab": "experiments",
    }
    return render(request, "web/lab/experiments.html", context)


def _counts(cluster: Cluster) -> list[tuple[str, str, int]]:
    """Key, words and number of each choice."""
    each = {key: Count("pk", filter=asked) for key, asked in kept.BY.items()}
    numbers = Experiment.objects.filter(cluster=cluster).aggregate(**each)
    return [(key, key.capitalize(), numbers[key]) for key in kept.BY]


def _state(experiment: Experiment) -> str:
    states = {one.state for one in experiment.variants.all()}
    if states & set(kept.OPEN):
        return "running"
    for state in ("failed", "cancelled"):
        if state in states:
            return state if len(states) == 1 else f"done, partly {state}"
    return "done"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: PersonRequest, cluster: str) -> HttpResponse:
    """One form: every button but the last shows it again, with a variant more or fewer."""
    found = operated(request, cluster)
    fault: ServiceError | None = None
    told = _begun(request, found)
    if request.method == "POST":
        try:
            told = asking.typed(request.POST)
            if "add" in request.POST or "remove" in request.POST:
                told = replace(told, variants=asking.with_next(told, request.POST))
            elif "look" not in request.POST:
                return _begin(request, found, told)
        except ServiceError as error:
            fault = error
    context = _composing(found, told, fault)
    context["post"] = request.POST
    return render(request, "web/lab/experiment_new.html", context, status=400 if fault else 200)


def _begun(request: PersonRequest, cluster: Cluster) -> asking.Typed:
    clone = whole_or(request.GET.get("clone", ""), 0)
    former = _of(cluster).filter(pk=clone).first() if clone else None
    return asking.again(former) if former else asking.empty(cluster)


def _begin(request: PersonRequest, cluster: Cluster, told: asking.Typed) -> HttpResponse:
    _readable("name", told.name)
    asked = asking.asked(cluster, told)
    made = kept.ask(cluster=cluster, author=request.user.get_username(), asked=asked)
    running.start(made)
    return redirect("web:experiment", cluster=cluster.name, pk=made.pk)


def _readable(field: str, text: str) -> None:
    try:
        one_line(text)
    except ValidationError as error:
        raise ServiceError("bad_text", error.messages[0], field=field) from error


def _composing(
    cluster: Cluster, told: asking.Typed, fault: ServiceError | None
) -> dict[str, object]:
    try:
        asked = asking.asked(cluster, told)
    except ServiceError:
        asked = None
    queues = Queue.objects.filter(cluster=cluster, parent__isnull=False)
    return {
        "cluster": cluster,
        "told": told,
        "rows": asking.rows(told, fault),
        "left": max(0, len(kept.LETTERS) - 1 - len(told.variants)),
        "most": len(kept.LETTERS),
        "count": len(told.variants) + 1,
        "fault": fault,
        "drawing": asking.drawing(cluster, asked),
        "asked": asked,
        "resolution": asking.resolution(cluster, told),
        "queues": list(queues),
        "classes": list(cluster.gpu_classes.all()),
        "knobs": [knob for knob in KNOBS if knob.field not in PLANNED_BY],
        "figures": FIGURES,
        "kept_traces": traces.kept(),
        "endings": traces.ENDINGS,
        "most_sent": traces.MOST_SENT,
        "tab": "experiments",
    }


@login_required
@require_safe
def one(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = operated(request, cluster)
    return _page(request, _one(found, pk), None)


def _page(
    request: PersonRequest, experiment: Experiment, fault: ServiceError | None
) -> HttpResponse:
    page = shown.page(experiment)
    promoted = [
        (variant, doors.doors(request.user, variant), doors.left_out(variant))
        for variant in experiment.variants.select_related("experiment__cluster").exclude(
            promoted_at=None
        )
    ]
    context = {
        "cluster": experiment.cluster,
        "experiment": experiment,
        "page": page,
        "promoted": promoted,
        "work": basis.work(experiment),
        "world": basis.world(experiment),
        "fault": fault,
        "typed": request.POST,
        "floor": shown.FLOOR,
        "tab": "experiments",
    }
    return render(request, "web/lab/experiment.html", context, status=400 if fault else 200)


@login_required
@require_safe
def as_csv(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    experiment = _one(operated(request, cluster), pk)
    answer = HttpResponse(
        "".join(csv_lines(table(experiment))), content_type="text/csv; charset=utf-8"
    )
    answer["Content-Disposition"] = f'attachment; filename="experiment-{experiment.pk}.csv"'
    return answer


@login_required
@require_POST
def cancel(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """One variant, or without a letter all."""
    experiment = _one(operated(request, cluster), pk)
    letter = request.POST.get("letter", "")
    if not kept.cancel(experiment, letter=letter, author=request.user.get_username()):
        messages.info(request, "It had ended already.")
    return redirect("web:experiment", cluster=cluster, pk=pk)


@login_required
@require_POST
def promote(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Note the choice; what changes goes through its own door, with its preview."""
    experiment = _one(operated(request, cluster), pk)
    variant = experiment.variants.filter(letter=request.POST.get("letter", "")[:1]).first()
    reason = request.POST.get("reason", "")
    try:
        _readable("reason", reason)
        if variant is None:
            raise ServiceError(
                "no_variant", "There is no such variant.", "Choose one.", field="variant"
            )
        note_promotion(variant=variant, author=request.user.get_username(), reason=reason)
    except ServiceError as error:
        return _page(request, experiment, error)
    found = doors.doors(request.user, variant)
    if len(found) == 1 and found[0].address:
        return redirect(found[0].address)
    messages.success(
        request, f"{variant} is promoted. Go through each door below: nothing is changed yet."
    )
    return redirect("web:experiment", cluster=cluster, pk=pk)
