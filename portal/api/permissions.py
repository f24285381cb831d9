"""What a token may be used for: one rule for every operation of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.accounts import proof
from portal.accounts.models import ApiToken, Scope

if TYPE_CHECKING:
    from rest_framework.views import APIView  # imports this module by the settings


SESSION_ONLY: Final = None
"""The ``write_scope`` of what would outlive a stolen token or session: people, service accounts, tokens,
webhooks. No token covers it, and a session proves itself first."""


def scope_of(view: object, method: str) -> Scope | None:
    """The scope that ``method`` of ``view`` asks for; None where the view names none."""
    if method in SAFE_METHODS:
        return Scope.READ
    scope: Scope | None = getattr(view, "write_scope", None)
    return getattr(view, "make_scope", scope) if method == "POST" else scope


class WithinScope(BasePermission):
    """A token's scopes narrow what its person may do; where no token is enough, a session proves itself.

    Looked at before anything is fetched, so a refusal tells nothing about what exists. A view that
    writes and names no scope is closed to every token.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        scope = scope_of(view, request.method or "")
        if not isinstance(request.auth, ApiToken):
            writes = hasattr(view, (request.method or "").lower())  # else there is no such method
            if writes and scope is SESSION_ONLY and not proof.is_proved(request._request):
                raise MissingProof(request)
            return True
        if scope is not None and request.auth.covers(scope):
            return True
        raise OutOfScope(scope)


class OutOfScope(PermissionDenied):
    """The token is not for this, whatever its person may do."""

    default_code = "out_of_scope"

    def __init__(self, scope: Scope | None) -> None:
        self.remedy = (
            f"Use a token with the scope '{scope}'." if scope else "Use a page of the portal."
        )
        super().__init__("This token is not for that.")


class MissingProof(PermissionDenied):
    """The session may, once its person showed again who they are."""

    default_code = proof.CODE

    def __init__(self, request: Request) -> None:
        self.remedy = proof.remedy(request._request)
        super().__init__(proof.SENTENCE)
