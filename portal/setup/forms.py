"""What a person sends of GPU classes and priority classes: by page and by API."""

from __future__ import annotations

from django import forms

from portal.boundary.fields import MinutesField, NodeLabelField
from portal.boundary.forms import WeirForm
from portal.boundary.reading import one_line
from scheduling.models import PriorityClass
from scheduling.services.clusters.classes import LEAST_SLO_S, MOST_SLO_S
from scheduling.services.words.vendors import USUAL_LABEL, USUAL_RESOURCE


class GpuClassForm(WeirForm):
    name = forms.CharField(
        max_length=63, validators=[one_line], error_messages={"required": "A class needs a name."}
    )
    resource_name = forms.CharField(
        max_length=200, validators=[one_line], initial=USUAL_RESOURCE, label="Resource"
    )
    node_labels = NodeLabelField(
        max_length=320,
        required=False,
        label="Node label",
        help_text=f"Such as {USUAL_LABEL}=MODEL; empty: every node",
    )
    exchange_rate = forms.DecimalField(
        max_digits=9,
        decimal_places=4,
        min_value=0,
        initial=1,
        label="Rate",
        error_messages={"required": "Write a rate."},
    )
    price_per_gpu_hour = forms.DecimalField(
        max_digits=10,
        decimal_places=4,
        min_value=0,
        initial=0,
        label="Price per GPU-hour",
        error_messages={"required": "Write a price."},
    )
    wait_slo_s = MinutesField(
        required=False,
        min_value=LEAST_SLO_S // 60,
        max_value=MOST_SLO_S // 60,
        label="P90 wait under (min)",
        help_text="What nine of ten waits are meant to stay under; empty: no such aim",
        error_messages={"invalid": "Write minutes, or leave it empty."},
    )


class PriorityForm(WeirForm):
    name = forms.CharField(
        max_length=63, validators=[one_line], error_messages={"required": "A class needs a name."}
    )
    value = forms.IntegerField(min_value=-1_000_000, max_value=1_000_000)
    type = forms.ChoiceField(choices=PriorityClass._meta.get_field("type").choices or ())
    min_run_time_s = forms.IntegerField(
        min_value=0, max_value=366 * 86400, initial=0, label="Protected for (s)"
    )
    preemptible = forms.BooleanField(required=False, initial=True)
    is_default = forms.BooleanField(required=False, label="For work that names none")
