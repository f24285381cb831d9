"""Webhooks of the person who asks, and letters that died, for operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import generics, serializers

from portal.accounts.models import Scope
from portal.api.calls import call
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


class WebhookList(PersonView, generics.ListAPIView[Webhook]):
    """Your webhooks, without their secrets."""

    serializer_class = WebhookSerializer
    queryset = Webhook.objects.none()
    pagination_class = None
    write_scope = SESSION_ONLY

    def get_queryset(self) -> QuerySet[Webhook]:
        return Webhook.objects.none() if self.is_schema else self.person.webhooks.all()

    @call(WebhookMadeSerializer, takes=NewWebhookSerializer, code=201)
    def post(self) -> Any:
        """Make a webhook."""
        made, secret = webhooks.add(self.person, **self.given)
        made.secret = secret  # type: ignore[attr-defined]
        return made


class WebhookDetail(PersonView):
    write_scope = Scope.ALL

    @call()
    def delete(self, pk: int) -> None:
        """Remove a webhook; what waits for it goes with it."""
        webhooks.remove(self.person, get_object_or_404(self.person.webhooks, pk=pk))


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


class DeadLetterView(PersonView):
    write_scope = Scope.ALL

    def letter(self, pk: int) -> Letter:
        if not is_operator(self.person):
            raise Http404
        return get_object_or_404(dead.dead(), pk=pk)


class DeadLetters(PersonView, generics.ListAPIView[Letter]):
    """Letters that did not arrive, the newest first. For operators; what stands in them is not shown."""

    serializer_class = DeadLetterSerializer
    queryset = Letter.objects.none()

    def get_queryset(self) -> QuerySet[Letter]:
        if self.is_schema:
            return Letter.objects.none()
        if not is_operator(self.person):
            raise Http404
        return dead.dead()


class DeadLetterAgain(DeadLetterView):
    @call()
    def post(self, pk: int) -> None:
        """Try a dead letter again, at once."""
        dead.try_again(self.person, self.letter(pk))


class DeadLetterDrop(DeadLetterView):
    @call()
    def post(self, pk: int) -> None:
        """Drop a dead letter; the notice stays in the inbox."""
        dead.drop(self.person, self.letter(pk))
