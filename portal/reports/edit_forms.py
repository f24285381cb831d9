"""What a person sends to set a budget, and to keep a view of a report: by page and by API."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet

from portal.boundary.forms import WeirForm
from portal.reports.kinds import REPORTS
from scheduling.models import Queue

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


class ViewForm(WeirForm):
    name = forms.CharField(max_length=63, label="Name of the view")
    weekly = forms.BooleanField(
        required=False, label="Tell me each Monday", help_text="Whether you are told of it."
    )
    kind = forms.ChoiceField(
        choices=[(name, name) for name in REPORTS], widget=forms.HiddenInput,
        help_text="Which report.", error_messages={"invalid_choice": "There is no such report."},
    )  # fmt: skip
    query = forms.CharField(
        required=False, max_length=2000, widget=forms.HiddenInput,
        help_text="Its filters as they stand in the address: range=7d&queue=vision.",
    )  # fmt: skip
