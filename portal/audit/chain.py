"""Adding to the audit log, and proving that nothing of it is missing or changed.

The digest of an entry is the SHA-256 of its fields and of the digest before it, so whoever changes,
removes or slips in one entry would have to write all later ones anew; a digest that was noted outside
Weir shows that too.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC

from django.db import transaction

from portal.audit.models import AuditEntry, ChainHead, Via
from scheduling.models import Announcement

FIRST = "0" * 64
HEAD = 1
SEALED = (
    "number", "at", "kind", "refused", "actor", "allowed_as", "cluster", "queue", "subject",
    "before", "after", "reason", "via", "address", "request_id", "previous",
)  # fmt: skip
"""Every field but the digest itself."""


def append(announcement: Announcement) -> None:
    """The subscriber: one entry for each announcement, in the order in which they arrive."""
    origin = announcement.origin
    entry = AuditEntry(
        at=announcement.at,
        kind=announcement.kind,
        refused=announcement.refused,
        actor=announcement.actor,
        allowed_as=origin.get("allowed_as", "")[:200],
        cluster=announcement.cluster.name if announcement.cluster else "",
        queue=announcement.queue,
        subject=announcement.subject,
        before=announcement.before,
        after=announcement.after,
        reason=announcement.reason,
        via=origin.get("via", Via.ENGINE),
        address=origin.get("address", "")[:300],
        request_id=origin.get("request_id", ""),
    )
    _link(entry)


@transaction.atomic
def _link(entry: AuditEntry) -> None:
    ChainHead.objects.get_or_create(pk=HEAD, defaults={"digest": FIRST})
    head = ChainHead.objects.select_for_update().get(pk=HEAD)
    entry.number, entry.previous = head.number + 1, head.digest
    entry.digest = digest_of(entry)
    entry.save()
    head.number, head.digest = entry.number, entry.digest
    head.save()


def digest_of(entry: AuditEntry) -> str:
    values = {name: getattr(entry, name) for name in SEALED}
    values["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """``fault`` is empty for a whole chain; ``number`` is the entry where the first one shows."""

    entries: int
    last: str
    fault: str = ""
    number: int = 0

    @property
    def whole(self) -> bool:
        return not self.fault


def verify(expected: str = "") -> ChainVerdict:
    """Reads every entry. ``expected``: a digest that was noted outside and has to be among them."""
    count, previous, seen = 0, FIRST, not expected
    for entry in AuditEntry.objects.order_by("number").iterator(chunk_size=500):
        count += 1
        if fault := _fault(entry, count, previous):
            return ChainVerdict(count, previous, fault, entry.number)
        previous = entry.digest
        seen = seen or previous == expected
    return _end(count, previous, seen=seen)


def _fault(entry: AuditEntry, number: int, previous: str) -> str:
    if entry.number != number:
        return f"Entry {number} is missing."
    if entry.previous != previous:
        return f"Entry {number} does not follow on the one before it."
    if entry.digest != digest_of(entry):
        return f"Entry {number} was changed."
    return ""


def _end(count: int, last: str, *, seen: bool) -> ChainVerdict:
    head = ChainHead.objects.filter(pk=HEAD).first()
    known, digest = (head.number, head.digest) if head else (0, FIRST)
    if known > count:
        return ChainVerdict(
            count, last, f"Entries from {count + 1} to {known} are missing.", count + 1
        )
    if (known, digest) != (count, last):
        return ChainVerdict(
            count, last, "The last entry is not the one that was added last.", count
        )
    if not seen:
        return ChainVerdict(count, last, "The digest that was noted is of no entry.", count)
    return ChainVerdict(count, last)
