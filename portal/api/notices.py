"""What the person who asks was told, how they want to be told, and letters that did not arrive."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import generics, serializers

from portal.accounts.models import Scope
from portal.api.bodies import body_of
from portal.api.calls import call
from portal.api.nouns import Noun, verb
from portal.api.permissions import SESSION_ONLY
from portal.api.scope import PersonView, RowSerializer
from portal.boundary.reading import MOST
from portal.notices import dead, inbox, webhooks
from portal.notices.forms import WebhookForm
from portal.notices.models import Kind, Letter, Notice, Way, Webhook, When
from portal.notices.times import hours_of, preferences_of, ways_of
from portal.teams.access import is_operator


class NoticeSerializer(RowSerializer[Notice]):
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
        return inbox.visible(self.person)


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

    def _answer(self) -> dict[str, Any]:
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
        return self._answer()

    @call(PreferencesSerializer, takes=PreferencesSerializer)
    def put(self) -> Any:
        inbox.set_preferences(self.person, **self.given)
        return self._answer()


class WebhookSerializer(RowSerializer[Webhook]):
    class Meta:
        model = Webhook
        fields = ["id", "name", "address", "made_at"]


class WebhookMadeSerializer(WebhookSerializer):
    secret = serializers.CharField(read_only=True, help_text="Shown this once.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]


class Webhooks(Noun):
    """Your webhooks, without their secrets."""

    at, key, names = "notices/webhooks", "<int:pk>", ("webhooks", "webhook")
    serializer_class, takes = WebhookSerializer, body_of(WebhookForm, "NewWebhook")
    write_scope = Scope.ALL
    shows_new, shown_once = WebhookMadeSerializer, "secret"
    make_scope = SESSION_ONLY
    queryset = Webhook.objects.none()
    pagination_class = None

    def rows(self) -> QuerySet[Webhook]:
        return self.person.webhooks.all()

    def make(self) -> Any:
        """Make a webhook."""
        return webhooks.add(self.person, **self.given)

    def remove(self, row: Webhook) -> None:
        """Remove a webhook; what waits for it goes with it."""
        webhooks.remove(self.person, row)


class WebhookTest(PersonView):
    write_scope = Scope.ALL

    @call(code=202)
    def post(self, pk: int) -> None:
        """Send a letter without news to a webhook."""
        webhooks.send_test(self.person, get_object_or_404(self.person.webhooks, pk=pk))


class DeadLetterSerializer(RowSerializer[Letter]):
    user: Any = serializers.SlugRelatedField(slug_field="username", read_only=True)
    place = serializers.SerializerMethodField(help_text="Mail address, or host of the webhook.")

    class Meta:
        model = Letter
        fields = ["id", "user", "way", "place", "tries", "fault", "made_at", "settled_at"]

    def get_place(self, letter: Letter) -> str:
        return dead.place(letter)


class DeadLetters(Noun):
    """Letters that did not arrive, the newest first. For operators; what stands in them is not shown."""

    at, key, names = "dead-letters", "<int:pk>", ("dead_letters", "dead_letter")
    serializer_class = DeadLetterSerializer
    write_scope = Scope.ALL
    queryset = Letter.objects.none()

    def rows(self) -> QuerySet[Letter]:
        if not is_operator(self.person):
            raise Http404
        return dead.dead()

    @verb("again")
    def again(self) -> None:
        """Try a dead letter again, at once."""
        dead.try_again(self.person, self.get_object())

    @verb("drop")
    def drop(self) -> None:
        """Drop a dead letter; the notice stays in the inbox."""
        dead.drop(self.person, self.get_object())
