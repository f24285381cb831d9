"""The body of a call, read from the form whose page sends the same: fields, bounds and texts of faults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import singledispatch
from inspect import isfunction
from typing import Any

from django import forms
from rest_framework import serializers

Body = type[serializers.Serializer[Any]]
Options = dict[str, Any]
TEXTS: Mapping[str, str] = {
    "required": "required",
    "invalid": "invalid",
    "max_length": "max_length",
    "min_value": "min_value",
    "max_value": "max_value",
    "invalid_choice": "does_not_exist",
}
"""A form's name of a fault -> the serializer's."""


def body_of(
    form: type[forms.Form], name: str, *, needs: Collection[str] | None = None, **otherwise: Any
) -> Body:
    """What reads a body with the fields of ``form``; ``name`` is the API's document's.

    ``needs``: those that have to be sent, where a call changes only what is sent of a row; without it those
    that the form requires, and one left out is what the form left empty is. ``otherwise``: fields that the
    API reads in its own way, in place of the form's.
    """

    def read(field: str, declared: forms.Field) -> Any:
        if needs is None:
            return field_of(declared, required=declared.required, has_default=True)
        return field_of(declared, required=field in needs, has_default=False)

    fields = {
        field: otherwise.get(field) or read(field, declared)
        for field, declared in form.base_fields.items()
    }
    made = type(f"{name}Serializer", (serializers.Serializer,), {**otherwise, **fields})
    made.__doc__ = None
    return made


def field_of(declared: forms.Field, *, required: bool, has_default: bool) -> Any:
    """One field of a body. Raises TypeError for one of a kind that no form of a noun has."""
    make, options, empty = _kind(declared)
    texts = {TEXTS[key]: text for key, text in declared.error_messages.items() if key in TEXTS}
    options |= {"required": required, "help_text": str(declared.help_text), "error_messages": texts}
    if not required and has_default:
        options["default"] = empty if declared.initial is None else declared.initial
        options["allow_null"] = empty is None
        del options["required"]
    return make(**options)


Kind = tuple[Callable[..., Any], Options, Any]
"""The serializer's field, its options, and what stands for nothing."""


@singledispatch
def _kind(declared: forms.Field) -> Kind:
    raise TypeError(f"no body has a {type(declared).__name__}")


@_kind.register
def _text(declared: forms.CharField) -> Kind:
    checks = [check for check in declared.validators if isfunction(check)]
    options: Options = {"max_length": declared.max_length, "validators": checks}
    if not declared.required:
        options["allow_blank"] = True
    make = serializers.CharField
    if isinstance(declared, forms.EmailField):
        make, options["validators"] = serializers.EmailField, []
    return make, options, ""


@_kind.register
def _whole(declared: forms.IntegerField) -> Kind:
    return serializers.IntegerField, _bounds(declared), None


@_kind.register
def _decimal(declared: forms.DecimalField) -> Kind:
    digits = {"max_digits": declared.max_digits, "decimal_places": declared.decimal_places}
    return serializers.DecimalField, {**_bounds(declared), **digits}, None


@_kind.register
def _switch(declared: forms.BooleanField) -> Kind:
    return serializers.BooleanField, {}, False


@_kind.register
def _day(declared: forms.DateField) -> Kind:
    return serializers.DateField, {}, None


@_kind.register
def _choice(declared: forms.ChoiceField) -> Kind:
    return serializers.ChoiceField, {"choices": declared.choices}, None


@_kind.register
def _row(declared: forms.ModelChoiceField) -> Kind:  # type: ignore[type-arg]
    options = {"slug_field": declared.to_field_name, "queryset": declared.queryset}
    return serializers.SlugRelatedField, options, None


def _bounds(declared: forms.IntegerField) -> Options:
    return {"min_value": declared.min_value, "max_value": declared.max_value}
