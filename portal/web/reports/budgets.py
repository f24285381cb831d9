"""The page on which budgets are set and dropped."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from portal.reports import budgets
from portal.reports.models import Budget
from portal.web.frame.forms import WeirForm, form_page, saved
from portal.web.frame.requests import PersonRequest, act_view, form_view
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster, Queue

MOST = 10**11


class BudgetForm(WeirForm):
    queue: Any = forms.ModelChoiceField(
        queryset=Queue.objects.none(), to_field_name="name", empty_label=None
    )
    amount = forms.DecimalField(
        label="Amount", min_value=0, max_value=MOST, decimal_places=2,
        error_messages={"invalid": "That is no amount. Write one, such as 230000."},
    )  # fmt: skip
    begin = forms.DateField(
        label="From", widget=forms.DateInput(attrs={"type": "date"}),
        error_messages={"invalid": "Write a day as 2026-10-01."},
    )  # fmt: skip
    end = forms.DateField(
        label="To, that day included", widget=forms.DateInput(attrs={"type": "date"}),
        error_messages={"invalid": "Write a day as 2026-12-31."},
    )  # fmt: skip
    reason = forms.CharField(required=False, max_length=500)

    def __init__(self, *args: Any, queues: QuerySet[Queue], currency: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["queue"]
        field.queryset = queues.order_by("path")
        field.label_from_instance = lambda queue: queue.path
        self.fields["amount"].label = f"Amount, {currency}"


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
