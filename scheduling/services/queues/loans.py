"""The door through which a loan between queues begins and ends; what it does: ``services.queues.lending``."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from scheduling.models import GpuClass, Loan, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.queues.checks import timelines_of
from scheduling.services.queues.faults import figure
from scheduling.services.queues.lending import moved, parts, places_of
from scheduling.services.queues.tree import lock_tree
from scheduling.services.queues.values import instants, value_at


def lendable(queue: Queue, gpu_class: GpuClass, start: datetime, end: datetime) -> int:
    """Milli-GPU of its own nominal quota that the queue has and lends nobody at any moment of the range."""
    key = (queue.pk, gpu_class.pk)
    granted = timelines_of([queue], start).get(key, [])
    loans = Loan.objects.filter(
        lender=queue, gpu_class=gpu_class, starts_at__lt=end, ends_at__gt=start
    )
    lent = [(one.starts_at, one.ends_at, one.gpus) for one in loans]
    moments = set(instants([granted], start, end))
    moments |= {max(start, begins) for begins, _, _ in lent}
    return min(
        value_at(granted, at).nominal
        - sum(gpus for begins, ends, gpus in lent if begins <= at < ends)
        for at in moments
    )


def spare_above(
    lender: Queue, borrower: Queue, gpu_class: GpuClass, start: datetime, end: datetime
) -> int:
    """The least that any queue that would give is guaranteed at any moment of the range, milli-GPU: a
    department that lent its nominal has none that its queues could lend on."""
    places = places_of(lender.cluster_id)
    gives = [pk for pk, by in parts(lender, borrower, places) if by < 0]
    loans = Loan.objects.filter(
        cluster=lender.cluster_id, gpu_class=gpu_class, starts_at__lt=end, ends_at__gt=start
    ).select_related("lender", "borrower")
    queues = Queue.objects.filter(Q(pk__in=gives) | Q(pk__in=[one.lender_id for one in loans]))
    granted = timelines_of(queues, start)
    # With the end of a loan that one of them has it is guaranteed less again.
    moments = {start, *instants(list(granted.values()), start, end)}
    moments |= {at for one in loans for at in (one.starts_at, one.ends_at) if start < at < end}

    def least(at: datetime) -> int:
        nominal = {key: value_at(line, at).nominal for key, line in granted.items()}
        running = [one for one in loans if one.starts_at <= at < one.ends_at]
        shifted = moved(running, nominal, places)
        keys = [(pk, gpu_class.pk) for pk in gives]
        return min(nominal.get(key, 0) + shifted.get(key, 0) for key in keys)

    return min(map(least, moments))


def lend(
    *,
    lender: Queue,
    borrower: Queue,
    gpu_class: GpuClass,
    gpus: int,
    start: datetime,
    end: datetime,
) -> Loan:
    """Begin a loan, in a transaction of the caller. Raises ServiceError as ``check``."""
    lock_tree(lender.cluster)
    check(lender, borrower, gpu_class, gpus, start, end)
    loan = Loan.objects.create(
        cluster=lender.cluster,
        lender=lender,
        borrower=borrower,
        gpu_class=gpu_class,
        gpus=gpus,
        starts_at=start,
        ends_at=end,
    )
    lender.cluster.touch()
    return loan


def set_end(loan: Loan, end: datetime) -> None:
    """Let it end sooner, or as late as it once was to."""
    loan.ends_at = max(end, loan.starts_at)
    loan.save(update_fields=["ends_at"])
    loan.cluster.touch()


def check(
    lender: Queue,
    borrower: Queue | None,
    gpu_class: GpuClass,
    gpus: int,
    start: datetime,
    end: datetime,
) -> None:
    """Raises ServiceError at the field that is wrong, and says what would do instead."""
    if lender.is_root:
        raise ServiceError(
            "root", "The whole cluster lends nothing.", "Name a queue below it.", field="lender"
        )
    if borrower is not None:
        _check_pair(lender, borrower)
    if end <= start:
        raise ServiceError(
            "in_the_past", "It would end before it begins.", "Choose a later end.", field="until"
        )
    most = lendable(lender, gpu_class, start, end)
    if borrower is not None:
        most = min(most, spare_above(lender, borrower, gpu_class, start, end))
    if gpus <= 0:
        raise ServiceError(
            "bad_amount", "A loan is of more than 0 GPUs.", "Write how many.", field="gpus"
        )
    if gpus > most:
        own = figure(max(0, most))
        raise ServiceError(
            "lends_too_much",
            f"{lender.name} has {own} {gpu_class} of its own that it lends nobody until then.",
            f"Lend {own} at most, or until an earlier day."
            if most > 0
            else "Choose another class, or wait for a loan to end.",
            field="gpus",
        )


def _check_pair(lender: Queue, borrower: Queue) -> None:
    if borrower.cluster_id != lender.cluster_id:
        raise ServiceError(
            "other_cluster",
            "They are of two clusters.",
            "Name a queue of this one.",
            field="borrower",
        )
    if borrower.is_root or lender.is_within(borrower) or borrower.is_within(lender):
        raise ServiceError(
            "not_beside",
            f"{borrower.name} and {lender.name} hold the same: one is below the other.",
            "Lend to a queue of another branch, or change the quota.",
            field="borrower",
        )  # fmt: skip
