"""Requests of the example organisation, one in each state, taken there by those who would take them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from portal.accounts.models import User
from portal.approvals import doors
from portal.approvals.models import QuotaRequest
from portal.approvals.states import Figure, Kind
from portal.approvals.wish_plans import attached
from portal.approvals.wishes import Wish
from scheduling.models import MILLI, Cluster
from scheduling.services.errors import ServiceError
from workshop.demo.organisation import A100, H100, L4

log = logging.getLogger(__name__)

Step = Callable[[QuotaRequest], object]
SHORT = timedelta(hours=2)
"""Over within two minutes of a demo that runs sixty times as fast."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An asker, the wish, and what is done to it then."""

    by: str
    queue: str
    reason: str
    gpus: int = 0
    gpu_class: str = H100
    kind: Kind = Kind.QUOTA
    figure: Figure = Figure.NOMINAL
    giver: str = ""
    priority_class: str = ""
    starts: timedelta | None = None
    ends: timedelta | None = None
    steps: tuple[Step, ...] = ()

    def wish(self, cluster: Cluster) -> Wish:
        queues, now = (
            {one.name: one for one in cluster.queues.select_related("cluster")},
            cluster.now(),
        )
        return Wish(
            self.kind, queues[self.queue], self.gpu_class, self.priority_class, self.figure,
            self.gpus * MILLI or None, queues.get(self.giver), "",
            now + self.starts if self.starts else None, now + self.ends if self.ends else None,
            self.reason,
        )  # fmt: skip


def approve(request: QuotaRequest, *, by: str, note: str, gpus: int | None = None) -> None:
    amount = None if gpus is None else gpus * MILLI
    doors.approve(by=_user(by), request=request, note=note, gpus=amount, expected=attached(request))


def forward(request: QuotaRequest, *, by: str, note: str) -> None:
    doors.forward(by=_user(by), request=request, note=note)


def reject(request: QuotaRequest, *, by: str, note: str) -> None:
    doors.reject(by=_user(by), request=request, note=note)


def ask_changes(request: QuotaRequest, *, by: str, note: str) -> None:
    doors.ask_changes(by=_user(by), request=request, note=note)


def revoke(request: QuotaRequest, *, by: str, note: str) -> None:
    doors.revoke(by=_user(by), request=request, note=note)


def withdraw(request: QuotaRequest) -> None:
    assert request.author is not None  # noqa: S101 - who asked is a person of the organisation
    doors.withdraw(by=request.author, request=request)


def comment(request: QuotaRequest, *, by: str, text: str) -> None:
    doors.comment(by=_user(by), request=request, text=text)


def _user(name: str) -> User:
    return User.objects.get(username=name)


DAY = timedelta(days=1)
ASKS = (
    Ask(
        "b.costa", "robotics", "The arm's new policy is retrained tonight, before the visit.", 2, L4,
        Kind.BOOST, giver="vision", ends=SHORT,
        steps=(partial(approve, by="lead", note="For tonight; vision's l4 stand idle until then."),),
    ),
    Ask(
        "researcher", "alignment", "Red-teaming of the release candidate: two gangs of 16 instead of one.", 8,
        kind=Kind.BOOST, figure=Figure.BORROWING_LIMIT, ends=14 * DAY,
        steps=(
            partial(forward, by="lead", note="The release depends on it. Would half do until Friday?"),
            partial(comment, by="researcher", text="With half of it one gang runs at a time: two weeks."),
        ),
    ),
    Ask(
        "researcher", "pretraining", "Tokenizer ablations on the small model, four at a time.", 2, A100,
        giver="vision", ends=21 * DAY,
    ),
    Ask(
        "researcher", "pretraining", "A second seed of the 7B run.", 2, kind=Kind.BOOST, giver="robotics",
        ends=10 * DAY,
        steps=(partial(approve, by="lead", gpus=1, note="One for now: robotics needs the other."),),
    ),
    Ask(
        "lead", "research", "Room for the next pretraining run; platform's spare nodes arrive by then.", 4,
        starts=2 * DAY, ends=30 * DAY,
        steps=(partial(approve, by="admin", note="Agreed with platform."),),
    ),
    Ask(
        "researcher", "pretraining", "Nightly evaluation of every checkpoint.", 8, giver="vision",
        steps=(partial(reject, by="lead", note="vision needs them at night. It fits on l4."),),
    ),
    Ask(
        "researcher", "alignment", "A demo for the steering group.", 1, A100, Kind.BOOST, giver="vision",
        ends=3 * DAY, steps=(withdraw,),
    ),
    Ask(
        "q.nguyen", "assistant", "Twice as many people ask it since Monday.", 4, giver="search",
        steps=(partial(ask_changes, by="admin", note="Until when? search needs them back."),),
    ),
    Ask(
        "d.okoye", "alignment", "Serve the candidate to the raters for two weeks.", 0, "", Kind.ACCESS,
        priority_class="inference", ends=14 * DAY,
        steps=(partial(approve, by="admin", note="For the raters alone."),),
    ),
    Ask(
        "e.virtanen", "speech", "Streaming models for the trade fair.", 2, A100, giver="vision",
        ends=30 * DAY,
        steps=(
            partial(approve, by="lead", note="Until the fair."),
            partial(revoke, by="lead", note="The fair is moved to spring."),
        ),
    ),
)  # fmt: skip


def ask_all(cluster: Cluster) -> None:
    """What is asked for already is left alone: a demo that was ended half-way goes on with the rest."""
    known = set(QuotaRequest.objects.filter(cluster=cluster).values_list("reason", flat=True))
    for one in ASKS:
        if one.reason in known:
            continue
        try:
            _take(cluster, one)
        except ServiceError as refused:
            log.warning("%s's request for %s: %s", one.by, one.queue, refused)


def _take(cluster: Cluster, one: Ask) -> None:
    made = doors.submit_new(by=_user(one.by), wish=one.wish(cluster))
    for step in one.steps:
        step(made)
        made.refresh_from_db()
