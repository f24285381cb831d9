"""What queues give without asking: a threshold for each queue that the person divides."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from portal.approvals.automatic import set_rule, settable_queues
from portal.approvals.forms import RuleForm
from portal.approvals.models import ApprovalRule
from portal.display.format import gpus
from portal.web.frame.requests import PersonRequest, form_view
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster, Queue
from scheduling.services.errors import ServiceError


@form_view
def rules(request: PersonRequest, cluster: str) -> HttpResponse:
    """The thresholds; a POST sets that of one queue, empty takes it away."""
    found = get_cluster(request, cluster)
    queues = [queue for queue in settable_queues(request.user) if queue.cluster_id == found.pk]
    if not queues:
        raise Http404
    posted = None
    if request.method == "POST":
        queue = next((one for one in queues if one.name == request.POST.get("queue")), None)
        if queue is None:
            messages.error(request, "Name one of the listed queues.")
            return _page(request, found, _rows(queues, {}), status=400)
        posted = RuleForm(request.POST, auto_id=f"id_{queue.pk}_%s")
        if posted.is_valid() and _set(request, queue, posted):
            return redirect("web:request_rules", found.name)
        rows = _rows(queues, {queue.pk: posted})
        return _page(request, found, rows, status=400)
    return _page(request, found, _rows(queues, {}))


def _page(
    request: PersonRequest, cluster: Cluster, rows: list[Any], status: int = 200
) -> HttpResponse:
    context = {"cluster": cluster, "rows": rows}
    return render(request, "web/requests/rules.html", context, status=status)


def _set(request: PersonRequest, queue: Queue, form: RuleForm) -> bool:
    try:
        made = set_rule(by=request.user, queue=queue, **form.cleaned_data)
    except ServiceError as refused:
        form.refuse(refused)
        return False
    what = (
        f"approves below {gpus(made.below_gpus)} at once" if made else "asks people for everything"
    )
    messages.success(request, f"{queue.name} {what}.")
    return True


def _rows(queues: list[Queue], typed: dict[int, RuleForm]) -> list[tuple[Queue, RuleForm, Any]]:
    known = {rule.queue_id: rule for rule in ApprovalRule.objects.filter(queue__in=queues)}
    return [
        (queue, typed.get(queue.pk) or _form(queue, known.get(queue.pk)), known.get(queue.pk))
        for queue in queues
    ]


def _form(queue: Queue, rule: ApprovalRule | None) -> RuleForm:
    initial = {}
    if rule is not None:
        initial = {
            "below_gpus": rule.below_gpus,
            "most_days": rule.most_days,
            "from_siblings": rule.from_siblings,
        }
    return RuleForm(initial=initial, auto_id=f"id_{queue.pk}_%s")
