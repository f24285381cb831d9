"""Groups: what they give the rules say."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import User
from portal.api.scim.base import CORE, ScimView
from portal.api.scim.reading import UnreadError, filter_of, group_in, group_patch
from portal.teams import provisioning
from portal.teams.models import DirectoryGroup

FILTERS = {"displayname": "name", "externalid": "external_id", "members.value": "members__pk"}


class GroupView(ScimView):
    queryset = DirectoryGroup.objects.none()

    def get_queryset(self) -> QuerySet[DirectoryGroup]:
        return DirectoryGroup.objects.prefetch_related("members")

    def document(self, group: DirectoryGroup) -> dict[str, Any]:
        without = self.request.query_params.get("excludedAttributes", "").lower().split(",")
        shown = [] if "members" in without else group.members.all()
        members = [{"value": str(user.pk), "display": user.username} for user in shown]
        return {
            "schemas": [f"{CORE}Group"],
            "id": str(group.pk),
            **({"externalId": group.external_id} if group.external_id else {}),
            "displayName": group.name,
            **({} if "members" in without else {"members": members}),
            "meta": {
                "resourceType": "Group",
                "created": group.made_at.isoformat(),
                "lastModified": group.changed_at.isoformat(),
                "location": self.place("Groups", group.pk),
            },
        }

    def save(
        self, group: DirectoryGroup | None, data: dict[str, Any], status: int = 200
    ) -> Response:
        made = provisioning.set_group(
            self.person,
            group,
            name=data.get("name", group.name if group else ""),
            external_id=data.get("external_id", group.external_id if group else ""),
            members=_people(data.get("members", set())),
            request=self.request,
        )
        answer = self.document(self.get_queryset().get(pk=made.pk))
        return Response(answer, status=status, headers={"Location": answer["meta"]["location"]})


def _people(ids: set[int]) -> list[User]:
    """Those whom the directory looks after; anybody else is no member."""
    found = list(provisioning.managed().filter(pk__in=ids))
    if lacking := sorted(ids - {user.pk for user in found}):
        raise UnreadError("invalidValue", f"There is no user {lacking[0]}.")
    return found


class Groups(GroupView):
    def get(self, request: Request) -> Response:
        found = filter_of(request.query_params.get("filter", ""), FILTERS)
        rows = self.get_queryset()
        if found and found[0] == "members__pk" and not found[1].isdecimal():
            return self.listed([], self.document)
        return self.listed(rows.filter(**dict([found])) if found else rows, self.document)

    def post(self, request: Request) -> Response:
        return self.save(None, group_in(request.data), 201)


class OneGroup(GroupView):
    def found(self) -> DirectoryGroup:
        return get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"])

    def get(self, request: Request, pk: int) -> Response:
        return Response(self.document(self.found()))

    def put(self, request: Request, pk: int) -> Response:
        return self.save(self.found(), group_in(request.data))

    def patch(self, request: Request, pk: int) -> Response:
        group = self.found()
        pks = {user.pk for user in group.members.all()}
        return self.save(group, group_patch(request.data, pks))

    def delete(self, request: Request, pk: int) -> Response:
        provisioning.delete_group(self.person, self.found(), request)
        return Response(status=204)
