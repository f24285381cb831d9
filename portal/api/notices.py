"""Notices of the person who asks: what they were told, and how they want to be told."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import generics, serializers

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.scope import PersonView
from portal.boundary.reading import MOST
from portal.notices import inbox
from portal.notices.models import Kind, Notice, Way, When
from portal.notices.times import hours_of, preferences_of, ways_of


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    cluster: Any = serializers.SlugRelatedField(slug_field="name", read_only=True)
    lines: Any = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        read_only=True,
        help_text="Pairs of a word and a sentence: why, what is lost, what comes next.",
    )

    class Meta:
        model = Notice
        fields = [
            "id", "kind", "cluster", "at", "read_at", "about", "title", "lines", "address",
        ]  # fmt: skip
        read_only_fields = fields


class MarkReadSerializer(serializers.Serializer[Any]):
    """Which: those of a thing, those of these numbers; all where neither is said."""

    about = serializers.CharField(max_length=300, required=False)
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MOST), required=False, max_length=1000
    )


class MarkedSerializer(serializers.Serializer[Any]):
    marked = serializers.IntegerField()


class NoticeList(PersonView, generics.ListAPIView[Notice]):
    """What you were told, the newest first."""

    serializer_class = NoticeSerializer

    def rows(self) -> QuerySet[Notice]:
        return inbox.shown(self.person)


class NoticesRead(PersonView):
    serializer_class = MarkReadSerializer
    write_scope = Scope.ALL

    @call(MarkedSerializer, takes=MarkReadSerializer)
    def post(self) -> Any:
        """Mark notices as read."""
        about, pks = self.given.get("about"), self.given.get("ids")
        return {"marked": inbox.mark_read(self.person, about=about, pks=pks)}


class PreferencesSerializer(serializers.Serializer[Any]):
    """When to be told of which kind; hours are local, null is no quiet."""

    preferences: Any = serializers.DictField(child=serializers.ChoiceField(choices=When.choices))
    ways: Any = serializers.DictField(
        child=serializers.ListField(child=serializers.ChoiceField(choices=Way.choices)),
        required=False,
        help_text="By which ways each kind goes besides the inbox; kinds left out stay as they are.",
    )
    digest_hour = serializers.IntegerField(min_value=0, max_value=23)
    quiet_from = serializers.IntegerField(min_value=0, max_value=23, allow_null=True)
    quiet_until = serializers.IntegerField(min_value=0, max_value=23, allow_null=True)


class NoticePreferences(PersonView):
    serializer_class = PreferencesSerializer
    write_scope = Scope.ALL

    def _told(self) -> dict[str, Any]:
        hours = hours_of(self.person)
        preferences, ways = preferences_of(self.person), ways_of(self.person)
        return {
            "preferences": {kind.value: preferences[kind].value for kind in Kind},
            "ways": {kind.value: sorted(ways[kind]) for kind in Kind},
            "digest_hour": hours.digest_hour,
            "quiet_from": hours.quiet_from,
            "quiet_until": hours.quiet_until,
        }

    @call(PreferencesSerializer)
    def get(self) -> Any:
        return self._told()

    @call(PreferencesSerializer, takes=PreferencesSerializer)
    def put(self) -> Any:
        inbox.set_preferences(self.person, **self.given)
        return self._told()
