"""The filters of lists: the same set serves a page's address and the API's query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import django_filters as filters
from django import forms
from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django_filters.fields import IsoDateTimeField
from django_filters.rest_framework import DjangoFilterBackend

from portal.boundary.reading import MOST, readable, within_calendar
from portal.teams.access import visible_queues
from scheduling.models import Decision, Eviction, Queue, Quota, State, Workload, WorkloadType
from scheduling.models.queues import below

WAITING = (State.PENDING, State.REQUEUED)
HOLDING = (State.ADMITTED, State.RUNNING, State.EVICTED)
GROUPS = {
    "waiting": WAITING,
    "holding": HOLDING,
    "active": (*WAITING, *HOLDING),
    "all": tuple(State),
}
"""Names for several states at once."""
LONGEST = 253
"""Characters of what is compared with names; Kubernetes has none longer."""
STATES = [
    *State.choices,
    ("waiting", "Pending or requeued"),
    ("holding", "Holding GPUs"),
    ("active", "Not finished"),
    ("all", "Any"),
]


def subtree(queues: QuerySet[Queue], name: str) -> QuerySet[Queue]:
    """The queue called ``name`` (or with this path) among ``queues`` and everything below it."""
    top = queues.filter(Q(name=name) | Q(path=name)).first()
    if top is None:
        return queues.none()
    return queues.filter(below(top.cluster_id, top.path))


class BoundedFilterSet(filters.FilterSet):
    """A filter set whose fields take only what every database can compare with."""

    def get_form_class(self) -> Any:
        form = super().get_form_class()
        for field in form.base_fields.values():
            field.validators = [*field.validators, *_bounds_of(field)]
        return form


def _bounds_of(field: forms.Field) -> list[Callable[[Any], Any]]:
    if isinstance(field, IsoDateTimeField):
        return [within_calendar]
    if isinstance(field, forms.DecimalField):
        return [MinValueValidator(-MOST), MaxValueValidator(MOST)]
    if isinstance(field, forms.CharField):
        return [readable, MaxLengthValidator(LONGEST)]
    return []


class BoundedFilterBackend(DjangoFilterBackend):
    filterset_base = BoundedFilterSet


class OfCluster(BoundedFilterSet):
    """A filter set of rows below one cluster.

    Its ``request`` carries the person; the cluster is given as ``cluster`` by a page and taken from
    the address by the API.
    """

    def __init__(self, *args: Any, cluster: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        match = getattr(self.request, "parser_context", None) or {}
        self.cluster = cluster or match.get("kwargs", {}).get("cluster", "")

    def in_subtree(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        queues = visible_queues(self.request.user).filter(cluster__name=self.cluster)
        return queryset.filter(**{f"{name}__in": subtree(queues, value).values("pk")})


class WorkloadFilter(OfCluster):
    """Narrows workloads; every field may stand in a page's address and in the API's query."""

    state = filters.MultipleChoiceFilter(choices=STATES, method="in_states", label="State")
    queue = filters.CharFilter(method="in_subtree", label="Queue, with everything below it")
    gpu_class = filters.CharFilter(method="of_class", label="GPU class held, or asked for")
    user = filters.CharFilter(field_name="user", label="User")
    name = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Name contains")
    priority_class = filters.CharFilter(field_name="priority_class__name", label="Priority class")
    type = filters.ChoiceFilter(choices=[(t.value, t.value.title()) for t in WorkloadType])
    held = filters.BooleanFilter(label="Held by its user")
    misrouted = filters.BooleanFilter(
        field_name="queue", lookup_expr="isnull", label="Queue label names no queue"
    )
    submitted_after = filters.IsoDateTimeFilter(field_name="submitted_at", lookup_expr="gte")
    submitted_before = filters.IsoDateTimeFilter(field_name="submitted_at", lookup_expr="lt")
    ordering = filters.OrderingFilter(
        fields=[("submitted_at", "submitted_at"), ("name", "name"), ("position", "position")],
        label="Order",
    )

    class Meta:
        model = Workload
        fields: list[str] = []

    def in_states(
        self, queryset: QuerySet[Workload], name: str, value: list[str]
    ) -> QuerySet[Workload]:
        if not value:
            return queryset
        states = {state for one in value for state in GROUPS.get(one, (one,))}
        return queryset.filter(state__in=states)

    def of_class(self, queryset: QuerySet[Workload], name: str, value: str) -> QuerySet[Workload]:
        """Those that hold ``value``; of those that hold nothing, the ones that asked for it."""
        wish = Q(gpu_class=None, asked__contains=f'"{value}"')
        return queryset.alias(asked=Cast("gpu_classes", TextField())).filter(
            Q(gpu_class__name=value) | wish
        )


class QuotaFilter(OfCluster):
    queue = filters.CharFilter(method="in_subtree", label="Queue, with everything below it")
    gpu_class = filters.CharFilter(field_name="gpu_class__name")

    class Meta:
        model = Quota
        fields: list[str] = []


class DecisionFilter(OfCluster):
    workload = filters.CharFilter(field_name="workload__uid", label="uid of the workload")
    cycle = filters.NumberFilter(field_name="cycle__number")
    action = filters.CharFilter(field_name="action")
    reason = filters.CharFilter(field_name="reason")

    class Meta:
        model = Decision
        fields: list[str] = []


class EvictionFilter(OfCluster):
    queue = filters.CharFilter(method="in_subtree", label="Victim's queue, and everything below")
    for_queue = filters.CharFilter(
        method="in_subtree", label="Winner's queue, and everything below"
    )
    gpu_class = filters.CharFilter(field_name="gpu_class__name")
    rule = filters.CharFilter(field_name="rule")
    workload = filters.CharFilter(field_name="workload__uid", label="uid of the victim")
    after = filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    before = filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

    class Meta:
        model = Eviction
        fields: list[str] = []
