"""What has happened, told to whoever the setting ``WEIR_SUBSCRIBERS`` names.

``announce`` writes one row for the event and one for each subscriber in the caller's transaction, so
an event is kept exactly if what it tells of is. On commit each subscriber is called; its row is deleted
in the transaction of what it writes, so that a kill at any moment loses nothing and does nothing twice.
What a kill or a failing subscriber leaves is taken up again by the task ``deliver``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from scheduling.models import Announcement, Cluster, Delivery

log = logging.getLogger(__name__)

LONGEST_WAIT_S = 3600
AT_ONCE = 200


@dataclass
class Origin:
    """By which way something comes about: the engine itself, unless somebody says otherwise.

    ``refused`` are tries that were turned down, kept aside because their transaction is undone; whoever
    set the origin announces them afterwards.
    """

    via: str = "engine"
    refused: list[dict[str, Any]] = field(default_factory=list)

    def event(self, kind: str, cluster: Cluster | None, queue: str) -> dict[str, str]:
        """What is kept of it with an event: address, and as what its person was allowed."""
        return {"via": self.via}


_origin: ContextVar[Origin | None] = ContextVar("origin", default=None)


def origin() -> Origin:
    return _origin.get() or Origin()


@contextmanager
def coming_from(way: Origin) -> Iterator[Origin]:
    """Everything announced inside comes by ``way``; what was refused is announced at the end."""
    token = _origin.set(way)
    try:
        yield way
    finally:
        for event in way.refused:
            announce(**event, refused=True)
        way.refused.clear()
        _origin.reset(token)


def note_refusal(kind: str, **facts: Any) -> None:
    """Somebody tried ``kind`` and may not: ``told`` as for ``announce``."""
    origin().refused.append({"kind": kind, **facts})


def announce(
    kind: str,
    *,
    actor: Any = None,
    cluster: Cluster | None = None,
    queue: str = "",
    subject: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
    refused: bool = False,
) -> None:
    """``actor`` is a user or a user name; ``before`` and ``after`` hold the fields that changed."""
    names = [
        name for name, kinds in settings.WEIR_SUBSCRIBERS.items() if kind in kinds or "*" in kinds
    ]
    if not names:
        return
    now = timezone.now()
    with transaction.atomic():
        made = Announcement.objects.create(
            kind=kind,
            at=now,
            actor=actor if isinstance(actor, str) else actor.get_username() if actor else "",
            cluster=cluster,
            queue=queue,
            subject=_storable(subject)[:300],
            before=_storable(before),
            after=_storable(after),
            reason=_storable(reason)[:500],
            refused=refused,
            origin=_storable(origin().event(kind, cluster, queue)),
        )
        Delivery.objects.bulk_create(
            Delivery(announcement=made, subscriber=name, due_at=now) for name in names
        )
        transaction.on_commit(lambda: _deliver_all(made), robust=True)


def _storable(value: Any) -> Any:
    """``told`` as PostgreSQL takes it, in texts and in JSON: NUL, which neither can hold, shown as a sign."""
    if isinstance(value, str):
        return value.replace("\0", "\N{SYMBOL FOR NULL}")
    if isinstance(value, Mapping):
        return {_storable(name): _storable(value) for name, value in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(value) for value in value]
    return value


def _deliver_all(made: Announcement) -> None:
    for pk in made.deliveries.values_list("pk", flat=True):
        deliver(pk)


def deliver_due() -> int:
    """Everything that is due, oldest first; how many arrived."""
    deliveries = Delivery.objects.filter(due_at__lte=timezone.now()).order_by("pk")
    return sum(deliver(pk) for pk in deliveries.values_list("pk", flat=True)[:AT_ONCE])


def deliver(pk: int) -> bool:
    """Hand one delivery over; whether it arrived by this call. What fails is tried again later."""
    try:
        return _hand_over(pk)
    except Exception:
        log.exception("delivery %s", pk)
        _put_off(pk)
        return False


@transaction.atomic
def _hand_over(pk: int) -> bool:
    found = Delivery.objects.select_related("announcement__cluster").filter(pk=pk).first()
    # Deleting is claiming: of two who try at once, one counts no row.
    if found is None or not Delivery.objects.filter(pk=pk).delete()[0]:
        return False
    import_string(found.subscriber)(found.announcement)
    if not Delivery.objects.filter(announcement_id=found.announcement_id).exists():
        Announcement.objects.filter(pk=found.announcement_id).delete()
    return True


def _put_off(pk: int) -> None:
    for delivery in Delivery.objects.filter(pk=pk):
        delivery.tries += 1
        wait_s = min(LONGEST_WAIT_S, 2**delivery.tries)
        delivery.due_at = timezone.now() + timedelta(seconds=wait_s)
        delivery.save(update_fields=["tries", "due_at"])
