"""The admin's reports: the same figures, filters and scope as their pages; views of them that people keep."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.bodies import body_of
from portal.api.calls import call
from portal.api.nouns import ClusterNoun
from portal.api.scope import ClusterView, RowSerializer
from portal.reports import saved_views
from portal.reports.declaration import Report, ReportContent, exported
from portal.reports.edit_forms import ViewForm
from portal.reports.filters import PRESETS
from portal.reports.forms import form_of
from portal.reports.kinds import REPORTS
from portal.reports.models import SavedView
from scheduling.models import Cluster, WorkloadType

PARAMETERS = [
    OpenApiParameter(
        "range",
        str,
        enum=list(PRESETS),
        description="Default: 14d. Months are of the display time zone.",
    ),
    OpenApiParameter("from", str, description="A day or an instant; takes the place of range."),
    OpenApiParameter("to", str, description="Default: now."),
    OpenApiParameter("class", str, many=True, description="GPU classes; default: all."),
    OpenApiParameter("queue", str, description="Top of a subtree; default: all you may see."),
    OpenApiParameter("user", str),
    OpenApiParameter("type", str, enum=[t.value for t in WorkloadType]),
    OpenApiParameter("evicted", str, description="Preemptions: single evictions of this queue."),
    OpenApiParameter("for", str, description="Preemptions: single evictions for this queue."),
    OpenApiParameter(
        "table", str, description="This table alone; of showback also focus: rows of FOCUS."
    ),
    OpenApiParameter("compare", str, enum=["previous", "none"]),
]
SCHEMA = extend_schema(
    parameters=PARAMETERS,
    responses={
        200: {"type": "object", "additionalProperties": {}, "description": "Tables and sums."}
    },
)


class ReportSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Its address: reports/{name}.")
    title = serializers.CharField()
    about = serializers.CharField(help_text="What it answers.")


class ReportList(ClusterView):
    serializer_class = ReportSerializer
    queryset = Cluster.objects.none()
    pagination_class = None

    @call(ReportSerializer, many=True)
    def get(self) -> Any:
        """Which reports there are."""
        return (
            list(REPORTS.values()) if self.cluster else []
        )  # absent where the person may not see it


class ReportView(ClusterView):
    serializer_class = serializers.Serializer
    pagination_class = None
    report: Report

    def answer(self, typed: QueryDict) -> Response:
        """Of one ``table`` alone where it is named.

        Raises ValidationError at the filter at fault, Http404 where the person has no queue."""
        form = form_of(self.cluster, self.person, typed)
        if not form.is_valid():
            raise ValidationError(form.errors)
        found = self.report.compute(self.cluster, form.filters(), self.person)
        if not (wanted := typed.get("table", "")):
            return Response(found.as_dict())
        return Response({"report": self.report.name, wanted: self._table(found, wanted)})

    def _table(self, found: ReportContent, wanted: str) -> list[dict[str, Any]]:
        tables = {table.name: table for table in found.tables()}
        table = tables.get(wanted) or exported(found, wanted)
        if table is None:
            known = ", ".join([*tables, *getattr(found, "exports", {})])
            raise ValidationError({"table": f"There is no such table: name one of {known}."})
        return table.as_dicts()


def view_of(declared: Report) -> type[ReportView]:
    """The view of one report; what its operation is described by is what the report says of itself."""

    def get(self: ReportView, request: Request, cluster: str) -> Response:
        return self.answer(request.query_params)

    get.__doc__ = declared.about
    members = {"get": SCHEMA(get), "report": declared, "__module__": __name__}
    return type(declared.name.title(), (ReportView,), members)


class SavedViewSerializer(RowSerializer[SavedView]):
    kind = serializers.ChoiceField(choices=list(REPORTS), help_text="Which report.")

    class Meta:
        model = SavedView
        fields = ["id", "name", "kind", "query", "weekly"]


class SavedViews(ClusterNoun):
    """Views of reports that you keep."""

    at, key, names = "reports/views", "<int:pk>", ("report_views", "report_view")
    one = "One view that you keep."
    serializer_class, takes = SavedViewSerializer, body_of(ViewForm, "SavedView")
    write_scope = Scope.ALL
    queryset = SavedView.objects.none()
    pagination_class = None

    def rows(self) -> QuerySet[SavedView]:
        return saved_views.views_of(self.person, self.cluster)

    def make(self) -> Any:
        """Keep a view; one of yours of that name becomes this one."""
        return saved_views.save_view(user=self.person, cluster=self.cluster, **self.given)

    def remove(self, row: SavedView) -> None:
        """No longer keep it."""
        row.delete()
