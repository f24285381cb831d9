"""What a person sends to connect a cluster: by page and by API."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.boundary.forms import WeirForm
from portal.boundary.reading import one_line
from scheduling.models.clusters import dns_label
from scheduling.services.clusters.connecting import Credentials, is_in_pod
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


class ConnectForm(WeirForm):
    """A kubeconfig, or an address with a token, or neither: the account of Weir's own pod."""

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
        required=False,
        max_length=200,
        validators=[one_line],
        help_text="Empty: its current context",
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
