"""What a person sends of a priority class: by page and by API."""

from __future__ import annotations

from django import forms

from portal.boundary.forms import WeirForm
from portal.boundary.reading import one_line
from scheduling.models import PriorityClass


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
