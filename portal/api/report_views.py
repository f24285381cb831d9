"""A person's own saved views of reports."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.scope import ClusterView
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

    @call(SavedViewSerializer, many=True)
    def get(self) -> Any:
        """Views of reports that you keep."""
        return saved.views_of(self.person, self.cluster)

    @call(SavedViewSerializer, takes=SavedViewSerializer, code=201)
    def post(self) -> Any:
        """Keep a view; one of yours of that name becomes this one."""
        return saved.save_view(user=self.person, cluster=self.cluster, **self.given)


class SavedViewDetail(ClusterView):
    write_scope = Scope.ALL
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()

    @call(SavedViewSerializer)
    def get(self, pk: int) -> Any:
        return saved.view_of(self.person, self.cluster, pk)

    @call()
    def delete(self, pk: int) -> None:
        """No longer keep it."""
        saved.view_of(self.person, self.cluster, pk).delete()
