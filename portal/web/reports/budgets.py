"""The page on which budgets are set and dropped."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from portal.reports import budgets
from portal.reports.edit_forms import BudgetForm
from portal.reports.models import Budget
from portal.web.frame.forms import form_page, saved
from portal.web.frame.requests import PersonRequest, act_view, form_view
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster


@form_view
def edit(request: PersonRequest, cluster: str) -> HttpResponse:
    """What queues may cost. For who divides them from above; others find nothing."""
    found = get_cluster(request, cluster)
    queues = budgets.editable(request.user, found)
    if not queues.exists():
        raise Http404
    form = BudgetForm(request.POST or None, queues=queues, currency=found.currency)

    def save() -> Budget:
        return budgets.set_budget(by=request.user, **form.cleaned_data)

    if saved(request, form, save, lambda _: "The budget is set."):
        return redirect("reports:budgets", found.name)
    shown = (
        Budget.objects.filter(queue__in=queues)
        .select_related("queue")
        .order_by("-begin", "queue__path")
    )
    context = {"cluster": found, "budgets": shown}
    return form_page(request, "reports/budgets.html", form, context)


@act_view
def drop(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = get_cluster(request, cluster)
    budget = get_object_or_404(_editable(request, found), pk=pk)
    budgets.drop(budget, by=request.user)
    messages.success(request, f"The budget of {budget.queue.name} is dropped.")
    return redirect("reports:budgets", found.name)


def _editable(request: PersonRequest, cluster: Cluster) -> QuerySet[Budget]:
    queues = budgets.editable(request.user, cluster)
    return Budget.objects.filter(queue__in=queues).select_related("queue__cluster")
