"""A person's own saved views of reports."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from portal.api.nouns import ClusterNoun
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


class SavedViews(ClusterNoun):
    """Views of reports that you keep."""

    at, key, names = "reports/views", "<int:pk>", ("report_views", "report_view")
    one = "One view that you keep."
    serializer_class = takes = SavedViewSerializer
    queryset = SavedView.objects.none()
    pagination_class = None

    def rows(self) -> QuerySet[SavedView]:
        return saved.views_of(self.person, self.cluster)

    def make(self) -> Any:
        """Keep a view; one of yours of that name becomes this one."""
        return saved.save_view(user=self.person, cluster=self.cluster, **self.given)

    def remove(self, row: SavedView) -> None:
        """No longer keep it."""
        row.delete()
