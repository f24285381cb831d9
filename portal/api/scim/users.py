"""Users: found, taken in, changed, deactivated."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import User
from portal.api.scim.base import CORE, ScimView
from portal.api.scim.reading import filter_of, user_in, user_patch
from portal.teams import provisioning

FILTERS = {
    "username": "username__iexact", "externalid": "directory_person__external_id",
    "emails.value": "email__iexact", "emails": "email__iexact",
}  # fmt: skip


class UserView(ScimView):
    queryset = User.objects.none()

    def get_queryset(self) -> QuerySet[User]:
        rows = provisioning.managed().select_related("directory_person")
        return rows.prefetch_related("directory_groups")

    def document(self, person: User) -> dict[str, Any]:
        row = getattr(person, "directory_person", None)
        place = self.place("Users", person.pk)
        name = {"givenName": person.first_name, "familyName": person.last_name}
        return {
            "schemas": [f"{CORE}User"],
            "id": str(person.pk),
            **({"externalId": row.external_id} if row and row.external_id else {}),
            "userName": person.username,
            "name": {**name, "formatted": person.get_full_name()},
            "displayName": person.get_full_name() or person.username,
            "emails": [{"value": person.email, "primary": True}] if person.email else [],
            "active": person.is_active,
            "groups": [
                {"value": str(group.pk), "display": group.name}
                for group in person.directory_groups.all()
            ],
            "meta": {
                "resourceType": "User",
                "created": person.date_joined.isoformat(),
                "lastModified": (row.changed_at if row else person.date_joined).isoformat(),
                "location": place,
            },
        }

    def answer(self, person: User, status: int = 200) -> Response:
        body = self.document(self.get_queryset().get(pk=person.pk))
        return Response(body, status=status, headers={"Location": body["meta"]["location"]})


class Users(UserView):
    def get(self, request: Request) -> Response:
        found = filter_of(request.query_params.get("filter", ""), FILTERS)
        rows = self.get_queryset()
        return self.listed(rows.filter(**dict([found])) if found else rows, self.document)

    def post(self, request: Request) -> Response:
        person = provisioning.take_in(self.person, user_in(request.data), request)
        return self.answer(person, 201)


class OneUser(UserView):
    def found(self) -> User:
        return get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"])

    def get(self, request: Request, pk: int) -> Response:
        return self.answer(self.found())

    def put(self, request: Request, pk: int) -> Response:
        """What a whole user leaves out is empty, but for whether they are active."""
        blank = {"first_name": "", "last_name": "", "email": "", "external_id": ""}
        whole = blank | user_in(request.data)
        return self.answer(provisioning.change(self.person, self.found(), whole, request))

    def patch(self, request: Request, pk: int) -> Response:
        changes = user_patch(request.data)
        return self.answer(provisioning.change(self.person, self.found(), changes, request))

    def delete(self, request: Request, pk: int) -> Response:
        provisioning.remove(self.person, self.found(), request)
        return Response(status=204)
