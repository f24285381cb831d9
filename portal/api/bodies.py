"""The body of a call, read from the form whose page sends the same: fields, bounds and texts of faults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import isfunction
from typing import Any, cast

from django import forms
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from rest_framework import serializers

from portal.boundary.fields import (
    GpusField,
    HoursField,
    LastDayField,
    MinutesField,
    MomentField,
    NamesField,
    NodeLabelField,
    ScaledField,
)
from portal.boundary.reading import within_calendar
from portal.selectors import fields

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
MOST_DIGITS = 20
DOT = "."
"""Between a group and its field, in the name of a form's field."""


def body_of(
    form: type[forms.Form], name: str, *, needs: Collection[str] | None = None, **otherwise: Any
) -> Body:
    """What reads a body with the fields of ``form``; ``name`` is the API's document's.

    A field that is typed in a unit is read in the one of its name: seconds, or GPUs. Fields of the name
    ``group.field`` are together the object ``group``, which holds what is sent of them.

    ``needs``: those that have to be sent, where a call changes only what is sent of a row; without it those
    that the form requires, and one left out is what the form left empty is. ``otherwise``: fields that the
    API reads in its own way, in place of the form's.
    """

    def read(field: str, declared: forms.Field) -> Any:
        if needs is None and DOT not in field:
            return field_of(declared, required=declared.required, has_default=True)
        return field_of(declared, required=field in (needs or ()), has_default=False)

    taken = {
        field: declared for field, declared in form.base_fields.items() if field not in otherwise
    }
    read_so = {field: read(field, declared) for field, declared in taken.items()}
    own = {field: one for field, one in otherwise.items() if one is not None}
    made = type(f"{name}Serializer", (serializers.Serializer,), {**_grouped(read_so, name), **own})
    made.__doc__ = form.__dict__.get("__doc__")
    return made


class Group(serializers.Serializer[Any]):
    # The API's document would say a docstring of this class of every group.

    def to_internal_value(self, data: Any) -> Any:
        unknown = data.keys() - self.fields.keys() if isinstance(data, Mapping) else ()
        if unknown:
            raise serializers.ValidationError({min(unknown, key=str): "There is no such field."})
        return super().to_internal_value(data)


