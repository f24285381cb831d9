"""What a person sends of a persona: by page and by API."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms import BoundField

from portal.accounts.capabilities import MEANINGS, Capability, Meaning
from portal.accounts.models import Persona
from portal.boundary.fields import GpusField, HoursField
from portal.boundary.forms import WeirForm
from portal.boundary.reading import one_line
from portal.teams.personas import COLUMNS, PersonaValues
from scheduling.models import GpuClass, PriorityClass

MOST_GPUS = 1_000_000
MOST_HOURS = 100_000
GRANT = "grants."
NUMBER = {"invalid": "Write a number, or leave it empty for no limit."}
MAY_BE_EMPTY: dict[str, Any] = {"required": False, "min_value": 0, "error_messages": NUMBER}


class PersonaForm(WeirForm):
    """What a persona is: its capabilities, each with how far it reaches, and its class of service."""

    name = forms.CharField(
        max_length=63, validators=[one_line], error_messages={"required": "A persona needs a name."}
    )
    approves_gpus = GpusField(
        max_value=MOST_GPUS,
        label="Approves up to",
        help_text="GPUs of one request; empty: any",
        **MAY_BE_EMPTY,
    )
    max_gpus_per_workload = GpusField(
        max_value=MOST_GPUS, label="GPUs a workload", help_text="Empty: no limit", **MAY_BE_EMPTY
    )
    max_gpus_at_once = GpusField(
        max_value=MOST_GPUS,
        label="GPUs at once",
        help_text="Work beyond them waits; one workload asks for no more. Empty: no limit",
        **MAY_BE_EMPTY,
    )
    max_run_time_s = HoursField(
        max_value=MOST_HOURS, label="Run-time limit (h)", help_text="Empty: none", **MAY_BE_EMPTY
    )
    preemptible_only = forms.BooleanField(required=False, label="Only preemptible work")
    interactive = forms.BooleanField(required=False, initial=True, label="Interactive work too")
    priority_classes = forms.ModelMultipleChoiceField(
        PriorityClass.objects.order_by("-value"),
        required=False,
        to_field_name="name",
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: every one",
    )
    gpu_classes = forms.ModelMultipleChoiceField(
        GpuClass.objects.select_related("cluster"),
        required=False,
        label="GPU classes",
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: every one",
    )

    def reaches(self) -> list[tuple[str, list[BoundField]]]:
        """Its capabilities by group."""
        groups: dict[str, list[BoundField]] = {}
        for capability, meaning in MEANINGS.items():
            groups.setdefault(meaning.group, []).append(self[f"{GRANT}{capability}"])
        return list(groups.items())

    def values(self) -> PersonaValues:
        typed = dict(self.cleaned_data)
        grants: dict[str, str] = {name: typed.pop(f"{GRANT}{name}") for name in Capability}
        return PersonaValues(grants=grants, **typed)


def _reach_of(meaning: Meaning) -> forms.ChoiceField:
    choices = [("", "–"), *((reach.value, reach.value) for reach in meaning.reaches)]
    return forms.ChoiceField(choices=choices, required=False, label=meaning.name)


PersonaForm.base_fields |= {f"{GRANT}{name}": _reach_of(one) for name, one in MEANINGS.items()}


def initial_of(persona: Persona) -> dict[str, Any]:
    """What the form of ``persona`` begins with."""
    return {
        **{name: getattr(persona, name) for name in COLUMNS},
        "priority_classes": list(persona.priority_classes.all()),
        "gpu_classes": list(persona.gpu_classes.all()),
        **{f"{GRANT}{name}": reach for name, reach in persona.grants.items()},
    }
