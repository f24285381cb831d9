"""What the OpenAPI schema can't read off the views: the token, and the one shape of errors."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from portal.accounts.models import Scope
from portal.api import guards
from portal.api.nouns import Noun
from portal.api.permissions import scope_of

ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["code", "sentence", "remedy"],
    "properties": {
        "code": {"type": "string", "description": "Stable, for programs."},
        "sentence": {"type": "string", "description": "The fault, for people."},
        "remedy": {"type": "string", "description": "The remedy, for people."},
        "fields": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "description": "Faults by field; nested ones joined by dots.",
        },
    },
}


REFUSED = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
VERSION = {
    "schema": {"type": "string"},
    "description": "Of what can be edited; hand it back as If-Match.",
}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # untyped part
    target_class = "portal.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


REPLAYED = "An answer that was given before says `Idempotency-Replayed: true`."
HEADERS = {
    guards.IF_MATCH: "The ETag of a GET: what is there is changed only while it is what was read.",
    guards.KEY: "8 to 200 characters without spaces. The same call with the same key within 24 hours"
    f" gets the first answer and is not carried out again. {REPLAYED}",
}
REFUSALS = {
    guards.IF_MATCH: {
        "412": "It was changed since it was read; `fields` names what, where it is known."
    },
    guards.KEY: {
        "409": "The first call with this key is under way or was cut off, or it clashes with what is there.",
        "422": "The key was sent with another call.",
    },
}
"""Of each header, what its call may be answered besides."""


class Operation(AutoSchema):
    """An operation that writes says which scope a token needs for it, and which headers guard it."""

    def get_override_parameters(self) -> list[Any]:
        return [
            OpenApiParameter(name, str, OpenApiParameter.HEADER, description=HEADERS[name])
            for name in self._guards()
        ]

    def _guards(self) -> list[str]:
        asks = {guards.IF_MATCH: guards.takes_version, guards.KEY: guards.takes_key}
        return [name for name, test in asks.items() if test(self.view, self.method)]

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        drawn = super().get_operation(*args, **kwargs)
        if drawn is None:
            return None
        for name in self._guards():
            for code, description in REFUSALS[name].items():
                drawn["responses"][code] = {"description": description, "content": REFUSED}
        if guards.tells_version(self.view, self.method):
            drawn["responses"]["200"]["headers"] = {"ETag": VERSION}
        return drawn

    def get_request_serializer(self) -> Any:
        return (
            self.view.reads() if isinstance(self.view, Noun) else super().get_request_serializer()
        )

    def _says(self) -> str:
        return self.view.says() if isinstance(self.view, Noun) else str(super().get_description())

    def get_summary(self) -> str:
        """The first sentence of what it does, which a reference shows beside its path."""
        text = self._says()
        return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].removesuffix(".")

    def get_description(self) -> str:  # type: ignore[override] # spectacular takes no arguments
        text = self._says()
        scope = scope_of(self.view, self.method)
        if scope is None or scope == Scope.READ:
            return text
        return f"{text}\n\nA token needs the scope `{scope}`.".strip()


def add_errors(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Every operation may answer with an Error."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"].setdefault(
                "default", {"description": "Refused", "content": REFUSED}
            )
    return result
