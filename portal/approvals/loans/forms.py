"""What is typed of a loan: to make one, and to decide it. By page and by API; the doors check the rest."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.accounts.models import User
from portal.approvals.forms import gpus_field
from portal.approvals.loans import doors
from portal.approvals.loans.models import NOTICE_H
from portal.approvals.loans.who import led_queues
from portal.boundary.fields import MomentField
from portal.boundary.forms import WeirForm
from portal.boundary.reading import one_line, printable
from portal.display.format import zone
from portal.teams.access import visible_queues
from scheduling.models import Cluster, Queue

LEAST_GPUS = 0.001
FIELDS = {
    "ask": ("borrower", "lender", "gpu_class", "gpus", "until", "notice_h", "reason"),
    "lend": ("lender", "borrower", "gpu_class", "gpus", "until", "notice_h", "reason"),
    "offer": ("lender", "gpu_class", "gpus", "until", "notice_h"),
}


def _queue(label: str, required: str) -> forms.ModelChoiceField[Queue]:
    return forms.ModelChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        label=label,
        error_messages={"required": required, "invalid_choice": "Choose one of the listed queues."},
    )


class LoanForm(WeirForm):
    """Which fields it has depends on the kind; the doors check the rest."""

    lender = _queue("Lender", "Say who lends.")
    borrower = _queue("Borrower", "Say who borrows.")
    gpu_class = forms.ChoiceField(label="GPU class")
    gpus = gpus_field("GPUs", required="Write how many GPUs.", min_value=LEAST_GPUS)
    until = MomentField(
        required=True,
        label="Until",
        help_text="It ends by itself then",
        error_messages={"required": "Say until when."},
    )
    notice_h = forms.IntegerField(
        label="Notice of a recall, hours",
        min_value=0,
        max_value=doors.MOST_NOTICE_H,
        required=False,
        initial=NOTICE_H,
        help_text="How long the borrower keeps them after a recall",
    )
    reason = forms.CharField(
        label="Why",
        max_length=doors.MOST_REASON,
        validators=[printable],
        widget=forms.Textarea(attrs={"rows": 3, "maxlength": doors.MOST_REASON}),
        help_text="Read by the other side.",
    )

    def __init__(
        self, *args: Any, user: User, cluster: Cluster, kind: str, zone_name: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for name in set(self.fields) - set(FIELDS[kind]):
            del self.fields[name]
        self.order_fields(FIELDS[kind])
        fields: dict[str, Any] = self.fields
        fields["until"].zone = zone(zone_name)
        mine = led_queues(user).filter(cluster=cluster).order_by("path")
        seen = visible_queues(user).filter(cluster=cluster, parent__isnull=False).order_by("path")
        own = "borrower" if kind == "ask" else "lender"
        for name in {"lender", "borrower"} & set(fields):
            fields[name].queryset = mine if name == own else seen
            fields[name].empty_label = None if name == own else "Choose a queue"
        names = cluster.gpu_classes.values_list("name", flat=True)
        fields["gpu_class"].choices = [(name, name) for name in names]

    def clean_notice_h(self) -> int:
        notice_h: int | None = self.cleaned_data["notice_h"]
        return NOTICE_H if notice_h is None else notice_h


class LoanActForm(WeirForm):
    """What is typed beside a step: GPUs of a consent to less, and why it is refused or recalled."""

    gpus = gpus_field(
        "GPUs", min_value=LEAST_GPUS, help_text="Of a consent: lend less than is asked for."
    )
    note = forms.CharField(
        required=False,
        max_length=doors.MOST_REASON,
        validators=[one_line],
        error_messages={"max_length": f"Use at most {doors.MOST_REASON} characters."},
    )
