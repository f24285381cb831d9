"""Webhooks of the person who asks, and letters that died, for operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
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

    @extend_schema(request=NewWebhookSerializer, responses={201: WebhookMadeSerializer})
    def post(self, request: Request) -> Response:
        """Make a webhook."""
        asked = NewWebhookSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made, secret = webhooks.add(self.person, **asked.validated_data)
        said = {**WebhookSerializer(made).data, "secret": secret}
        return Response(said, status=status.HTTP_201_CREATED)


class WebhookDetail(PersonView):
    write_scope = Scope.ALL

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a webhook; what waits for it goes with it."""
        webhooks.remove(self.person, get_object_or_404(self.person.webhooks, pk=pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookTest(PersonView):
    write_scope = Scope.ALL

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, pk: int) -> Response:
        """Send a letter without news to a webhook."""
        webhooks.send_test(self.person, get_object_or_404(self.person.webhooks, pk=pk))
        return Response(status=status.HTTP_202_ACCEPTED)


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
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Try a dead letter again, at once."""
        dead.try_again(self.person, self.letter(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class DeadLetterDrop(DeadLetterView):
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Drop a dead letter; the notice stays in the inbox."""
        dead.drop(self.person, self.letter(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)
