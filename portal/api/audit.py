"""The audit log by REST. Nothing here writes."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers

from portal.accounts.capabilities import Capability
from portal.api.calls import call
from portal.api.scope import PersonView, RowSerializer
from portal.audit.chain import verify
from portal.audit.kinds import GROUPS
from portal.audit.models import AuditEntry, Via
from portal.audit.reading import DAYS, AuditQuery, may_audit, visible_entries
from portal.teams.rights import rights_of


class AuditEntrySerializer(RowSerializer[AuditEntry]):
    before = serializers.DictField(read_only=True, allow_null=True)
    after = serializers.DictField(read_only=True, allow_null=True)

    class Meta:
        model = AuditEntry
        fields = [
            "number",
            "at",
            "kind",
            "refused",
            "actor",
            "allowed_as",
            "cluster",
            "queue",
            "subject",
            "before",
            "after",
            "reason",
            "via",
            "address",
            "request_id",
            "previous",
            "digest",
        ]


@extend_schema(
    parameters=[
        OpenApiParameter("days", int, enum=DAYS, description="How far back; 30 unless told."),
        OpenApiParameter("who", str, description="User name."),
        OpenApiParameter("what", str, enum=list(GROUPS)),
        OpenApiParameter("where", str, description="Path of a queue: of it and all below."),
        OpenApiParameter("by", str, enum=Via.values),
        OpenApiParameter(
            "q", str, description="Part of a name or address, or beginning of a digest."
        ),
        OpenApiParameter("refused", str, enum=["1"], description="Refused tries only."),
    ]
)
class AuditList(PersonView, generics.ListAPIView[AuditEntry]):
    """Entries newest first: all of them, or those about the queues whose log you read."""

    serializer_class = AuditEntrySerializer

    def rows(self) -> QuerySet[AuditEntry]:
        if not may_audit(self.person):
            raise Http404
        return AuditQuery(self.request.query_params.dict()).of(visible_entries(self.person))


class VerdictSerializer(serializers.Serializer[Any]):
    whole = serializers.BooleanField(help_text="No entry is missing, none was changed.")
    entries = serializers.IntegerField(help_text="How many were read.")
    last = serializers.CharField(help_text="Digest of the last one that was right.")
    fault = serializers.CharField(help_text="Empty where the chain is whole.")
    number = serializers.IntegerField(help_text="The entry where the fault shows; 0 for none.")


class AuditVerdict(PersonView):
    """Whether the whole log is as it was written. For who reads all of it."""

    serializer_class = VerdictSerializer

    @call(VerdictSerializer)
    def get(self) -> Any:
        if not rights_of(self.person).everywhere(Capability.AUDIT):
            raise Http404
        return verify()
