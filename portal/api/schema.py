"""What the OpenAPI schema can't read off the views: the token, and the one shape of errors."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from portal.accounts.models import Scope
from portal.api.permissions import scope_of

ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["code", "sentence", "remedy"],
    "properties": {
        "code": {"type": "string", "description": "Stable, for programs."},
        "sentence": {"type": "string", "description": "What is wrong, for people."},
        "remedy": {"type": "string", "description": "What to do about it."},
        "fields": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "description": "Faults by field; nested ones joined by dots.",
        },
    },
}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # untyped part
    target_class = "portal.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


class Operation(AutoSchema):
    """An operation that writes says which scope a token needs for it."""

    def get_description(self) -> str:  # type: ignore[override] # spectacular takes no arguments
        told: str = super().get_description()
        scope = scope_of(self.view, self.method)
        if scope is None or scope == Scope.READ:
            return told
        return f"{told}\n\nA token needs the scope `{scope}`.".strip()


def add_errors(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Every operation may answer with an Error."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"].setdefault(
                "default", {"description": "Refused", "content": content}
            )
    return result
