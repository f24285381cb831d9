"""What every view of SCIM starts with: who may come, what is read and answered, how a refusal looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import ApiToken, Scope
from portal.api.errors import handle
from portal.api.parsers import BoundedJsonParser
from portal.api.permissions import OutOfScope
from portal.api.scim.reading import UnreadError
from portal.api.scope import PersonView

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
MESSAGES = "urn:ietf:params:scim:api:messages:2.0:"
TYPE = "application/scim+json"
MOST = 200
"""Resources of one answer."""
SCIM_TYPES: Mapping[str, str] = {
    "name_taken": "uniqueness", "immutable": "mutability", "bad_name": "invalidValue",
    "invalid": "invalidValue", "parse_error": "invalidSyntax",
}  # fmt: skip
FORBIDDEN = ("deactivated_here", "last_admin")


class ScimParser(BoundedJsonParser):
    media_type = TYPE


class ScimRenderer(JSONRenderer):
    media_type = TYPE
    format = "scim"


class ForDirectory(BasePermission):
    """A token of the directory's scope, of a service account. A person's session finds nothing here."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.auth, ApiToken):
            raise Http404
        if not request.auth.covers(Scope.DIRECTORY) or not hasattr(request.user, "service_account"):
            raise OutOfScope(Scope.DIRECTORY)
        return True


@extend_schema(exclude=True)
class ScimView(PersonView):
    """Its document is the RFC, so it stands in none of Weir's."""

    permission_classes = [IsAuthenticated, ForDirectory]
    parser_classes = [ScimParser, BoundedJsonParser]
    renderer_classes = [ScimRenderer, JSONRenderer]
    serializer_class = serializers.Serializer
    pagination_class = None
    filter_backends = ()

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return refused

    def listed(
        self, rows: QuerySet[Any] | Sequence[Any], made: Callable[[Any], dict[str, Any]]
    ) -> Response:
        """The page that is asked for, of 1-based ``startIndex``."""
        start = max(1, _number(self.request, "startIndex", 1))
        count = min(MOST, max(0, _number(self.request, "count", MOST)))
        total = rows.count() if isinstance(rows, QuerySet) else len(rows)
        shown = [made(row) for row in rows[start - 1 : start - 1 + count]]
        return Response(
            {
                "schemas": [f"{MESSAGES}ListResponse"],
                "totalResults": total,
                "startIndex": start,
                "itemsPerPage": len(shown),
                "Resources": shown,
            }
        )

    def place(self, kind: str, pk: object) -> str:
        return self.request.build_absolute_uri(f"/scim/v2/{kind}/{pk}")


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > 9:
        raise UnreadError("invalidValue", f"{name} is a whole number.")
    return int(text)


def refused(error: Exception, context: dict[str, Any]) -> Response | None:
    """As everywhere in the API, in the words of RFC 7644."""
    if isinstance(error, UnreadError):
        return Response(_body(400, error.kind, str(error)), status=400)
    answer = handle(error, context)
    if answer is None:
        return None
    body = answer.data
    code = body["code"]
    status = 403 if code in FORBIDDEN else answer.status_code
    words = " ".join(part for part in (body["sentence"], _at(body), body["remedy"]) if part)
    answer.status_code, answer.data = status, _body(status, SCIM_TYPES.get(code, ""), words)
    return answer


def _at(body: Mapping[str, Any]) -> str:
    fields = body.get("fields", {})
    return " ".join(
        f"{name}: {' '.join(said)}" for name, said in fields.items() if said != [body["sentence"]]
    )


def _body(status: int, kind: str, detail: str) -> dict[str, Any]:
    body = {"schemas": [f"{MESSAGES}Error"], "status": str(status), "detail": detail}
    return {**body, "scimType": kind} if kind else body
