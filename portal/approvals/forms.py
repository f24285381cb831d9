"""What is typed to ask for something, and what is typed to decide. The doors check the rest."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.accounts.models import User
from portal.approvals.automatic import MOST_DAYS
from portal.approvals.doors import MOST_NOTE
from portal.approvals.models import QuotaRequest
from portal.approvals.states import Figure, Kind
from portal.approvals.who import askable_queues
from portal.approvals.wishes import MOST_GPUS, MOST_REASON, Wish, WishError
from portal.boundary.fields import GpusField, MomentField
from portal.boundary.forms import WeirForm
from portal.boundary.reading import printable
from portal.display.format import gpus, zone
from portal.teams.access import visible_queues
from scheduling.models import Cluster, PriorityClass, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.queues.faults import QuotaError

FIELDS = {
    Kind.QUOTA: ("queue", "gpu_class", "figure", "gpus", "giver", "starts_at", "ends_at", "reason"),
    Kind.BOOST: ("queue", "gpu_class", "figure", "gpus", "giver", "starts_at", "ends_at", "reason"),
    Kind.QUEUE: ("queue", "name", "starts_at", "reason"),
    Kind.ACCESS: ("queue", "gpu_class", "priority_class", "starts_at", "ends_at", "reason"),
}
"""What each kind asks, in the order of the form."""


def gpus_field(label: str, *, required: str = "", min_value: float = 0, **more: Any) -> GpusField:
    """``required``: the fault of one left empty, where it may not be."""
    return GpusField(
        required=bool(required),
        min_value=min_value,
        max_value=MOST_GPUS,
        decimal_places=3,
        label=label,
        error_messages={
            "required": required,
            "invalid": "Write a number, such as 4.",
            "min_value": "Write a number above 0.",
            "max_value": f"Write {MOST_GPUS:,} at most.",
            "max_decimal_places": "Write at most three decimals.",
        },
        **more,
    )


class RequestForm(WeirForm):
    """What is asked for; which fields it has depends on the kind."""

    queue: forms.ModelChoiceField[Queue] = forms.ModelChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        empty_label=None,
        error_messages={
            "required": "Say for which queue.",
            "invalid_choice": "Choose one of the queues for which you may ask.",
        },
    )
    gpu_class = forms.ChoiceField(label="GPU class", required=False)
    priority_class = forms.ChoiceField(required=False)
    name = forms.CharField(max_length=63, required=False, label="Name of the new queue")
    figure = forms.ChoiceField(
        choices=Figure.choices, initial=Figure.NOMINAL.value, label="What rises", required=False
    )
    gpus = gpus_field("More GPUs")
    giver: forms.ModelChoiceField[Queue] = forms.ModelChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        required=False,
        label="Taken from",
        empty_label="The lead says",
        error_messages={
            "invalid_choice": "Choose one of the listed queues, or leave it to the lead."
        },
    )
    starts_at = MomentField(label="From", help_text="Empty: with the approval")
    ends_at = MomentField(label="Until", help_text="Empty: no end")
    reason = forms.CharField(
        required=False,
        max_length=MOST_REASON,
        validators=[printable],
        label="Why",
        error_messages={"max_length": f"Use at most {MOST_REASON:,} characters."},
        widget=forms.Textarea(attrs={"rows": 3, "maxlength": MOST_REASON}),
        help_text="Read by the lead and the approver, kept with the change.",
    )

    def __init__(
        self, *args: Any, user: User, cluster: Cluster, kind: Kind, zone_name: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.cluster = kind, cluster
        for name in set(self.fields) - set(FIELDS[kind]):
            del self.fields[name]
        self.order_fields(FIELDS[kind])
        for name in {"starts_at", "ends_at"} & set(self.fields):
            field: Any = self.fields[name]
            field.zone = zone(zone_name)
        self._offer(user)

    def _offer(self, user: User) -> None:
        """What may be chosen: queues for which the person may ask, and what they see."""
        fields: dict[str, Any] = self.fields
        asks = askable_queues(user).filter(cluster=self.cluster).order_by("path")
        if self.kind == Kind.QUEUE:
            fields["queue"].label = "Below"
        else:
            asks = asks.exclude(parent=None)
        fields["queue"].queryset = asks
        if "giver" in fields:
            seen = visible_queues(user).filter(cluster=self.cluster, parent__isnull=False)
            fields["giver"].queryset = seen.order_by("path")
        optional = [("", "–")] if self.kind == Kind.ACCESS else []
        if "gpu_class" in fields:
            names = self.cluster.gpu_classes.values_list("name", flat=True)
            fields["gpu_class"].choices = [*optional, *((name, name) for name in names)]
        if "priority_class" in fields:
            priorities = PriorityClass.objects.order_by("-value").values_list("name", flat=True)
            fields["priority_class"].choices = [*optional, *((one, one) for one in priorities)]
        if self.kind == Kind.BOOST:
            fields["ends_at"].help_text = "A boost ends"

    def wish(self) -> Wish:
        """Of a valid form."""
        return Wish.of_sent({**self.cleaned_data, "kind": self.kind})

    def refuse_all(self, error: ServiceError) -> None:
        faults = error.faults if isinstance(error, WishError) else (error,)
        for fault in faults:
            self.refuse(fault)


class DecisionForm(WeirForm):
    """A decision: why, and of what is granted how much, until when and from whom."""

    note = forms.CharField(
        required=False,
        max_length=MOST_NOTE,
        validators=[printable],
        label="Reason, kept in the history and told to both",
        widget=forms.Textarea(attrs={"rows": 3, "maxlength": MOST_NOTE}),
        error_messages={"max_length": f"Use at most {MOST_NOTE} characters."},
    )
    gpus = gpus_field("Grant")
    ends_at = MomentField(label="Until")
    giver: forms.ModelChoiceField[Queue] = forms.ModelChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        required=False,
        label="Taken from",
        empty_label="What the parent has left",
        error_messages={"invalid_choice": "Choose one of the listed queues."},
    )

    def __init__(
        self, *args: Any, request: QuotaRequest, user: User, zone_name: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["ends_at"].zone = zone(zone_name)  # type: ignore[attr-defined]
        if not request.is_about_quota:
            del self.fields["gpus"], self.fields["giver"]
        else:
            self.fields["gpus"].help_text = f"of {gpus(request.gpus or 0)}"
        if request.is_about_quota and request.figure != Figure.NOMINAL:
            del self.fields["giver"]
        elif request.is_about_quota:
            seen = visible_queues(user).filter(cluster=request.cluster, parent__isnull=False)
            field: Any = self.fields["giver"]
            field.queryset = seen.exclude(path=request.place).order_by("path")
        if request.ends_at is None or request.kind == Kind.QUEUE:
            del self.fields["ends_at"]

    def refuse(self, error: ServiceError) -> None:
        """A sum that would not hold stands at the queue it is taken from."""
        if isinstance(error, QuotaError) and "giver" in self.fields:
            first = error.faults[0]
            self.add_error("giver", f"{first.sentence} {first.remedy}")
            return
        super().refuse(error)

    def granted(self) -> dict[str, Any]:
        return {name: self.cleaned_data.get(name) for name in ("gpus", "ends_at", "giver")}


class RuleForm(WeirForm):
    """What queues directly below are given at once; nothing takes the rule away."""

    below_gpus = gpus_field("Below, GPUs")
    most_days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        label="For at most, days",
        error_messages={"invalid": "Write a whole number of days, or leave it empty."},
    )
    from_siblings = forms.BooleanField(required=False, label="May take from a queue beside it")
