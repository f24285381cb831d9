"""Webhooks of the person who asks, and letters that died, for operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.nouns import Noun, verb
from portal.api.permissions import SESSION_ONLY
from portal.api.scope import PersonView
from portal.notices import dead, webhooks
from portal.notices.models import Letter, Webhook
from portal.teams.access import is_operator


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    class Meta:
        model = Webhook
        fields = ["id", "name", "address", "made_at"]
        read_only_fields = fields


class WebhookMadeSerializer(WebhookSerializer):
    secret = serializers.CharField(read_only=True, help_text="Shown this once.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class NewWebhookSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63)
    address = serializers.CharField(max_length=500, help_text="https, of a host outside.")


class Webhooks(Noun):
    """Your webhooks, without their secrets."""

    at, key, names = "notices/webhooks", "<int:pk>", ("webhooks", "webhook")
    serializer_class, takes = WebhookSerializer, NewWebhookSerializer
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


class DeadLetterSerializer(serializers.ModelSerializer[Letter]):
    user: Any = serializers.SlugRelatedField(slug_field="username", read_only=True)
    place = serializers.SerializerMethodField(help_text="Mail address, or host of the webhook.")

    class Meta:
        model = Letter
        fields = ["id", "user", "way", "place", "tries", "fault", "made_at", "settled_at"]
        read_only_fields = fields

    def get_place(self, letter: Letter) -> str:
        return dead.place(letter)


class DeadLetters(Noun):
    """Letters that did not arrive, the newest first. For operators; what stands in them is not shown."""

    at, key, names = "dead-letters", "<int:pk>", ("dead_letters", "dead_letter")
    serializer_class = DeadLetterSerializer
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
