"""The way from an empty installation to enforce, a page a step. For who administers; left at any step.

Steps 6 and 7: what Weir would have done so far, and the switch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.setup import inviting
from portal.setup.connect_form import ConnectForm
from portal.setup.steps import SLUGS, next_step, steps
from portal.teams.access import is_admin
from portal.web.frame.requests import PersonRequest, acted, form_view
from portal.web.operations.mode import effects, outside_gpus
from portal.web.setup import people, queues
from portal.web.setup.classes import classes
from portal.web.setup.cluster_facts import context_of, lacks
from portal.web.setup.forms import FirstForm
from scheduling.models import Cluster, ClusterMode, Cycle, Decision
from scheduling.services.clusters import enforcing
from scheduling.services.clusters.checkup import MANIFESTS, OF_ENGINE, check
from scheduling.services.clusters.connecting import connect as connect_cluster

MOST = 20


def would(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    if request.method == "POST":
        return redirect("web:set_up_step", "enforce")
    cycles = Cycle.objects.filter(cluster=cluster)
    decisions = Decision.objects.filter(cycle__cluster=cluster).select_related("workload__queue")
    return {
        "last": cycles.first(),
        "acts": cycles.aggregate(admitted=Sum("admitted"), evicted=Sum("evicted")),
        "decisions": decisions.order_by("-pk")[:MOST],
        "counts": {
            "waiting": cluster.workloads.filter(state__in=("pending", "requeued")).count(),
            "holding": cluster.workloads.filter(state__in=("admitted", "running")).count(),
            "outside_gpus": outside_gpus(cluster),
            "outside": cluster.workloads.filter(queue=None).exclude(state="finished").count(),
        },
    }


def enforce(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    left, said = request.POST.get("left", ""), f"{cluster} is enforced from the next cycle on."
    if request.method == "POST" and acted(
        request, lambda: enforcing.enforce(cluster, left=left, author=request.user), said
    ):
        return redirect("web:overview", cluster.name)
    trial = Cluster(
        **{f.attname: getattr(cluster, f.attname) for f in cluster._meta.concrete_fields}
    )
    trial.mode = ClusterMode.ENFORCE  # asked as it would be enforced; not saved
    items = check(trial)
    lacking = lacks(items)
    return {
        "lacking": lacking,
        "needs_rights": any(MANIFESTS["enforce"] in item.remedy for item in lacking),
        "unasked": next((item for item in items if item.sentence == OF_ENGINE), None),
        "effects": list(effects(cluster, ClusterMode.ENFORCE)),
        "left": enforcing.left_by(cluster),
        "faulty": request.method == "POST",
    }


BACKEND = "django.contrib.auth.backends.ModelBackend"
Page = Callable[[PersonRequest, Cluster], HttpResponse | dict[str, Any]]


@require_http_methods(["GET", "HEAD", "POST"])
def first(request: HttpRequest, key: str) -> HttpResponse:
    """The one-time link of the first admin."""
    if not inviting.is_valid(key):
        raise Http404
    form = FirstForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = form.done(lambda: inviting.accept(key, **form.cleaned_data))
        if user:
            login(request, user, backend=BACKEND)
            return redirect("web:set_up")
    return render(
        request, "web/setup/first.html", {"form": form}, status=400 if form.errors else 200
    )


@login_required
@require_http_methods(["GET", "HEAD"])
def set_up(request: PersonRequest) -> HttpResponse:
    """Where it was left."""
    _check(request)
    return redirect("web:set_up_step", next_step(_cluster(request)))


@form_view
def step(request: PersonRequest, step: str) -> HttpResponse:
    _check(request)
    if step not in SLUGS:
        raise Http404
    cluster = _cluster(request)
    if step == "connect":
        return _finish(request, step, connect(request), cluster)
    if cluster is None:
        return redirect("web:set_up_step", "connect")
    request.cluster = cluster  # type: ignore[attr-defined]  # the frame shows it
    return _finish(request, step, PAGES[step](request, cluster), cluster)


def _finish(
    request: PersonRequest,
    slug: str,
    answer: HttpResponse | dict[str, Any],
    cluster: Cluster | None,
) -> HttpResponse:
    """A step answers with a redirect, or with what its page shows."""
    if isinstance(answer, HttpResponse):
        return answer
    every = steps(cluster)
    context = {
        **answer,
        "cluster": cluster,
        "steps": every,
        "step": next(s for s in every if s.slug == slug),
        "after": SLUGS[min(SLUGS.index(slug) + 1, len(SLUGS) - 1)],
    }
    status = 400 if answer.get("faulty") else 200
    return render(request, f"web/setup/{slug}.html", context, status=status)


def connect(request: PersonRequest) -> HttpResponse | dict[str, Any]:
    form = ConnectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        name, found = form.cleaned_data["name"], form.credentials()
        made = form.done(lambda: connect_cluster(name=name, credentials=found, author=request.user))
        if made:
            messages.success(
                request, f"{made} is connected and observed. Nothing on it was changed."
            )
            return redirect("web:set_up_step", "seen")
    return {"form": form, "faulty": bool(form.errors)}


PAGES: dict[str, Page] = {
    "seen": context_of,
    "classes": classes,
    "queues": queues.queues,
    "people": people.people,
    "would": would,
    "enforce": enforce,
}


def _check(request: PersonRequest) -> None:
    if not is_admin(request.user):
        raise Http404


def _cluster(request: PersonRequest) -> Cluster | None:
    """The one that the address names, else the one that is set up: that which is not enforced yet, else the
    last one."""
    rows = list(Cluster.objects.order_by("pk"))
    named = [cluster for cluster in rows if cluster.name == request.GET.get("cluster")]
    if named:
        return named[0]
    waiting = [cluster for cluster in rows if cluster.mode == "observe"]
    return next(iter(waiting or rows[-1:]), None)
