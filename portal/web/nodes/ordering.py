"""Consolidations that operators order: confirmed with their numbers, then listed with what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect

from portal.web.frame.requests import PersonRequest, act_view
from portal.web.operations.mode import operated
from scheduling.models import PARTLY_DONE, Cluster, Consolidation, ConsolidationState, GpuClass
from scheduling.services.clusters import consolidation_orders
from scheduling.services.clusters.consolidation import ConsolidationEffect
from scheduling.services.errors import ServiceError

TONES = {
    ConsolidationState.WAITING: ("clock", "info"),
    ConsolidationState.MOVING: ("running", "info"),
    ConsolidationState.DONE: ("finished", "ok"),
    ConsolidationState.NOT_DONE: ("error", "err"),
    ConsolidationState.CANCELLED: ("finished", "neutral"),
}
PARTLY = ("error", "warn")
UNCONFIRMED = "Tick the box to confirm what it stops, loses and frees."
CHANGED = (
    "The cluster has changed since you looked: this is what it would take now. Confirm it anew."
)
ENDED = "There is nothing to move any more."


@dataclass(frozen=True, slots=True)
class OrderEntry:
    """One of the list: how it stands, and the moves that came to nothing."""

    order: Consolidation

    @property
    def word(self) -> str:
        return PARTLY_DONE[1] if self.order.is_partial else self.order.get_state_display()

    @property
    def glyph(self) -> str:
        return self._look[0]

    @property
    def tone(self) -> str:
        return self._look[1]

    @property
    def _look(self) -> tuple[str, str]:
        return PARTLY if self.order.is_partial else TONES[ConsolidationState(self.order.state)]

    @property
    def waits(self) -> bool:
        return self.order.state == ConsolidationState.WAITING

    @property
    def moved(self) -> Sequence[dict[str, object]]:
        return [row for row in self.order.moves if row["moved"]]


def listed(cluster: Cluster) -> list[OrderEntry]:
    return [OrderEntry(order) for order in consolidation_orders.latest(cluster)]


def refusal(sent: QueryDict, answer: ConsolidationEffect) -> str:
    """Why what was sent does not confirm ``answer``; empty when it does."""
    if not answer.moves:
        return ENDED
    if sent.get("moves") != str(len(answer.moves)):
        return CHANGED
    return "" if sent.get("confirm") == "yes" else UNCONFIRMED


def order(
    request: PersonRequest, cluster: Cluster, gpu_class: GpuClass, answer: ConsolidationEffect
) -> str | None:
    """Have the next cycle do what ``answer`` foresees; None when it is ordered, else why it is not."""
    if fault := refusal(request.POST, answer):
        return fault
    try:
        consolidation_orders.order(
            cluster=cluster,
            gpu_class=gpu_class,
            nodes=answer.nodes,
            most_moves=len(answer.moves),
            author=request.user,
        )
    except ServiceError as error:
        return str(error)
    messages.success(request, "Ordered. The next cycle plans it anew and carries it out.")
    return None


@act_view
def cancel(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = operated(request, cluster)
    waiting = get_object_or_404(Consolidation, cluster=found, pk=pk)
    if not consolidation_orders.cancel(waiting, author=request.user):
        messages.info(request, "It was taken already.")
    return redirect("web:consolidation", cluster=found.name)
