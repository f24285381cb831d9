"""Setting the mode of a cluster. It says first, in numbers, what that begins or ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Sum
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.display.format import counted
from portal.display.sentences import and_list
from portal.display.units import gpus_of
from portal.teams.access import is_operator
from portal.web.frame.requests import PersonRequest, acted
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster, ClusterMode, GuardrailState, Node, State
from scheduling.models.workloads import WAITING
from scheduling.services.clusters import add as clusters
from scheduling.services.clusters.discovery import absent
from scheduling.services.clusters.enforcing import enforce, left_by
from scheduling.services.errors import ServiceError
from scheduling.services.lists import few

MEANING = {
    ClusterMode.OBSERVE: "Weir plans and shows what it would do, and writes nothing to the cluster.",
    ClusterMode.ENFORCE: "Weir admits and evicts work, and keeps the guardrails in step.",
    ClusterMode.PAUSED: "Weir leaves the cluster alone. Nothing is planned or compared.",
}
MOST_NAMED = 8
WAITING_NOW = "workload that waits now,workloads that wait now"
GOING_ON = "workload that holds GPUs goes on,workloads that hold GPUs go on"
ACTS = {ClusterMode.OBSERVE: "Observe", ClusterMode.ENFORCE: "Enforce", ClusterMode.PAUSED: "Pause"}


@login_required
@require_http_methods(["GET", "POST"])
def mode(request: PersonRequest, cluster: str, mode: str) -> HttpResponse:
    found = operated(request, cluster)
    if mode not in ClusterMode.values:
        raise Http404
    wanted = ClusterMode(mode)
    if request.method == "POST" and acted(request, lambda: _set(request, found, wanted), _said):
        return redirect("web:cluster", cluster=found.name)
    shown = {
        "cluster": found,
        "act": ACTS[wanted],
        "meaning": MEANING[wanted],
        "effects": list(effects(found, wanted)),
        "left": left_by(found) if wanted == ClusterMode.ENFORCE else None,
    }
    status = 400 if request.method == "POST" else 200
    return render(request, "web/operations/mode.html", shown, status=status)


def _set(request: PersonRequest, cluster: Cluster, mode: ClusterMode) -> tuple[Cluster, bool]:
    if mode == ClusterMode.ENFORCE:
        left = request.POST.get("left", "")
        return cluster, enforce(cluster, left=left, author=request.user)
    return cluster, clusters.set_mode(cluster, mode, author=request.user)


def _said(made: tuple[Cluster, bool]) -> str:
    cluster, changed = made
    begins = "" if changed else " It was so already."
    return f"{cluster.name}: {MEANING[ClusterMode(cluster.mode)]}{begins}"


def operated(request: PersonRequest, name: str) -> Cluster:
    """The cluster called ``name``, for operators. Raises Http404 for everybody else."""
    found = get_cluster(request, name)
    if not is_operator(request.user):
        raise Http404
    return found


def choices(cluster: Cluster) -> list[tuple[str, str]]:
    """(mode, what its button says) of every mode but its own."""
    return [(mode.value, ACTS[mode]) for mode in ClusterMode if mode != cluster.mode]


def last_set(cluster: Cluster) -> Any:
    """The line of history with which its mode began; None for one that never had another."""
    before = cluster.history.exclude(mode=cluster.mode).order_by("history_id").last()
    if before is None:
        return None
    since = cluster.history.filter(history_id__gt=before.history_id).select_related("history_user")
    return since.order_by("history_id").first()


def effects(cluster: Cluster, mode: ClusterMode) -> Iterator[str]:
    """What setting ``mode`` begins and ends, in numbers."""
    waiting = cluster.workloads.filter(state__in=WAITING).count()
    holding = cluster.workloads.filter(state__in=(State.ADMITTED, State.RUNNING)).count()
    if mode != ClusterMode.ENFORCE:
        yield f"{counted(waiting, WAITING_NOW)} will not be started by Weir."
        yield f"{counted(holding, GOING_ON)}; none is evicted."
        yield "Guardrails stay on the cluster as they are: GPU work still has to name a queue."
        yield "Enforcing again goes on from what the cluster then shows."
        return
    yield from _first_writes(cluster)
    waits, holds = counted(waiting, "workload"), counted(holding, "workload")
    yield f"{waits} waiting now: what the plan has room for is started in the next cycle."
    yield f"{holds} holding GPUs in queues: adopted as they run, evicted where the plan says so."
    yield from _outside(cluster)
    yield "Work that is unsuspended past its queue from then on is suspended again."


def _outside(cluster: Cluster) -> Iterator[str]:
    """Whose next submission is refused, and what is written there; what stays outside, the page asks
    about."""
    spaces = sorted(cluster.queues.exclude(namespace="").values_list("namespace", flat=True))
    if not spaces:
        return
    yield (
        "From then on GPU work without the label weir.dev/queue is refused in "
        f"{counted(len(spaces), 'namespace')}: {few(spaces, MOST_NAMED)}. Label what creates it first."
    )
    yield (
        "These namespaces get a ResourceQuota, a LimitRange and the Pod Security level of their queue; "
        f"{_made(cluster, spaces)}."
    )


def _made(cluster: Cluster, spaces: Sequence[str]) -> str:
    """Which of ``spaces`` are made, in words."""
    try:
        missing = absent(cluster, spaces)
    except ServiceError:
        return "one that does not exist is made"
    if not missing:
        return "all of them exist"
    verbs = ("does", "is") if len(missing) == 1 else ("do", "are")
    return "{} {} not exist and {} made".format(and_list(missing), *verbs)


def outside_gpus(cluster: Cluster) -> float:
    """Milli-GPU that pods outside the queues hold; slices count as their part of a GPU."""
    rows = Node.objects.filter(cluster=cluster).values_list("gpu_class__resource_name")
    return sum(
        float(gpus_of(name)) * gpus
        for name, gpus in rows.annotate(held=Sum("foreign_gpus")).order_by()
    )


def _first_writes(cluster: Cluster) -> Iterator[str]:
    if cluster.guarded_at is None:
        yield "The guardrails were never compared; what they would write is not known."
        return
    total = cluster.guardrails.count()
    out = cluster.guardrails.exclude(standing=GuardrailState.IN_STEP).count()
    differ = "is not as it should be" if out == 1 else "are not as they should be"
    yield f"{out} of {counted(total, 'guardrail')} {differ}: written first."
