"""Learned orders: read, trained, switched, withdrawn."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError as BadText
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.foresight import OperatedView
from portal.boundary.reading import one_line
from portal.teams.access import is_admin
from scheduling.models import LearnedOrder
from scheduling.services.learned import states, training
from scheduling.services.learned.told import document


def _one_line(value: str) -> None:
    try:
        one_line(value)
    except BadText as error:
        raise serializers.ValidationError(error.messages) from error


class LearnedOrderSerializer(serializers.ModelSerializer[LearnedOrder]):
    weights: Any = serializers.DictField(child=serializers.FloatField(), read_only=True)
    victim_weights: Any = serializers.DictField(child=serializers.FloatField(), read_only=True)

    class Meta:
        model = LearnedOrder
        fields = [
            "id", "version", "state", "why", "since", "author", "sharing", "weights", "victim_weights",
            "trained_from", "trained_to", "workloads", "cpu_s", "looked_at", "differed", "asked_at",
        ]  # fmt: skip
        read_only_fields = fields


class LearnedSwitchSerializer(serializers.Serializer[Any]):
    may_decide = serializers.BooleanField(
        help_text="Whether a learned order that is proven may decide."
    )
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=300, validators=[_one_line]
    )


class WithdrawSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=300, validators=[_one_line])


class LearnedOrders(OperatedView, generics.ListAPIView[LearnedOrder]):
    """Versions of the learned order, the newest first."""

    serializer_class = LearnedOrderSerializer
    queryset = LearnedOrder.objects.none()
    write_scope = Scope.QUOTAS

    def get_queryset(self) -> QuerySet[LearnedOrder]:
        if self.is_schema:
            return LearnedOrder.objects.none()
        return LearnedOrder.objects.filter(cluster=self.cluster).defer(
            "world", "work", "tried", "victim_tried"
        )

    @extend_schema(request=None, responses={202: LearnedOrderSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Train a version on the cluster's own past; 202 with the address at which it is read."""
        order = training.begin(cluster=self.cluster, author=self.person.get_username())
        training.start(order)
        address = reverse("api:learned_order", args=[self.cluster.name, order.pk])
        told = LearnedOrderSerializer(order).data
        return Response(told, status=status.HTTP_202_ACCEPTED, headers={"Location": address})


class LearnedOrderOne(OperatedView):
    """One version: what it weighs, how it held, what it lacks, and what it would have decided."""

    serializer_class = serializers.Serializer
    pagination_class = None

    @extend_schema(
        responses={
            200: {
                "type": "object",
                "additionalProperties": {},
                "description": "The version with its verdict, conditions, steps and differences.",
            }
        }
    )
    def get(self, request: Request, cluster: str, pk: int) -> Response:
        order = get_object_or_404(LearnedOrder, cluster=self.cluster, pk=pk)
        return Response(document(order, self.cluster))


class AdministeredView(OperatedView):
    write_scope = Scope.QUOTAS
    pagination_class = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not is_admin(self.person):
            raise Http404


class LearnedWithdraw(AdministeredView):
    """A person takes a version away, with a reason."""

    serializer_class = WithdrawSerializer

    @extend_schema(request=WithdrawSerializer, responses=LearnedOrderSerializer)
    def post(self, request: Request, cluster: str, pk: int) -> Response:
        order = get_object_or_404(LearnedOrder, cluster=self.cluster, pk=pk)
        asked = WithdrawSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        author = self.person.get_username()
        states.withdraw(order=order, author=author, reason=asked.validated_data["reason"])
        return Response(LearnedOrderSerializer(order).data)


class LearnedSwitch(AdministeredView):
    """Whether learned orders may decide; off, the hand-written order does from the next cycle."""

    serializer_class = LearnedSwitchSerializer

    @extend_schema(request=LearnedSwitchSerializer, responses=LearnedSwitchSerializer)
    def post(self, request: Request, cluster: str) -> Response:
        asked = LearnedSwitchSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        told = asked.validated_data
        states.set_switch(
            cluster=self.cluster,
            is_on=told["may_decide"],
            author=self.person.get_username(),
            reason=told["reason"],
        )
        return Response(told)
