"""A person's own saved views of reports."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.scope import ClusterView, sent
from portal.reports import saved
from portal.reports.kinds import REPORTS
from portal.reports.models import SavedView


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    kind = serializers.ChoiceField(choices=list(REPORTS), help_text="Which report.")
    query = serializers.CharField(
        max_length=2000, allow_blank=True, default="",
        help_text="Its filters as they stand in the address: range=7d&queue=vision.",
    )  # fmt: skip
    weekly = serializers.BooleanField(default=False, help_text="Told each Monday.")

    class Meta:
        model = SavedView
        fields = ["id", "name", "kind", "query", "weekly"]
        read_only_fields = ["id"]
        validators: list[Any] = []


class SavedViews(ClusterView):
    write_scope = Scope.ALL
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()
    pagination_class = None

    @extend_schema(responses=SavedViewSerializer(many=True))
    def get(self, request: Request, cluster: str) -> Response:
        """Views of reports that you keep."""
        rows = saved.views_of(self.person, self.cluster)
        return Response(SavedViewSerializer(rows, many=True).data)

    @extend_schema(request=SavedViewSerializer, responses={201: SavedViewSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Keep a view; one of yours of that name becomes this one."""
        typed = sent(SavedViewSerializer, request)
        view = saved.save_view(user=self.person, cluster=self.cluster, **typed.validated_data)
        return Response(SavedViewSerializer(view).data, status=status.HTTP_201_CREATED)


class SavedViewDetail(ClusterView):
    write_scope = Scope.ALL
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()

    def get(self, request: Request, cluster: str, pk: int) -> Response:
        return Response(SavedViewSerializer(saved.view_of(self.person, self.cluster, pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, cluster: str, pk: int) -> Response:
        """No longer keep it."""
        saved.view_of(self.person, self.cluster, pk).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)
