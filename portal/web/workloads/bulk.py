"""Workloads that were marked in a list: hold, release and priority class at once, cancel after a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse

from portal.display.format import counted, number
from portal.teams.several import ActOutcome, act, look_up
from portal.teams.submission import priority_classes_to_give
from portal.web.frame.requests import PersonRequest, act_view
from portal.web.frame.shell import get_cluster
from portal.web.workloads.actions import came_from, gpus_in_words, lost_gpu_s
from scheduling.models import Cluster, State, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.several import Action

DONE = {
    Action.CANCEL: "being cancelled: the cluster was told to delete them and their pods",
    Action.HOLD: "held: the submit time is kept, and others may start before",
    Action.RELEASE: "released: the next cycle plans with the old submit time",
    Action.PRIORITY: "now of the priority class {}; the next cycle plans by it",
}
"""What is said of what was done, after '3 workloads are '."""
LEAVING = "workload that waits leaves,workloads that wait leave"
STOPPING = "workload that holds GPUs stops,workloads that hold GPUs stop"


@dataclass(frozen=True, slots=True)
class CancelLine:
    """One that would be cancelled, and what that frees and loses."""

    work: Workload
    lost_gpu_s: float


@act_view
def act_on_marked(request: PersonRequest, cluster: str) -> HttpResponse:
    """Cancelling asks once more, a priority class is chosen of those that all may have. Where some were
    refused, a page names each with its reason."""
    found = get_cluster(request, cluster)
    uids = marked_in(request.POST)
    if not uids:
        return _nothing(request, found, "Mark at least one workload first; nothing was done.")
    action = _action_of(request.POST)
    try:
        answers = look_up(request.user, found, uids)
    except ServiceError as too_many:
        return _nothing(request, found, str(too_many))
    if action == Action.CANCEL and "confirmed" not in request.POST:
        return _ask(request, found, answers)
    name = request.POST.get("priority_class", "")
    if action == Action.PRIORITY and not name:
        return _ask_which(request, found, answers)
    answers = act(request.user, answers, action, priority_class=name)
    return _report_back(request, found, answers, DONE[action].format(name))


def marked_in(sent: QueryDict) -> list[str]:
    """Uids of what is marked; without a script the box for all that is shown marks nothing by itself."""
    return sent.getlist("shown" if "all" in sent else "uid")


def _action_of(sent: QueryDict) -> Action:
    try:
        return Action(sent.get("action", ""))
    except ValueError as error:
        raise Http404 from error


def _nothing(request: PersonRequest, cluster: Cluster, why: str) -> HttpResponse:
    messages.error(request, why)
    return HttpResponseRedirect(_back(request, cluster))


def _back(request: PersonRequest, cluster: Cluster) -> str:
    return came_from(request) or reverse("web:own_workloads", args=[cluster.name])


def _ask(request: PersonRequest, cluster: Cluster, answers: Sequence[ActOutcome]) -> HttpResponse:
    """The page that says what cancelling will do, and what of the marked is left out."""
    works, shown, now = *_asked_of(request, cluster, answers), cluster.now()
    lines = [CancelLine(work, lost_gpu_s(work, now)) for work in works]
    shown |= {"lines": lines, "effects": effects_of(lines)}
    return render(request, "web/workloads/cancel_several.html", shown)


def _ask_which(
    request: PersonRequest, cluster: Cluster, answers: Sequence[ActOutcome]
) -> HttpResponse:
    """The page on which the priority class is chosen."""
    works, shown = _asked_of(request, cluster, answers)
    priorities = priority_classes_to_give(request.user, cluster, works) if works else []
    present = {work.priority_class for work in works}
    shown |= {
        "works": works,
        "priorities": priorities,
        "present": present.pop() if len(present) == 1 else None,
    }
    return render(request, "web/workloads/priority_several.html", shown)


def _asked_of(
    request: PersonRequest, cluster: Cluster, answers: Sequence[ActOutcome]
) -> tuple[list[Workload], dict[str, Any]]:
    """Those that a question is about, and what each question shows beside them."""
    rows = [_unless_finished(answer) for answer in answers]
    works = [one.workload for one in rows if one.workload and not one.refused]
    left_out = [one for one in rows if one.refused]
    return works, {"cluster": cluster, "left_out": left_out, "back": _back(request, cluster)}


def _unless_finished(answer: ActOutcome) -> ActOutcome:
    work = answer.workload
    if work is None or answer.refused or work.state != State.FINISHED:
        return answer
    why = ServiceError("finished", f"{work.name} has finished by now.")
    return ActOutcome(answer.uid, work, why)


def effects_of(lines: Sequence[CancelLine]) -> list[str]:
    """What cancelling all of them ends, frees and loses, in numbers."""
    holding = [line for line in lines if not line.work.is_waiting]
    waiting = len(lines) - len(holding)
    said = []
    if waiting:
        said.append(f"{counted(waiting, LEAVING)} the queue.")
    if holding:
        many = len(holding)
        stop = counted(many, STOPPING)
        said.append(f"{stop}; after the grace that frees {_freed(holding)}.")
    lost = sum(line.lost_gpu_s for line in lines) / 3600
    if lost:
        said.append(
            f"The work since the last checkpoints is lost: {number(lost, 1)} GPU-hours in all."
        )
    else:
        said.append("No work is lost.")
    return [*said, "It can't be undone."]


def _freed(holding: Sequence[CancelLine]) -> str:
    """'8 GPUs of a100, 1 GPU of h100'."""
    by_class: Counter[str] = Counter()
    for line in holding:
        gpu_class = line.work.gpu_class
        by_class[gpu_class.name if gpu_class else ""] += line.work.allocated_gpus
    return ", ".join(
        gpus_in_words(milli / 1000) + (f" of {name}" if name else "")
        for name, milli in sorted(by_class.items())
    )


def _report_back(
    request: PersonRequest, cluster: Cluster, answers: Sequence[ActOutcome], done: str
) -> HttpResponse:
    """Back to the list where all went well, else a page that holds all there is to say."""
    failed = [one for one in answers if one.refused]
    count = len(answers) - len(failed)
    said = f"{counted(count, 'workload is,workloads are')} {done}." if count else ""
    if not failed:
        messages.success(request, said)
        return HttpResponseRedirect(_back(request, cluster))
    shown = {
        "cluster": cluster,
        "done": said,
        "failed": failed,
        "total": len(answers),
        "back": _back(request, cluster),
    }
    return render(request, "web/workloads/acted.html", shown)
