"""Capacity: the page of the newest study or of one, a study begun, an SLO set."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from portal.boundary.reading import whole, whole_or
from portal.reports.capacity import Answer, CapacityReport, newest_study, studies_of
from portal.reports.capacity import capacity as computed
from portal.reports.forecast import about
from portal.teams.access import is_admin
from portal.web.frame.requests import PersonRequest, act_view, form_view
from portal.web.operations.mode import operated
from portal.web.reports.forecast import forecast_page
from portal.web.reports.views import table_of
from portal.web.studies import capacity as page
from scheduling.models import Cluster, GpuClass, Queue, Study
from scheduling.models.studies import OPEN
from scheduling.services.clusters.classes import save_gpu_class
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors
from scheduling.services.studies.capacity import asking

LISTED = 12
LENGTHS = (7, 14, 30)


@form_view
def capacity(request: PersonRequest, cluster: str) -> HttpResponseBase:
    """The page, its tables as CSV and JSON; POST begins a study."""
    found = operated(request, cluster)
    if request.method == "POST":
        return _begin(request, found)
    number, queue = request.GET.get("study", ""), _queue(request.GET.get("queue", ""), found)
    if number:
        study = get_object_or_404(studies_of(found), pk=whole_or(number, 0))
        return redirect(f"{study_page(study)}?{page.address(request.GET.get('class', ''))}")
    return _report_page(request, computed(found, newest_study(found, queue), request.user, queue))


def of_study(request: PersonRequest, study: Study) -> HttpResponseBase:
    """The same of one study, whichever is the newest."""
    return _report_page(request, computed(study.cluster, study, request.user))


def _report_page(request: PersonRequest, report: CapacityReport) -> HttpResponseBase:
    wanted = request.GET.get("format", "")
    if wanted == "json":
        return JsonResponse(report.as_dict(), json_dumps_params={"indent": 1})
    if wanted == "csv":
        return table_of(request, report, f"{report.cluster.name}-capacity")
    return _page(request, report)


def _queue(name: str, cluster: Cluster) -> Queue | None:
    """None is all of them. Raises Http404 where there is none of that name."""
    if not name:
        return None
    found = get_object_or_404(Queue, cluster=cluster, name=name)
    return None if found.is_root else found


def _begin(request: PersonRequest, cluster: Cluster) -> HttpResponse:
    try:
        study = asking.ask(
            cluster=cluster,
            author=request.user.get_username(),
            days=whole_or(request.POST.get("days", ""), 0),
            queue=_queue(request.POST.get("queue", ""), cluster),
            step_gpus=whole_or(request.POST.get("step_gpus", "") or "0", -1),
        )
    except ServiceError as error:
        report = computed(cluster, newest_study(cluster), request.user)
        return _page(request, report, fault=error, status=400)
    doors.start(study)
    messages.info(request, "It is begun. You can leave: it is found again here.")
    return redirect(study_page(study))


def study_page(study: Study) -> str:
    return reverse("web:study", args=[study.cluster.name, study.pk])


def _listed(rows: QuerySet[Study], shown: Study | None) -> list[Study]:
    """The newest, and the one that is ``shown`` where that is older."""
    newest = list(rows[:LISTED])
    return [*newest, *([shown] if shown is not None and shown not in newest else [])]


def _page(
    request: PersonRequest,
    report: CapacityReport,
    *,
    fault: ServiceError | None = None,
    status: int = 200,
) -> HttpResponse:
    cluster, study = report.cluster, report.study
    one = report.answer(request.GET.get("class", ""))
    chosen = one.gpu_class.name if one else ""
    ahead = about(report.forecast, chosen)
    top = report.queue.name if report.queue else ""
    own = page.address(chosen, top)
    rows = studies_of(cluster)
    at = request.path if request.method != "POST" else reverse("web:capacity", args=[cluster.name])
    context = {
        "cluster": cluster,
        "report": ahead,
        "study": study,
        "studies": _listed(rows.filter(queue=report.queue), study),
        "queue": report.queue,
        "queues": _studied_queues(cluster),
        "most_step": asking.MOST_STEP_GPUS,
        "open": rows.filter(state__in=OPEN).last(),
        "one": one,
        "classes": [answer.gpu_class for answer in report.answers],
        "finding": page.finding(report, one),
        "multiples": page.multiples(report),
        "rows": page.rows(report),
        "steps": page.steps(one),
        "came": report.came,
        "is_operator": True,
        "may_set": is_admin(request.user),
        "fault": fault,
        "typed": request.POST,
        "lengths": LENGTHS,
        "here": f"{at}?{own}",
        "csv_url": f"{at}?{own}&format=csv",
        "json_url": f"{at}?{own}&format=json",
        "api_url": f"{reverse('api:studies', args=[cluster.name])}?kind=capacity",
        "tab": "capacity",
        **_ahead(ahead, one),
    }
    return render(request, "web/lab/capacity.html", context, status=status)


def _studied_queues(cluster: Cluster) -> list[Queue]:
    """All but the root, from the top down, each before those below it."""
    return list(Queue.objects.filter(cluster=cluster, parent__isnull=False).order_by("path"))


def _ahead(report: Any, one: Answer | None) -> dict[str, Any]:
    """What the forecast report shows of the class, where there is a forecast of it."""
    is_told = one is not None and one.ahead is not None and one.ahead.is_told
    return forecast_page(report) if is_told else {}


@act_view
def set_slo(request: PersonRequest, cluster: str) -> HttpResponse:
    """For who administers: minutes that the P90 wait of a class is meant to hold; empty is none."""
    found = operated(request, cluster)
    if not is_admin(request.user):
        raise Http404
    try:
        gpu_class = _class(found, request.POST.get("gpu_class", ""))
        values = {"wait_slo_s": _seconds(request.POST.get("minutes", ""))}
        save_gpu_class(cluster=found, values=values, author=request.user, gpu_class=gpu_class)
    except ServiceError as error:
        report = computed(found, newest_study(found), request.user)
        return _page(request, report, fault=error, status=400)
    messages.success(request, f"The SLO of {gpu_class.name} is set.")
    return redirect(f"{reverse('web:capacity', args=[found.name])}?class={gpu_class.name}")


def _class(cluster: Cluster, name: str) -> GpuClass:
    """Raises ServiceError where the cluster has none of that name."""
    gpu_class = cluster.gpu_classes.filter(name=name).first()
    if gpu_class is None:
        raise ServiceError(
            "no_such_class", "There is no such GPU class.", "Choose one of the list.",
            field="gpu_class",
        )  # fmt: skip
    return gpu_class


def _seconds(minutes: str) -> int | None:
    """Raises ServiceError for what is no whole number of minutes."""
    if not minutes.strip():
        return None
    try:
        return 60 * whole(minutes.strip())
    except ValidationError:
        raise ServiceError(
            "no_minutes", "That is no number of minutes.", "Write digits, as 120, or leave it empty.",
            field="wait_slo_s",
        ) from None  # fmt: skip
