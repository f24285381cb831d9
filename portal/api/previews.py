"""Planned on the live cluster: what an edit of quotas would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.quotas import CellSerializer, as_cell, check_cells
from portal.api.scope import ClusterView, sent
from portal.approvals.loans.previews import with_loans
from portal.approvals.previews import document, seen_by
from scheduling.services.whatif.documents import changes_of
from scheduling.services.whatif.preview import preview

Json = dict[str, Any]


class EditSerializer(serializers.Serializer[Any]):
    cells = CellSerializer(many=True, allow_empty=False)


class QuotaPreview(ClusterView):
    serializer_class = EditSerializer
    write_scope = Scope.QUOTAS

    @extend_schema(
        request=EditSerializer,
        responses={200: {"type": "object", "additionalProperties": True}},
    )
    def post(self, request: Request, cluster: str) -> Response:
        """What an edit of quotas would do now: who starts, leaves or waits longer, and whose fair share
        moves. Nothing is saved; others' workloads are not named."""
        asked = sent(EditSerializer, request)
        cells = asked.validated_data["cells"]
        check_cells(self.person, self.cluster, cells)
        changes = changes_of(map(as_cell, cells))
        kept = preview(self.cluster, with_loans(self.cluster, changes))
        return Response(self._told(kept, cells))

    def _told(self, kept: Json, cells: Iterable[Mapping[str, Any]]) -> Json:
        about = {cell["gpu_class"]: cell["queue"] for cell in cells}
        told: Json = {}
        for name, queue in about.items():
            seen = seen_by(self.person, self.cluster, kept, about=queue, gpu_class=name)
            if seen is None:
                continue
            one = document(seen)
            rows = [{**row, "gpu_class": name} for row in one.pop("queues")]
            told = {**one, "queues": [*told.get("queues", []), *rows]}
        return told
