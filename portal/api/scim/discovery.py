"""What this service can do, in the words of RFC 7643, sections 5 to 7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.scim.base import CORE, MOST, ScimView


def _attribute(name: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    usual = {
        "name": name, "type": kind, "multiValued": False, "description": "", "required": False,
        "caseExact": False, "mutability": "readWrite", "returned": "default", "uniqueness": "none",
    }  # fmt: skip
    return {**usual, **more}


READ_ONLY = {"mutability": "readOnly"}
MEMBERS = [_attribute("value", mutability="immutable"), _attribute("display", **READ_ONLY)]
SCHEMAS: Mapping[str, dict[str, Any]] = {
    f"{CORE}User": {
        "id": f"{CORE}User",
        "name": "User",
        "description": "A person",
        "attributes": [
            _attribute("userName", required=True, uniqueness="server", mutability="immutable"),
            _attribute("externalId", caseExact=True),
            _attribute(
                "name", "complex", subAttributes=[_attribute("givenName"), _attribute("familyName")]
            ),
            _attribute("displayName", **READ_ONLY),
            _attribute("emails", "complex", multiValued=True, subAttributes=[
                _attribute("value"), _attribute("primary", "boolean"),
            ]),
            _attribute("active", "boolean"),
            _attribute("groups", "complex", multiValued=True, subAttributes=MEMBERS, **READ_ONLY),
        ],
    },
    f"{CORE}Group": {
        "id": f"{CORE}Group",
        "name": "Group",
        "description": "What rules of groups go by",
        "attributes": [
            _attribute("displayName", required=True, uniqueness="server", caseExact=True),
            _attribute("externalId", caseExact=True),
            _attribute("members", "complex", multiValued=True, subAttributes=MEMBERS),
        ],
    },
}  # fmt: skip
TYPES: Mapping[str, dict[str, Any]] = {
    name: {
        "schemas": [f"{CORE}ResourceType"],
        "id": name,
        "name": name,
        "endpoint": f"/{name}s",
        "schema": f"{CORE}{name}",
    }
    for name in ("User", "Group")
}
NO = {"supported": False}
CONFIG: Mapping[str, Any] = {
    "schemas": [f"{CORE}ServiceProviderConfig"],
    "patch": {"supported": True},
    "bulk": {**NO, "maxOperations": 0, "maxPayloadSize": 0},
    "filter": {"supported": True, "maxResults": MOST},
    "changePassword": NO,
    "sort": NO,
    "etag": NO,
    "authenticationSchemes": [
        {
            "type": "oauthbearertoken",
            "name": "Token",
            "description": "A token of a service account with the scope 'directory'",
            "primary": True,
        }
    ],
}


class Config(ScimView):
    def get(self, request: Request) -> Response:
        return Response(CONFIG)


class Types(ScimView):
    def get(self, request: Request, name: str = "") -> Response:
        return _of(self, TYPES, name)


class Schemas(ScimView):
    def get(self, request: Request, name: str = "") -> Response:
        return _of(self, SCHEMAS, name)


def _of(view: ScimView, known: Mapping[str, dict[str, Any]], name: str) -> Response:
    if not name:
        return view.listed(list(known.values()), lambda one: one)
    if name not in known:
        raise Http404
    return Response(known[name])
