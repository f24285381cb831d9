"""What is typed on the way from an empty installation to enforce."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import available_timezones

from django import forms

from portal.boundary.forms import WeirForm
from portal.display.units import gpus_each
from portal.setup.connect_form import LONGEST
from portal.setup.forms import GpuClassForm
from scheduling.models import GpuClass
from scheduling.services.clusters.naming import name_origin


class FirstForm(WeirForm):
    username = forms.CharField(
        max_length=63,
        label="User name",
        error_messages={"required": "Choose the name under which you sign in."},
    )
    password = forms.CharField(
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="12 characters at least",
        error_messages={"required": "Choose a password."},
    )


def proposed_rate(gpu_class: GpuClass) -> Decimal:
    """Of a class whose rate nobody has chosen, before there are queues: a slice counts as its part."""
    part = gpus_each(gpu_class)
    return round(Decimal(part.numerator) / part.denominator, 4)


class ClassForm(GpuClassForm):
    """One GPU class as a line of the table."""

    resource_name = None  # type: ignore[assignment]  # how nodes are found stays as it was made
    node_labels = None  # type: ignore[assignment]

    def __init__(self, typed: Any, *, gpu_class: GpuClass) -> None:
        self.gpu_class = gpu_class
        self.origin = name_origin(gpu_class)
        begins = {name: getattr(gpu_class, name) for name in self.base_fields}
        if gpu_class.exchange_rate == 1 and not gpu_class.cluster.queues.exclude(parent=None):
            begins["exchange_rate"] = proposed_rate(gpu_class)
        super().__init__(typed, initial=begins, prefix=f"class-{gpu_class.pk}")
        for name, field in self.fields.items():
            words = name.replace("_", " ")
            field.widget.attrs["aria-label"] = f"{words} of {gpu_class.name}"


class DisplayForm(WeirForm):
    """In which currency prices are, and in which time zone days begin."""

    currency = forms.RegexField(
        r"^[A-Z]{3}$",
        help_text="Three letters, such as EUR or USD; prices are not converted",
        error_messages={"required": "Write a currency.", "invalid": "Write three letters: USD."},
    )
    display_time_zone = forms.CharField(
        max_length=60,
        label="Time zone",
        help_text="Such as Europe/Berlin; each person may choose another",
        error_messages={"required": "Write a time zone, or UTC."},
    )

    def clean_display_time_zone(self) -> str:
        name: str = self.cleaned_data["display_time_zone"]
        if name not in available_timezones():
            raise forms.ValidationError("Unknown time zone. Write one such as Europe/Berlin.")
        return name


class TreeForm(WeirForm):
    standing: Sequence[str] = ()
    """Namespaces that stand on the cluster, which the person may say they looked at."""
    sentence = ""
    """What stands there, and what becomes of it."""
    offer = ""
    """The line by which the cluster's administrators let Weir's engine have them."""
    missing: Sequence[tuple[str, str]] = ()
    """Namespaces that the cluster does not have, with the one that has nearly that name, if any."""
    tree = forms.CharField(
        max_length=LONGEST,
        label="Queues as YAML",
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false"}),
        error_messages={"required": "Write the queues, or take the proposal."},
    )
