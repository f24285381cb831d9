"""A body that is read from a form takes what the form takes, and refuses what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms
from django.core.validators import RegexValidator
from rest_framework import serializers

from portal.api.bodies import body_of, field_of
from portal.boundary.reading import one_line


class Sample(forms.Form):
    name = forms.CharField(
        max_length=5, validators=[one_line, RegexValidator("^[a-z\\n]*$")],
        error_messages={"required": "Name it."},
    )  # fmt: skip
    mail = forms.EmailField(required=False)
    count = forms.IntegerField(min_value=1, max_value=9, initial=3, required=False)
    rate = forms.DecimalField(min_value=0, max_digits=5, decimal_places=2, required=False)
    day = forms.DateField(required=False)
    kind = forms.ChoiceField(choices=[("a", "A"), ("b", "B")])
    on = forms.BooleanField(required=False)


READ = body_of(Sample, "Sample")
RIGHT = {"name": "n", "kind": "a"}


def test_what_is_left_out_is_what_the_form_left_empty() -> None:
    body = READ(data=RIGHT)

    assert body.is_valid()
    assert body.validated_data == {
        **RIGHT, "mail": "", "count": 3, "rate": None, "day": None, "on": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"name": "longer"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "A"}, "name"),
        ({"mail": "nobody"}, "mail"),
        ({"count": 0}, "count"),
        ({"count": 10}, "count"),
        ({"rate": "1.234"}, "rate"),
        ({"rate": "-1"}, "rate"),
        ({"day": "soon"}, "day"),
        ({"kind": "c"}, "kind"),
    ],
)
def test_form_and_body_refuse_the_same_at_the_same_field(sent: dict[str, Any], field: str) -> None:
    typed = {**RIGHT, **sent}
    body, form = READ(data=typed), Sample(typed)

    assert not body.is_valid()
    assert list(body.errors) == list(form.errors) == [field]


def test_missing_field_is_refused_in_the_words_of_the_form() -> None:
    body = READ(data={"kind": "a"})

    assert not body.is_valid()
    assert body.errors == {"name": ["Name it."]}


def test_body_that_changes_a_row_reads_only_what_is_sent() -> None:
    body = body_of(Sample, "Sample", needs=("name",))(data={"name": "n", "count": 2})

    assert body.is_valid()
    assert body.validated_data == {"name": "n", "count": 2}


def test_field_of_its_own_takes_the_place_of_the_form_s() -> None:
    body = body_of(Sample, "Sample", kind=serializers.IntegerField())(data={"name": "n", "kind": 7})

    assert body.is_valid()
    assert body.validated_data["kind"] == 7


@pytest.mark.parametrize("kind", [forms.FileField, forms.FloatField, forms.MultipleChoiceField])
def test_field_of_a_kind_that_no_body_has_is_refused(kind: type[forms.Field]) -> None:
    """Also where it inherits from one that bodies have: it would be read as that."""
    with pytest.raises(TypeError, match=kind.__name__):
        field_of(kind(), required=True, has_default=False)


class Grouped(forms.Form):
    name = forms.CharField()


Grouped.base_fields["reach.see"] = forms.ChoiceField(
    choices=[("", "–"), ("own", "own")], required=False
)


@pytest.mark.parametrize(
    ("reach", "is_right"),
    [
        ({}, True),
        ({"see": "own"}, True),
        ({"see": "all"}, False),
        ({"fly": "own"}, False),
        ("own", False),
    ],
)
def test_fields_of_a_group_are_one_object_that_takes_no_others(reach: Any, is_right: bool) -> None:
    body = body_of(Grouped, "Grouped")(data={"name": "n", "reach": reach})

    assert body.is_valid() is is_right
    assert not is_right or body.validated_data == {"name": "n", "reach": reach}
