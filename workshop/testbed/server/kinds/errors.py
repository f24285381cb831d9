"""Errors as a real server words them: a Status object with code, reason and details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .resources import Json, Resource


class ApiError(Exception):
    """A refusal that the client receives as a Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Json:
        """Return the Status object."""
        body: Json = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason,
        }  # fmt: skip
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details:
            body["details"] = details
        body["code"] = self.code
        return body


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault of an object: which field, what kind of fault, what would be right."""

    field: str
    reason: str
    message: str

    def as_json(self) -> Json:
        """Return the entry of details.causes."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field: str, hint: str = "") -> Cause:
    """Return the fault of a missing `field`."""
    text = f"Required value: {hint}" if hint else "Required value"
    return Cause(field, "FieldValueRequired", text)


def invalid_value(field: str, value: Any, hint: str) -> Cause:
    """Return the fault of a `value` that cannot stand in `field`."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {hint}")


def unsupported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """Return the fault of a `value` outside the `supported` ones."""
    options = ", ".join(f'"{s}"' for s in supported)
    text = f"Unsupported value: {_shown(value)}: supported values: {options}"
    return Cause(field, "FieldValueNotSupported", text)


def forbidden_field(field: str, hint: str) -> Cause:
    """Return the fault of touching `field` at all."""
    return Cause(field, "FieldValueForbidden", f"Forbidden: {hint}")


def immutable(field: str, value: Any) -> Cause:
    """Return the fault of changing `field`."""
    return invalid_value(field, value, "field is immutable")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _details(resource: Resource, name: str) -> Json:
    details: Json = {"name": name, "group": resource.group, "kind": resource.plural}
    return {k: v for k, v in details.items() if v}


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """Return 422 with every fault found."""
    faults = [f"{c.field}: {c.message}" for c in causes]
    text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    details = {
        **{k: v for k, v in (("name", name), ("group", resource.group)) if v},
        "kind": resource.kind,
        "causes": [c.as_json() for c in causes],
    }
    message = f'{resource.qualified_kind} "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, details)


def invalid_options(kind: str, cause: Cause) -> ApiError:
    """Return 422 for options (`PatchOptions`, `DeleteOptions` …) that make no sense."""
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [cause.as_json()]}
    message = f'{kind}.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
    return ApiError(422, "Invalid", message, details)


def not_found(resource: Resource, name: str) -> ApiError:
    """Return 404 for an object that is not there."""
    message = f'{resource.qualified} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(resource, name))


def already_exists(resource: Resource, name: str) -> ApiError:
    """Return 409 for a create under a taken name."""
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(resource, name))


STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(resource: Resource, name: str, why: str = STALE) -> ApiError:
    """Return 409 for a write on top of a version that is no longer the latest."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    """Return 403 with the reason."""
    details = _details(resource, name)
    if causes:
        details["causes"] = [c.as_json() for c in causes]
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details)


def bad_request(message: str) -> ApiError:
    """Return 400."""
    return ApiError(400, "BadRequest", message)


def expired(message: str) -> ApiError:
    """Return 410: the version asked for has left the history."""
    return ApiError(410, "Expired", message)


def unknown_path() -> ApiError:
    """Return 404 for a path that names no resource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed(resource: Resource | None = None) -> ApiError:
    """Return 405."""
    details = {"group": resource.group, "kind": resource.plural} if resource else {}
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details)


def too_many_requests(message: str, retry_after: int, details: Json | None = None) -> ApiError:
    """Return 429 with the seconds after which a retry makes sense."""
    return ApiError(429, "TooManyRequests", message, details, retry_after)
