"""Cancel, hold, release: a page that says in numbers what will happen, then one POST that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from portal.teams.access import may_operate_workload
from portal.web.format import duration, number
from portal.web.requests import PersonRequest
from portal.web.shell import get_cluster
from portal.web.workloads.detail import seen
from scheduling.models import Cluster, State, Workload
from scheduling.services import workloads
from scheduling.services.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb on a workload. ``effects`` are the sentences its page shows before it is done."""

    name: str
    title: str
    button: str
    done: str
    act: Callable[..., None]
    effects: Callable[[Cluster, Workload], Sequence[str]]
    applies: Callable[[Workload], bool]


@login_required
@require_http_methods(["GET", "POST"])
def cancel(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    return _perform(request, cluster, uid, CANCEL)


@login_required
@require_http_methods(["GET", "POST"])
def hold(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    return _perform(request, cluster, uid, HOLD)


@login_required
@require_http_methods(["GET", "POST"])
def release(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    return _perform(request, cluster, uid, RELEASE)


def _perform(request: PersonRequest, name: str, uid: str, verb: Verb) -> HttpResponse:
    cluster = get_cluster(request, name)
    work = get_object_or_404(seen(request.user, cluster), uid=uid)
    if not may_operate_workload(request.user, work):
        raise Http404
    if not verb.applies(work):
        messages.info(request, f"{work.name} is {_state(work)} by now; nothing was done.")
        return redirect("web:workload", cluster=cluster.name, uid=uid)
    if request.method == "POST":
        try:
            verb.act(work, user=request.user.get_username())
        except ServiceError as error:
            return _confirm(request, cluster, work, verb, error)
        messages.success(request, verb.done.format(work.name))
        return redirect("web:workload", cluster=cluster.name, uid=uid)
    return _confirm(request, cluster, work, verb, None)


def _confirm(
    request: PersonRequest, cluster: Cluster, work: Workload, verb: Verb, error: ServiceError | None
) -> HttpResponse:
    shown = {
        "cluster": cluster,
        "work": work,
        "verb": verb,
        "effects": verb.effects(cluster, work),
        "error": error,
    }
    return render(request, "web/workloads/confirm.html", shown, status=409 if error else 200)


def cancel_effects(cluster: Cluster, work: Workload) -> list[str]:
    """What cancelling ends, frees and loses, in numbers."""
    if work.is_waiting:
        return [
            "It leaves the queue; nothing of it runs, so no work is lost.",
            f"Its wait of {duration(cluster.now() - work.submitted_at)} is given up: "
            "submitting it again puts it behind everything that waits now.",
        ]
    held = work.allocated_gpus / 1000
    sentences = [
        f"{_pods(work)} stop{'s' if work.members == 1 else ''} after the grace; "
        f"{number(held, 1)} GPUs go back to {work.queue or 'the cluster'}.",
    ]
    since = max((at for at in (work.checkpointed_at, work.started_at) if at), default=None)
    if since is not None and work.state == State.RUNNING:
        age = max(0.0, (cluster.now() - since).total_seconds())
        what = "the last checkpoint" if since == work.checkpointed_at else "it started"
        sentences.append(
            f"The work since {what} is lost: {number(held, 1)} GPUs × {duration(age)} = "
            f"{number(held * age / 3600, 1)} GPU-hours."
        )
    return [*sentences, "It can't be undone."]


def hold_effects(cluster: Cluster, work: Workload) -> list[str]:
    place = f"It stands at position {work.position} of its queue. " if work.position else ""
    return [
        f"{place}While held it is passed over, and what stands behind it may start first.",
        "It keeps its submit time: released, it takes its old place again.",
    ]


def release_effects(cluster: Cluster, work: Workload) -> list[str]:
    waited = duration(cluster.now() - work.submitted_at)
    return [
        f"The next cycle plans it again, with its submit time of {waited} ago.",
        f"It asks for {number(work.requested_gpus / 1000, 1)} GPUs.",
    ]


def _pods(work: Workload) -> str:
    nodes = ", ".join(list(work.placement)[:4])
    more = f" and {len(work.placement) - 4} more" if len(work.placement) > 4 else ""
    where = f" on {nodes}{more}" if nodes else ""
    return f"{work.members} pod{'' if work.members == 1 else 's'}{where}"


def _state(work: Workload) -> str:
    if work.is_waiting and work.held:
        return "held"
    return work.get_state_display().lower()


CANCEL = Verb(
    "cancel",
    "Cancel",
    "Cancel it",
    "{} is being cancelled. Its state changes as soon as the cluster reports it.",
    workloads.cancel,
    cancel_effects,
    lambda work: work.state != State.FINISHED,
)
HOLD = Verb(
    "hold",
    "Hold",
    "Hold it",
    "{} is being held.",
    workloads.hold,
    hold_effects,
    lambda work: work.is_waiting and not work.held,
)
RELEASE = Verb(
    "release",
    "Release",
    "Release it",
    "{} is released; the next cycle plans it.",
    workloads.release,
    release_effects,
    lambda work: work.is_waiting and work.held,
)
