"""What is typed on the way from an empty installation to enforce."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import available_timezones

from django import forms

from portal.boundary.forms import WeirForm
from portal.display.units import gpus_each
from portal.setup.forms import GpuClassForm
from scheduling.models import GpuClass
from scheduling.models.clusters import dns_label
from scheduling.services.clusters.connecting import Credentials, is_in_pod
from scheduling.services.clusters.naming import name_origin
from scheduling.services.clusters.tokens import ENGINE, PORTAL, made_by

AREA = forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocomplete": "off"})
WAYS = (
    ("kubeconfig", "A kubeconfig, pasted"),
    ("token", "An address and a token"),
    ("pod", "The account of the pod that Weir runs in"),
)
LONGEST = 131_072


def _usual_way() -> str:
    return "pod" if is_in_pod() else "kubeconfig"


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


class ConnectForm(WeirForm):
    name = forms.CharField(
        max_length=50,
        validators=[dns_label],
        help_text="Such as fra1; it stands in every address",
        error_messages={"required": "Give the cluster a short name."},
    )
    way = forms.ChoiceField(choices=WAYS, label="Reached by", initial=_usual_way)
    kubeconfig = forms.CharField(
        required=False,
        max_length=LONGEST,
        widget=AREA,
        help_text="Output of: kubectl config view --flatten --minify. One that runs a command is never run",
    )
    context = forms.CharField(
        required=False, max_length=200, help_text="Empty: its current context"
    )
    api_url = forms.URLField(
        required=False, max_length=200, label="Address", assume_scheme="https",
        help_text="Such as https://10.0.0.1:6443",
    )  # fmt: skip
    token = forms.CharField(
        required=False,
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"}),
        label="Token of the engine",
        help_text=made_by(ENGINE),
    )
    portal_token = forms.CharField(
        required=False,
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"}),
        label="Token of the portal",
        help_text=made_by(PORTAL),
    )
    ca = forms.CharField(
        required=False, max_length=LONGEST, widget=AREA, label="CA certificate", help_text="PEM"
    )

    def clean(self) -> dict[str, Any]:
        typed: dict[str, Any] = super().clean() or {}
        needs = {"kubeconfig": ("kubeconfig",), "token": ("api_url", "token")}
        for field in needs.get(typed.get("way", ""), ()):
            if not typed.get(field) and field not in self.errors:
                self.add_error(field, "This way needs it.")
        return typed

    def credentials(self) -> Credentials:
        typed = self.cleaned_data
        if typed["way"] == "kubeconfig":
            return Credentials(kubeconfig=typed["kubeconfig"], context=typed["context"])
        if typed["way"] == "token":
            given = ("api_url", "token", "portal_token", "ca")
            return Credentials(**{name: typed[name] for name in given})
        return Credentials()


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