def _grouped(read_so: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields with those of a group as one, which takes no other name."""
    found: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for field, made in read_so.items():
        group, _, part = field.partition(DOT)
        if part:
            groups.setdefault(group, {})[part] = made
        else:
            found[field] = made
    for group, parts in groups.items():
        kind: Any = type(f"{name}{group.title()}Serializer", (Group,), parts)
        found[group] = kind(required=False)
    return found


def field_of(declared: forms.Field, *, required: bool, has_default: bool) -> Any:
    """One field of a body. Raises TypeError for one of a kind that no form of a noun has."""
    if type(declared) not in KINDS:
        raise TypeError(f"no body has a {type(declared).__name__}")
    make, options, empty = KINDS[type(declared)](declared)
    texts = {TEXTS[key]: text for key, text in declared.error_messages.items() if key in TEXTS}
    options |= {"required": required, "help_text": str(declared.help_text), "error_messages": texts}
    if empty is None and not declared.required:
        options["allow_null"] = True
    if not required and has_default:
        options["default"] = empty if declared.initial is None else declared.initial
        del options["required"]
    return make(**options)


Parts = tuple[Callable[..., Any], Options, Any]
"""The serializer's field, its options, and what stands for nothing."""


def _text(declared: forms.CharField) -> Parts:
    checks = [c for c in declared.validators if isfunction(c) or isinstance(c, RegexValidator)]
    blank = {} if declared.required else {"allow_blank": True}
    return (
        serializers.CharField,
        {"max_length": declared.max_length, "validators": checks, **blank},
        "",
    )


def _as(make: type[serializers.Field[Any, Any, Any, Any]]) -> Callable[[forms.CharField], Parts]:
    """Text whose form ``make`` checks itself."""

    def read(declared: forms.CharField) -> Parts:
        _, options, empty = _text(declared)
        del options["validators"]
        return make, options, empty

    return read


def _whole(declared: forms.IntegerField) -> Parts:
    return serializers.IntegerField, _bounds(declared), None


def _decimal(declared: forms.DecimalField) -> Parts:
    # Without a bound on digits a number of three hundred of them is no fault but an error.
    most = declared.max_digits or MOST_DIGITS
    digits = {"max_digits": most, "decimal_places": declared.decimal_places}
    return serializers.DecimalField, {**_bounds(declared), **digits}, None


def _switch(declared: forms.BooleanField) -> Parts:
    return serializers.BooleanField, {}, False


def _day(declared: forms.DateField) -> Parts:
    return serializers.DateField, {}, None


def _choice(declared: forms.ChoiceField) -> Parts:
    choices = cast(Iterable[tuple[str, str]], declared.choices)
    return (
        serializers.ChoiceField,
        {"choices": [(value, label) for value, label in choices if value]},
        declared.initial or "",
    )


def _row(declared: forms.ModelChoiceField[Any]) -> Parts:
    options = {"slug_field": declared.to_field_name, "queryset": declared.queryset}
    return serializers.SlugRelatedField, options, None


def _rows(declared: forms.ModelMultipleChoiceField[Any]) -> Parts:
    make, options, _ = _row(declared)
    if declared.to_field_name is None:
        return EachNamedField, {"rows": declared.queryset}, []
    return make, {**options, "many": True}, []


class EachNamedField(serializers.ListField):
    """Rows by name: each that has it, such as the GPU class of every cluster."""

    child = serializers.CharField(max_length=63)

    def __init__(self, *, rows: QuerySet[Any], **more: Any) -> None:
        super().__init__(**more)
        self.rows = rows

    def to_internal_value(self, data: Any) -> Any:
        names = set(super().to_internal_value(data))
        found = list(self.rows.filter(name__in=names))
        missing = names - {one.name for one in found}
        if missing:
            noun = self.rows.model._meta.verbose_name
            raise serializers.ValidationError(f"There is no {noun} {min(missing)}.")
        return found


def _gpus(declared: GpusField) -> Parts:
    return fields.GpusField, _bounds(declared), None


def _seconds(declared: ScaledField) -> Parts:
    bounds = _bounds(declared).items()
    scaled = {name: None if most is None else int(most * declared.scale) for name, most in bounds}
    return serializers.IntegerField, scaled, None


def _names(declared: forms.TypedMultipleChoiceField) -> Parts:
    choices = list(cast(Iterable[Any], declared.choices))
    child = serializers.ChoiceField(choices=choices)
    return serializers.ListField, {"child": child, "max_length": len(choices)}, []


def _written(declared: NamesField) -> Parts:
    child = serializers.CharField(max_length=declared.longest)
    return serializers.ListField, {"child": child, "max_length": declared.most}, []


def _moment(declared: MomentField | LastDayField) -> Parts:
    return serializers.DateTimeField, {"validators": [within_calendar]}, None


def _labels(declared: NodeLabelField) -> Parts:
    child = serializers.CharField(max_length=63, allow_blank=True)
    return serializers.DictField, {"child": child}, {}


def _bounds(declared: forms.IntegerField) -> Options:
    return {"min_value": declared.min_value, "max_value": declared.max_value}


def name_field(**more: Any) -> Any:
    """The name of a row that the call looks up among those of its person."""
    return serializers.CharField(**{"max_length": 63, **more})


NOT_NAMED: Mapping[str, Any] = {"required": False, "allow_blank": True}


KINDS: Mapping[type[forms.Field], Callable[[Any], Parts]] = {
    forms.CharField: _text,
    forms.EmailField: _as(serializers.EmailField),
    forms.URLField: _as(serializers.URLField),
    forms.IntegerField: _whole,
    forms.DecimalField: _decimal,
    forms.BooleanField: _switch,
    forms.DateField: _day,
    forms.ChoiceField: _choice,
    forms.ModelChoiceField: _row,
    forms.ModelMultipleChoiceField: _rows,
    forms.TypedMultipleChoiceField: _names,
    GpusField: _gpus,
    HoursField: _seconds,
    LastDayField: _moment,
    MinutesField: _seconds,
    MomentField: _moment,
    NamesField: _written,
    NodeLabelField: _labels,
}
"""By the very class: one that inherits, such as a FloatField of an IntegerField, checks otherwise."""
