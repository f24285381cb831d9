"""A form that takes a service's refusal.

What a person may send of a noun is declared once, as such a form: its page shows it, and the API's body is
read from it (``portal.api.bodies``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from django import forms

from scheduling.services.errors import ServiceError

Made = TypeVar("Made")


class WeirForm(forms.Form):
    """A form that takes a service's refusal at the field it names."""

    typed_as: ClassVar[Mapping[str, str]] = {}
    """A service's field -> the form's, where people type another unit."""

    def refuse(self, error: ServiceError) -> None:
        field: Any = self.typed_as.get(error.field or "", error.field)
        self.add_error(field if field in self.fields else None, str(error))

    def done(self, act: Callable[[], Made]) -> Made | None:
        """What the service made of it; None where it refused, which then stands at its field."""
        try:
            return act()
        except ServiceError as refused:
            self.refuse(refused)
            return None
