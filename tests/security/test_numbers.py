"""Every number that people send has a bound at both ends, said where it is declared.

A number that somebody multiplies, rounds or stores before it was compared is a server error, so that no
field may leave it to the code behind it.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.urls import get_resolver
from drf_spectacular.generators import SchemaGenerator

DOCUMENT = SchemaGenerator().get_schema(request=None, public=True)
SCHEMAS = DOCUMENT["components"]["schemas"]
Found = tuple[str, dict[str, Any]]


def numbers(schema: dict[str, Any], at: str) -> Iterator[Found]:
    """(path, schema) of each number in ``schema``."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    for part in ("allOf", "oneOf", "anyOf"):
        for each in schema.get(part, ()):
            yield from numbers(each, at)
    for key, each in schema.get("properties", {}).items():
        yield from numbers(each, f"{at}.{key}")
    if "items" in schema:
        yield from numbers(schema["items"], f"{at}[]")
    if schema.get("type") in ("number", "integer"):
        yield at, schema


def sent() -> dict[str, dict[str, Any]]:
    """Operation and field -> its schema, of each number in a body of JSON."""
    found: dict[str, dict[str, Any]] = {}
    for path, verbs in DOCUMENT["paths"].items():
        for verb, operation in verbs.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                schema = content["application/json"]["schema"]
                found |= dict(numbers(schema, f"{verb.upper()} {path} "))
    return found


SENT = sent()


def test_document_has_numbers_that_are_sent():
    assert len(SENT) > 40


@pytest.mark.parametrize("at", SENT)
def test_number_of_a_json_body_has_both_bounds(at):
    assert {"minimum", "maximum"} <= set(SENT[at])


def form_classes(kind: type = forms.BaseForm) -> Iterator[type]:
    for below in kind.__subclasses__():
        yield below
        yield from form_classes(below)


def typed() -> dict[str, forms.IntegerField]:
    """Form and field -> each number of a form of ours; a Decimal may have its digits bounded instead."""
    assert get_resolver().url_patterns  # pages are imported with them
    return {
        f"{form.__name__}.{name}": field
        for form in form_classes()
        if form.__module__.startswith("portal.")
        for name, field in getattr(form, "base_fields", {}).items()
        if isinstance(field, forms.IntegerField)
    }


TYPED = typed()


@pytest.mark.parametrize("number", ["1e308", "1" + "0" * 30, "nan", "inf"])
@pytest.mark.parametrize("at", TYPED)
def test_number_typed_that_no_bound_admits_is_refused_by_its_field(at, number):
    with pytest.raises(forms.ValidationError):
        TYPED[at].clean(number)


@pytest.mark.parametrize("at", TYPED)
def test_number_of_a_form_has_a_least(at):
    assert TYPED[at].min_value is not None
