"""What a person sends to add people, rules for groups and programs of a team: by page and by API."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.accounts.models import Persona
from portal.boundary.forms import WeirForm
from portal.boundary.reading import one_line
from portal.teams.directory_models import LONGEST_GROUP
from portal.teams.models import Team

REQUIRED = {"required": "Choose one.", "invalid_choice": "Choose one of the listed."}


class PersonForm(WeirForm):
    username = forms.CharField(
        max_length=63,
        validators=[one_line],
        label="User name",
        help_text="As the cluster knows them; it cannot be changed",
        error_messages={"required": "A person needs a user name. Work carries it."},
    )
    first_name = forms.CharField(max_length=150, required=False, validators=[one_line])
    last_name = forms.CharField(max_length=150, required=False, validators=[one_line])
    email = forms.EmailField(max_length=254, required=False)


class GroupRuleForm(WeirForm):
    group = forms.CharField(
        max_length=LONGEST_GROUP,
        validators=[one_line],
        error_messages={
            "required": "Write the group as the directory does.",
            "max_length": f"Use at most {LONGEST_GROUP} characters.",
        },
    )
    team = forms.ModelChoiceField(Team.objects.all(), to_field_name="name", error_messages=REQUIRED)
    persona = forms.ModelChoiceField(
        Persona.objects.all(), to_field_name="name", error_messages=REQUIRED
    )
    order = forms.IntegerField(
        min_value=0, max_value=9999, initial=100, required=False,
        error_messages={"invalid": "Write a whole number.", "max_value": "At most 9999.",
                        "min_value": "Not below 0."},
    )  # fmt: skip

    def clean_order(self) -> int:
        order: int | None = self.cleaned_data["order"]
        return 100 if order is None else order


class ServiceAccountForm(WeirForm):
    name = forms.CharField(
        max_length=100,
        help_text="It becomes svc-NAME.",
        error_messages={
            "required": "Say what it is, such as nightly-evals.",
            "max_length": "Use at most 100 characters.",
        },
    )
    persona = forms.ModelChoiceField(
        Persona.objects.all(),
        to_field_name="name",
        error_messages=REQUIRED,
        help_text="One that you may give.",
    )
    purpose = forms.CharField(
        max_length=200,
        required=False,
        validators=[one_line],
        error_messages={"max_length": "Use at most 200 characters."},
    )

    def __init__(self, *args: Any, personas: list[Persona], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        persona = self.fields["persona"]
        assert isinstance(persona, forms.ModelChoiceField)  # noqa: S101 - declared above
        persona.queryset = Persona.objects.filter(pk__in=[p.pk for p in personas])
