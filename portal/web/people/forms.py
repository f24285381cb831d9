"""What is typed about people, teams and personas. The services check the rest."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.forms import BoundField

from portal.accounts.capabilities import MEANINGS, Capability
from portal.accounts.models import Persona, User
from portal.teams.models import Team
from portal.teams.personas import PersonaValues
from portal.web.frame.forms import WeirForm
from scheduling.models import MILLI, GpuClass, PriorityClass, Queue

HOUR_S = 3600
MOST_GPUS = 1_000_000
MOST_HOURS = 100_000
GRANT = "grants."
NUMBER = {"invalid": "Write a number, or leave it empty for no limit."}


class PersonForm(WeirForm):
    username = forms.CharField(
        max_length=63,
        label="User name",
        help_text="As the cluster knows them; it cannot be changed",
        error_messages={"required": "A person needs a user name. Work carries it."},
    )
    first_name = forms.CharField(max_length=150, required=False)
    last_name = forms.CharField(max_length=150, required=False)
    email = forms.EmailField(max_length=254, required=False)


class MemberForm(WeirForm):
    """``personas`` are those that the person who fills it in may hand out."""

    user = forms.CharField(
        max_length=150,
        label="User name",
        error_messages={"required": "Write the user name of whom you add."},
    )
    persona = forms.ModelChoiceField(
        Persona.objects.none(),
        to_field_name="name",
        # Nothing is chosen beforehand: the first by name may do everything.
        empty_label="Choose a persona",
        error_messages={
            "required": "Choose a persona.",
            "invalid_choice": "Choose one of the personas that you may hand out.",
        },
    )
    until = forms.DateField(
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="Last day; empty is open",
        error_messages={"invalid": "Write a day as 2026-12-31, or leave it empty."},
    )

    def __init__(self, *args: Any, personas: list[Persona], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = Persona.objects.filter(pk__in=[persona.pk for persona in personas])
        self.fields["persona"].queryset = named  # type: ignore[attr-defined]

    def clean_user(self) -> User:
        found = User.objects.filter(username=self.cleaned_data["user"].strip()).first()
        if found is None:
            raise forms.ValidationError(
                "Nobody has that user name. Add them on the page People first."
            )
        return found

    def ends(self, zone: str) -> datetime | None:
        """The end of the last day."""
        day = self.cleaned_data["until"]
        if day is None:
            return None
        return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(zone))


class TeamForm(WeirForm):
    name = forms.CharField(
        max_length=63,
        error_messages={"required": "A team needs a name, such as that of its queue."},
    )
    queue: forms.ModelChoiceField[Queue] = forms.ModelChoiceField(
        Queue.objects.none(),
        label="Its queue",
        help_text="And everything below it",
        error_messages={
            "required": "A team is bound to a queue. Choose one.",
            "invalid_choice": "Choose one of the queues without a team.",
        },
    )

    def __init__(self, *args: Any, team: Team | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        free = Queue.objects.filter(team=None)
        if team is not None:
            free |= Queue.objects.filter(team=team)
        field: Any = self.fields["queue"]
        field.queryset = free.select_related("cluster").order_by("cluster__name", "path")
        field.label_from_instance = lambda queue: f"{queue.cluster}: {queue}"


def _bound(most: int, label: str, help_text: str) -> forms.DecimalField:
    """A number up to ``most`` that may be left out."""
    return forms.DecimalField(
        required=False,
        min_value=0,
        max_value=most,
        label=label,
        help_text=help_text,
        error_messages=NUMBER,
    )


class PersonaForm(WeirForm):
    name = forms.CharField(max_length=63, error_messages={"required": "A persona needs a name."})
    approves_gpus = _bound(MOST_GPUS, "Approves up to", "GPUs of one request; empty: any")
    max_gpus_per_workload = _bound(MOST_GPUS, "GPUs a workload", "Empty: no limit")
    max_gpus_at_once = _bound(
        MOST_GPUS,
        "GPUs at once",
        "What would have its user hold more waits; one workload asks for no more. Empty: no limit",
    )
    max_run_time_h = _bound(MOST_HOURS, "Run-time limit (h)", "Empty: none")
    preemptible_only = forms.BooleanField(required=False, label="Only preemptible work")
    interactive = forms.BooleanField(required=False, label="Interactive work too")
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for capability, meaning in MEANINGS.items():
            choices = [("", "–"), *((reach.value, reach.value) for reach in meaning.reaches)]
            self.fields[f"{GRANT}{capability}"] = forms.ChoiceField(
                choices=choices, required=False, label=meaning.name
            )

    def reaches(self) -> list[tuple[str, list[BoundField]]]:
        """Its capabilities by group."""
        groups: dict[str, list[BoundField]] = {}
        for capability, meaning in MEANINGS.items():
            groups.setdefault(meaning.group, []).append(self[f"{GRANT}{capability}"])
        return list(groups.items())

    def values(self) -> PersonaValues:
        typed = self.cleaned_data
        hours = typed["max_run_time_h"]
        return PersonaValues(
            name=typed["name"],
            grants={name: typed[f"{GRANT}{name}"] for name in Capability},
            approves_gpus=_milli(typed["approves_gpus"]),
            priority_classes=list(typed["priority_classes"]),
            gpu_classes=list(typed["gpu_classes"]),
            max_gpus_per_workload=_milli(typed["max_gpus_per_workload"]),
            max_gpus_at_once=_milli(typed["max_gpus_at_once"]),
            max_run_time_s=None if hours is None else int(hours * HOUR_S),
            preemptible_only=typed["preemptible_only"],
            interactive=typed["interactive"],
        )


def initial_of(persona: Persona) -> dict[str, Any]:
    """What the form of ``persona`` begins with."""
    seconds = persona.max_run_time_s
    return {
        "name": persona.name,
        "approves_gpus": _gpus(persona.approves_gpus),
        "max_gpus_per_workload": _gpus(persona.max_gpus_per_workload),
        "max_gpus_at_once": _gpus(persona.max_gpus_at_once),
        "max_run_time_h": None if seconds is None else f"{seconds / HOUR_S:g}",
        "preemptible_only": persona.preemptible_only,
        "interactive": persona.interactive,
        "priority_classes": list(persona.priority_classes.all()),
        "gpu_classes": list(persona.gpu_classes.all()),
        **{f"{GRANT}{name}": reach for name, reach in persona.grants.items()},
    }


def _milli(gpus: Any) -> int | None:
    return None if gpus is None else int(gpus * MILLI)


def _gpus(milli: int | None) -> str | None:
    return None if milli is None else f"{milli / MILLI:g}"
