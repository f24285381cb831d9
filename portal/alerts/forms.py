"""What a person sends of an alert rule: by page and by API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.models import Figure, Rule, Tell
from portal.alerts.rules import HOUR, Wish, led
from portal.boundary.fields import HoursField, MinutesField, NamesField
from portal.boundary.forms import WeirForm
from portal.teams.access import is_operator, visible_queues
from portal.teams.models import Team
from portal.teams.people import visible_teams
from scheduling.models import Cluster, GpuClass, Queue

MINUTE = 60
EMPTY: Mapping[str, int] = {"for_s": 0, "least_gpus": 1, "again_s": 0, "escalate_s": 0}
MOST_MINUTES, MOST_HOURS = 525_600, 8760
NUMBER = {"invalid": "That is no number. Write one, such as 120."}


class RuleForm(WeirForm):
    """Of a rule that is there, a call changes what it sends."""

    figure = forms.ChoiceField(choices=Figure.choices, label="What")
    queue: Any = forms.ModelChoiceField(
        Queue.objects.none(), to_field_name="name", required=False, empty_label="Any queue"
    )
    gpu_class: Any = forms.ModelChoiceField(
        GpuClass.objects.none(), to_field_name="name", required=False, label="GPU class",
        empty_label="Any class",
    )  # fmt: skip
    over = forms.FloatField(
        min_value=0, max_value=MOST_MINUTES, label="Fires over", error_messages=NUMBER,
        help_text="Minutes; evictions in 7 days; GPUs; days before its end that a budget runs out.",
    )  # fmt: skip
    for_s = MinutesField(
        min_value=0, max_value=MOST_MINUTES, required=False, label="for at least (min)",
        error_messages=NUMBER, help_text="Quiet again below 90 % of the bound.", initial=0,
    )  # fmt: skip
    least_gpus = forms.IntegerField(
        min_value=1, max_value=100_000, required=False, label="GPUs of one workload",
        help_text="For idle GPUs: so many or more.", error_messages={"invalid": "Write a whole number."},
        initial=1,
    )  # fmt: skip
    tell = forms.ChoiceField(choices=Tell.choices, label="Tell")
    again_s = HoursField(
        min_value=0, max_value=MOST_HOURS, required=False, label="Not again within (h)",
        error_messages=NUMBER, help_text="One message at the start, one at the end.", initial=6 * HOUR,
    )  # fmt: skip
    escalate_s = HoursField(
        min_value=0, max_value=MOST_HOURS, required=False, label="and, unacknowledged after (h)",
        error_messages=NUMBER,
        help_text="Empty: nobody else is told. No team and no people: administrators.",
    )  # fmt: skip
    escalate_team: Any = forms.ModelChoiceField(
        Team.objects.none(), to_field_name="name", required=False, label="also the team",
        empty_label="No team",
    )  # fmt: skip
    escalate_people = NamesField(
        max_length=1000, required=False, label="also these people",
        help_text="User names with commas between. Once a firing.",
    )  # fmt: skip

    def __init__(self, *args: Any, user: User, cluster: Cluster, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        everything = is_operator(user)
        queues = visible_queues(user) if everything else led(user, cluster)
        field: Any = self.fields["queue"]
        field.queryset = queues.filter(cluster=cluster, parent__isnull=False).order_by("path")
        field.label_from_instance = lambda queue: queue.path
        if not everything:
            field.required, field.empty_label = True, None
        teams: Any = self.fields["escalate_team"]
        teams.queryset = visible_teams(user).order_by("name")
        classes: Any = self.fields["gpu_class"]
        classes.queryset = cluster.gpu_classes.all()

    def wish(self) -> Wish:
        typed = self.cleaned_data
        figure = Figure(typed["figure"])
        columns = {
            "figure": figure,
            "over": typed["over"] * (1 if figure in words.UNITS else MINUTE),
            "tell": Tell(typed["tell"]),
        }
        return Wish(**filled({**typed, **columns}))


def filled(typed: Mapping[str, Any]) -> dict[str, Any]:
    """``typed`` with what stands for a number that was left empty."""
    return {name: EMPTY.get(name) if value is None else value for name, value in typed.items()}


def initial(rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {"figure": Figure.LONGEST_WAIT, "over": "720", "tell": Tell.LEADS}
    columns = {name: getattr(rule, name) for name in RuleForm.base_fields}
    names = ("queue", "gpu_class", "escalate_team")
    named = {name: columns[name].name if columns[name] else "" for name in names}
    bounds = {"over": words.bound_typed(rule), "escalate_s": rule.escalate_s or None}
    return {**columns, **named, **bounds}
