"""People who see a loan and may take its steps: the leads of its two sides, each for their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet
from django.utils import timezone

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.approvals.loans.models import LoanOffer, QuotaLoan
from portal.approvals.loans.states import RUNNING, LoanState, LoanVerb
from portal.teams.access import dividable_queues, is_operator
from portal.teams.models import Membership
from portal.teams.rights import Person, rights_of
from scheduling.models import Cluster, Queue
from scheduling.models.queues import above

if TYPE_CHECKING:
    from portal.approvals.loans.models import OpenOffer


def led_queues(user: Person) -> QuerySet[Queue]:
    """Queues that they lend and borrow for: those of teams they lead and all below."""
    return dividable_queues(user).filter(parent__isnull=False)


def leads_in(user: Person, cluster: Cluster) -> bool:
    """Whether there is any in the cluster, from what is known of their rights."""
    rights, edits = rights_of(user), Capability.EDIT_QUOTAS
    return rights.everywhere(edits) or any(
        grant.cluster_id == cluster.pk for grant in rights.holding(edits)
    )


def leads(user: Person, queue: Queue) -> bool:
    return led_queues(user).filter(pk=queue.pk).exists()


def may_open(user: Person, cluster: Cluster) -> bool:
    """Whether there is a page of loans for them."""
    return is_operator(user) or led_queues(user).filter(cluster=cluster).exists()


def visible_loans(user: Person) -> QuerySet[QuotaLoan]:
    """Both sides know each other; operators read all."""
    rows = QuotaLoan.objects.select_related(
        "cluster", "lender__cluster", "borrower", "gpu_class", "term", "author", "offer"
    )
    if is_operator(user):
        return rows
    mine = led_queues(user)
    return rows.filter(Q(lender__in=mine) | Q(borrower__in=mine))


def open_offers(user: Person, cluster: Cluster) -> QuerySet[OpenOffer]:
    """Offers to all, each with what is ``left`` of it, for everybody who leads a queue of the cluster."""
    standing = LoanOffer.objects.filter(
        cluster=cluster, withdrawn_at=None, ends_at__gt=cluster.now()
    )
    rows = standing.with_left().order_by("-created_at", "-id")
    rows = rows.select_related("lender", "gpu_class", "cluster")
    return rows if may_open(user, cluster) else rows.none()


def led_of(user: Person, cluster: Cluster) -> frozenset[int]:
    """Keys of the queues that they lead, for whoever asks of many loans."""
    return frozenset(led_queues(user).filter(cluster=cluster).values_list("pk", flat=True))


def verbs(loan: QuotaLoan, led: Collection[int]) -> set[LoanVerb]:
    """What somebody who leads the queues ``led`` may do to it now."""
    lends, borrows = loan.lender_id in led, loan.borrower_id in led
    state = LoanState(loan.state)
    found: set[LoanVerb] = set()
    if state == LoanState.ASKED:
        found |= {LoanVerb.CONSENT, LoanVerb.DECLINE} if lends else set()
        found |= {LoanVerb.WITHDRAW} if borrows else set()
    elif state == LoanState.OFFERED:
        found |= {LoanVerb.CONSENT, LoanVerb.DECLINE} if borrows else set()
        found |= {LoanVerb.WITHDRAW} if lends else set()
    elif state in RUNNING:
        recall = LoanVerb.RECALL if state == LoanState.RUNNING else LoanVerb.UNDO
        found |= {recall} if lends else set()
        found |= {LoanVerb.GIVE_BACK} if borrows else set()
    return found


def leads_of(queue: Queue) -> QuerySet[User]:
    """The people who decide for the queue, the nearest: by the personas of its own team, else of the next
    above."""
    over = Queue.objects.filter(Q(pk=queue.pk) | above(queue.cluster_id, queue.path))
    memberships = Membership.objects.in_force(timezone.now()).filter(
        team__queue__in=over,
        user__is_active=True,
        persona__grants__has_key=Capability.EDIT_QUOTAS.value,
    )
    rows = list(memberships.values_list("user", "team__queue__path"))
    nearest = max((path for _, path in rows), key=len, default="")
    return User.objects.filter(pk__in=[user for user, path in rows if path == nearest])
