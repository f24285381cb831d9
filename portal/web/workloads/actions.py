"""Cancel, hold, release. What can't be undone says first, in numbers, what will happen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from portal.display.format import counted, duration, number
from portal.teams.access import may_operate_workload
from portal.teams.reading import reader_of
from portal.web.frame.requests import PersonRequest, act_view
from portal.web.frame.shell import get_cluster
from portal.web.workloads.detail import visible
from scheduling.models import Cluster, State, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.lists import few
from scheduling.services.words.sentences import Reader, place_of
from scheduling.services.workloads import submit as workloads
from scheduling.services.workloads.checkpoints import last_checkpoint, outlook


@login_required
@require_http_methods(["GET", "POST"])
def cancel(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    work = _operable(request, found, uid)
    if work.state == State.FINISHED:
        return _too_late(request, found, work)
    error = None
    if request.method == "POST":
        try:
            workloads.cancel(work, user=request.user.get_username())
        except ServiceError as refused:
            error = refused
        else:
            done = (
                f"{work.name} is being cancelled: the cluster was told to delete it and its pods."
            )
            return _answer(request, found, work, done)
    effects = cancel_effects(found, work, reader_of(request))
    shown = {"cluster": found, "work": work, "effects": effects, "error": error}
    return render(request, "web/workloads/cancel.html", shown, status=409 if error else 200)


@act_view
def hold(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """Easily undone, so it asks no second time."""
    done = "{} is held: it keeps its submit time, and others may start before it."
    return _at_once(request, cluster, uid, workloads.hold, done, on_hold=False)


@act_view
def release(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    done = "{} is released: the next cycle plans it with its old submit time."
    return _at_once(request, cluster, uid, workloads.release, done, on_hold=True)


def _at_once(
    request: PersonRequest,
    name: str,
    uid: str,
    act: Callable[..., None],
    done: str,
    *,
    on_hold: bool,
) -> HttpResponse:
    """Does ``act`` to a waiting workload that is (or is not) ``held``."""
    cluster = get_cluster(request, name)
    work = _operable(request, cluster, uid)
    if not work.is_waiting or work.held != on_hold:
        return _too_late(request, cluster, work)
    try:
        act(work, user=request.user.get_username())
    except ServiceError as error:
        messages.error(request, str(error))
        return _back(request, cluster, work)
    return _answer(request, cluster, work, done.format(work.name))


def _operable(request: PersonRequest, cluster: Cluster, uid: str) -> Workload:
    """Raises Http404 for what the person may not see, and for what they may not touch."""
    work = get_object_or_404(visible(request.user, cluster), uid=uid)
    if not may_operate_workload(request.user, work):
        raise Http404
    return work


def _too_late(request: PersonRequest, cluster: Cluster, work: Workload) -> HttpResponse:
    state = "held" if work.is_waiting and work.held else work.get_state_display().lower()
    messages.info(request, f"{work.name} is {state} by now; nothing was done.")
    return _back(request, cluster, work)


def _answer(request: PersonRequest, cluster: Cluster, work: Workload, said: str) -> HttpResponse:
    messages.success(request, said)
    return _back(request, cluster, work)


def _back(request: PersonRequest, cluster: Cluster, work: Workload) -> HttpResponse:
    """To the list the button stood on, if it says so and is ours; else to the workload."""
    there = came_from(request)
    if there:
        return HttpResponseRedirect(there)
    return redirect("web:workload", cluster=cluster.name, uid=work.uid)


def came_from(request: PersonRequest) -> str:
    """The address of ours that the form says it stood on, or nothing."""
    there = request.POST.get("next", "")
    return there if url_has_allowed_host_and_scheme(there, allowed_hosts=None) else ""


def cancel_effects(cluster: Cluster, work: Workload, reader: Reader) -> list[str]:
    """What cancelling ends, frees and loses, in numbers."""
    if work.is_waiting:
        return [
            "It leaves the queue; nothing of it runs, so no work is lost.",
            f"Its wait of {duration(cluster.now() - work.submitted_at)} is given up: "
            "submitting it again puts it behind everything that waits now.",
        ]
    gpus = work.allocated_gpus / 1000
    back_to = place_of(work, reader) or "the cluster"
    sentences = [
        f"{_pods(work)} {'stops' if work.pod_count == 1 else 'stop'} after the grace; "
        f"{gpus_in_words(gpus)} {'goes' if gpus == 1 else 'go'} back to {back_to}."
    ]
    if work.state == State.RUNNING and work.started_at is not None:
        what, since = _kept_until(work, work.started_at, cluster.now())
        age = max(0.0, (cluster.now() - since).total_seconds())
        sentences.append(
            f"The work since {what} is lost: {gpus_in_words(gpus)} × {duration(age)} = "
            f"{number(gpus * age / 3600, 1)} GPU-hours."
        )
    return [*sentences, "It can't be undone."]


def lost_gpu_s(work: Workload, now: datetime) -> float:
    """What cancelling loses: the GPUs that it holds, for as long as nothing was kept."""
    if work.state != State.RUNNING or work.started_at is None:
        return 0.0
    _, since = _kept_until(work, work.started_at, now)
    return work.allocated_gpus / 1000 * max(0.0, (now - since).total_seconds())


def _kept_until(work: Workload, started: datetime, now: datetime) -> tuple[str, datetime]:
    """What ends the work that is not lost, and when: the checkpoint that an eviction would be weighed by."""
    announced, expected = work.checkpointed_at, outlook(work, now)
    presumed = expected.presumed_at if expected else None
    at = last_checkpoint(started, announced, work.checkpoint_interval_s, presumed, now)
    if at is None or at <= started:
        return "it started", started
    if at == announced:
        return "the last checkpoint", at
    if at == presumed:
        return "the checkpoint that it is taken to have made, though it announced none,", at
    return f"the last checkpoint of those every {duration(work.checkpoint_interval_s or 0)}", at


def gpus_in_words(gpus: float) -> str:
    return f"{number(gpus, 1)} {'GPU' if gpus == 1 else 'GPUs'}"


def _pods(work: Workload) -> str:
    where = f" on {few(work.placement, 4)}" if work.placement else ""
    return f"{counted(work.pod_count, 'pod')}{where}"
