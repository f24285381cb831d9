"""A rule as it is typed: times in minutes."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.models import Figure, Rule, Tell
from portal.alerts.rules import Wish, led
from portal.teams.access import is_operator, visible_queues
from portal.teams.models import Team
from portal.teams.people import visible_teams
from portal.web.frame.forms import WeirForm
from scheduling.models import Cluster, GpuClass, Queue

MINUTE, HOUR = 60, 3600
MOST = 525_600
NUMBER = {"invalid": "That is no number. Write one, such as 120."}


class RuleForm(WeirForm):
    figure = forms.ChoiceField(choices=Figure.choices, label="What")
    queue: Any = forms.ModelChoiceField(
        Queue.objects.none(), to_field_name="name", required=False, empty_label="Any queue"
    )
    gpu_class: Any = forms.ModelChoiceField(
        GpuClass.objects.none(), to_field_name="name", required=False, label="GPU class",
        empty_label="Any class",
    )  # fmt: skip
    over = forms.FloatField(
        min_value=0, max_value=MOST, label="Fires over", error_messages=NUMBER,
        help_text="Minutes; evictions in 7 days; GPUs; days before its end that a budget runs out.",
    )  # fmt: skip
    for_min = forms.FloatField(
        min_value=0, max_value=MOST, required=False, label="for at least", error_messages=NUMBER,
        help_text="Minutes. Quiet again below 90 % of the bound.",
    )  # fmt: skip
    least_gpus = forms.IntegerField(
        min_value=1, max_value=100_000, required=False, label="GPUs of one workload",
        help_text="For idle GPUs: so many or more.", error_messages={"invalid": "Write a whole number."},
    )  # fmt: skip
    tell = forms.ChoiceField(choices=Tell.choices, label="Tell")
    again_h = forms.FloatField(
        min_value=0, max_value=8760, required=False, label="Not again within", error_messages=NUMBER,
        help_text="Hours. One message at the start, one at the end.",
    )  # fmt: skip
    escalate_h = forms.FloatField(
        min_value=0, max_value=8760, required=False, label="and, unacknowledged after", error_messages=NUMBER,
        help_text="Hours; empty: nobody else is told. No team and no people: administrators.",
    )  # fmt: skip
    escalate_team: Any = forms.ModelChoiceField(
        Team.objects.none(), to_field_name="name", required=False, label="also the team",
        empty_label="No team",
    )  # fmt: skip
    escalate_people = forms.CharField(
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
        factor = 1 if figure in words.UNITS else MINUTE
        return Wish(
            figure=figure,
            over=typed["over"] * factor,
            for_s=round((typed["for_min"] or 0) * MINUTE),
            queue=typed["queue"],
            gpu_class=typed["gpu_class"],
            least_gpus=typed["least_gpus"] or 1,
            tell=Tell(typed["tell"]),
            again_s=round((typed["again_h"] or 0) * HOUR),
            escalate_s=round((typed["escalate_h"] or 0) * HOUR),
            escalate_team=typed["escalate_team"],
            escalate_people=names_in(typed["escalate_people"]),
        )


def names_in(text: str) -> tuple[str, ...]:
    """'ann, bob' -> ('ann', 'bob'), each once."""
    return tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))


def initial(rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {
            "figure": Figure.LONGEST_WAIT,
            "over": "720",
            "tell": Tell.LEADS,
            "again_h": "6",
            "least_gpus": 1,
        }
    return {
        "figure": rule.figure,
        "queue": rule.queue.name if rule.queue else "",
        "gpu_class": rule.gpu_class.name if rule.gpu_class else "",
        "over": words.bound_typed(rule),
        "for_min": f"{rule.for_s / MINUTE:g}",
        "least_gpus": rule.least_gpus,
        "tell": rule.tell,
        "again_h": f"{rule.again_s / HOUR:g}",
        "escalate_h": f"{rule.escalate_s / HOUR:g}" if rule.escalate_s else "",
        "escalate_team": rule.escalate_team.name if rule.escalate_team else "",
        "escalate_people": ", ".join(rule.escalate_people),
    }
