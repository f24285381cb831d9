"""People who see a request and may take its steps. Nobody decides twice on one, nor on their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.functional import cached_property

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.approvals.models import QuotaRequest
from portal.approvals.states import DECIDABLE, GRANTED, IN_FORCE, OPEN, Kind, State, Verb
from portal.teams.access import dividable_queues, is_admin, places
from portal.teams.models import Membership
from portal.teams.rights import Person, rights_of
from portal.teams.service_accounts import may_issue
from scheduling.models import MILLI, Queue
from scheduling.services.errors import ServiceError


def visible_requests(user: Person) -> QuerySet[QuotaRequest]:
    """Their own; those of queues whose work they see or whose requests they decide, on either side. A draft
    is its author's alone."""
    if not isinstance(user, User):
        return QuotaRequest.objects.none()
    condition = Q(pk__in=[])
    for capability in (Capability.SEE, Capability.APPROVE):
        near = Queue.objects.filter(places(user, capability))
        condition |= Q(queue__in=near) | Q(giver__in=near)
    rows = QuotaRequest.objects.filter(Q(author=user) | (condition & ~Q(state=State.DRAFT)))
    return rows.select_related(*BESIDE)


BESIDE = (
    "cluster", "queue__parent", "giver", "author__service_account", "author__made_by",
    "forwarder", "decider",
)  # fmt: skip
"""What is read with a request."""


def sees(user: User, request: QuotaRequest) -> bool:
    """The rule of ``visible_requests``, of a request that is read already."""
    if request.author_id == user.pk or request.state == State.DRAFT:
        return request.author_id == user.pk
    rights = rights_of(user)
    return any(
        rights.covers(may, queue)
        for may in (Capability.SEE, Capability.APPROVE)
        for queue in _sides(request)
    )


def askable_queues(user: Person) -> QuerySet[Queue]:
    """Queues for which they may ask."""
    return Queue.objects.filter(places(user, Capability.ASK))


def may_ask(user: Person, queue: Queue) -> bool:
    rights = rights_of(user)
    return rights.granting(Capability.ASK, queue.cluster_id, queue.path) is not None


def decides_at(user: Person, queue: Queue) -> bool:
    """Whether requests of ``queue`` are among those that they decide, whatever their size."""
    rights = rights_of(user)
    if rights.everywhere(Capability.APPROVE):
        return True
    return rights.granting(Capability.APPROVE, queue.cluster_id, queue.path) is not None


SIZELESS = (Kind.ACCESS, Kind.QUEUE)


@dataclass(frozen=True, slots=True)
class Bound:
    """Up to how much a person approves somewhere, milli-GPU; None is any amount."""

    most: int | None

    def covers(self, request: QuotaRequest, gpus: int) -> bool:
        """Access and queues have no size: only who approves any amount gives them."""
        if self.most is None:
            return True
        return request.kind not in SIZELESS and gpus <= self.most


class Decider:
    """One person as one who decides: their personas are read once, for as long as it lives."""

    def __init__(self, user: User) -> None:
        self.user = user

    @cached_property
    def memberships(self) -> list[Membership]:
        rows = self.user.memberships.in_force(timezone.now())
        return list(rows.select_related("persona", "team__queue"))

    def bound_at(self, queue: Queue) -> Bound | None:
        """The widest that their personas give for ``queue``; None where they approve nothing there."""
        if self.user.is_superuser:
            return Bound(None)
        found = [m.persona.approves_gpus for m in self.memberships if _reaches(m, queue)]
        if not found:
            return None
        return Bound(None if None in found else max(most for most in found if most is not None))

    def approves(self, request: QuotaRequest, gpus: int | None = None) -> bool:
        """Whether their persona lets them approve it, on both sides, four eyes apart."""
        if request.kind == Kind.QUEUE and self.divides(request.queue):
            return True
        amount = request.amount if gpus is None else gpus
        bounds = [self.bound_at(queue) for queue in _sides(request)]
        return bool(bounds) and all(b is not None and b.covers(request, amount) for b in bounds)

    def divides(self, queue: Queue | None) -> bool:
        """Whether they could make a queue below it without any request."""
        return queue is not None and dividable_queues(self.user).filter(pk=queue.pk).exists()

    def forwards(self, request: QuotaRequest) -> bool:
        """Whether they decide requests there but not one of this size: their part is to forward it."""
        at = request.queue
        return at is not None and self.bound_at(at) is not None and not self.approves(request)

    def has_turn(self, request: QuotaRequest) -> bool:
        if request.state not in DECIDABLE or acted(self.user, request):
            return False
        if self.approves(request):
            return True
        return request.state == State.SUBMITTED and self.forwards(request)


def _sides(request: QuotaRequest) -> list[Queue]:
    return [queue for queue in (request.queue, request.giver) if queue is not None]


def _reaches(membership: Membership, queue: Queue) -> bool:
    """Whether it lets its person approve requests of ``queue``."""
    reach = membership.persona.grants.get(Capability.APPROVE)
    return reach == "all" or (reach == "subtree" and queue.is_within(membership.team.queue))


def acted(user: User, request: QuotaRequest) -> str:
    """What they did already that keeps them from approving; empty where nothing does."""
    if request.author_id == user.pk:
        return "You asked for it."
    if request.forwarder_id == user.pk:
        return "You forwarded it."
    if hasattr(user, "service_account"):
        return "Programs decide on no request."
    if request.author is not None:
        return _are_one(user, request.author)
    return ""


def _are_one(user: User, author: User) -> str:
    """Why both count as one pair of eyes; empty where they are two.

    The maker of an account knows its first password, and the issuer of a program's tokens acts as it. An
    admin needs no second account: they edit any quota themselves.
    """
    if is_admin(user):
        return ""
    account = getattr(author, "service_account", None)
    if account is not None and may_issue(user, account):
        return f"You may issue tokens of {author}."
    hand, other = _hand(user), _hand(author)
    if hand.pk != other.pk:
        return ""
    if hand.pk == user.pk:
        return f"You made the account of {author}."
    return (
        f"{author} made your account." if hand.pk == author.pk else "One person made both accounts."
    )


def _hand(user: User) -> User:
    """The person at the beginning of those who made each other's accounts, after any admin."""
    while (maker := user.made_by) is not None and not is_admin(maker):
        user = maker
    return user


def deciders(request: QuotaRequest) -> Iterator[User]:
    """Everybody whose turn it is: in the lead's step who forwards, then who approves."""
    if request.queue is not None and request.state in DECIDABLE:
        yield from (user for user in _deciding() if Decider(user).has_turn(request))


def approvers(request: QuotaRequest) -> list[User]:
    """Everybody who could approve it: with its author as one of them, they are another."""
    others = [user for user in _deciding() if not acted(user, request)]
    return [user for user in others if Decider(user).approves(request)]


def _deciding() -> QuerySet[User]:
    """Whose personas decide on requests somewhere."""
    holding = Membership.objects.in_force(timezone.now()).filter(
        persona__grants__has_key=Capability.APPROVE.value
    )
    deciding = Q(pk__in=holding.values("user")) | Q(is_superuser=True)
    return User.objects.filter(deciding, is_active=True).order_by("username")


def has_lead(request: QuotaRequest) -> bool:
    """Whether somebody other than its author forwards such a request, who has not done it by asking."""
    author = request.author
    if author is not None and request.queue is not None and decides_at(author, request.queue):
        return False
    return any(Decider(user).forwards(request) for user in _deciding() if user != author)


def verbs(user: User, request: QuotaRequest) -> set[Verb]:
    """What they may do to it now."""
    if request.queue is None:
        return {Verb.WITHDRAW} if _withdraws(user, request) else set()
    found = set()
    if request.author_id == user.pk and request.is_editable and may_ask(user, request.queue):
        found |= {Verb.SAVE, Verb.SUBMIT}
    if _withdraws(user, request):
        found.add(Verb.WITHDRAW)
    if request.state in DECIDABLE and decides_at(user, request.queue) and not acted(user, request):
        found |= {Verb.ASK_CHANGES, Verb.REJECT}
        if Decider(user).approves(request):
            found.add(Verb.APPROVE)
        if request.state == State.SUBMITTED:
            found.add(Verb.FORWARD)
    if request.state in GRANTED and decides_at(user, request.queue):
        found.add(Verb.REVOKE)
    return found


def _withdraws(user: User, request: QuotaRequest) -> bool:
    return request.author_id == user.pk and request.state in OPEN


def may_renew(user: User, request: QuotaRequest) -> bool:
    """What ends may be asked for again by whoever may ask there, once at a time."""
    ends = request.ends_at is not None and request.state in (*IN_FORCE, State.EXPIRED)
    if not ends or request.queue is None or not may_ask(user, request.queue):
        return False
    return not request.renewals.filter(state__in=[*OPEN, *GRANTED]).exists()


def check(user: User, request: QuotaRequest, verb: Verb, *, gpus: int | None = None) -> None:
    """Raises ServiceError where the person may not do that: ``four_eyes``, ``beyond_bound`` or ``forbidden``.

    Whether the request still is where the verb begins is for ``moves.move`` to find out.
    """
    if verb in (Verb.SAVE, Verb.SUBMIT, Verb.WITHDRAW):
        _check_author(user, request, verb)
        return
    if request.queue is None:
        raise ServiceError("gone", f"The queue {request.place} is gone.", "Ask for another queue.")
    if not decides_at(user, request.queue):
        raise _forbidden("You decide no requests of this queue.")
    if verb == Verb.REVOKE:
        return
    if done := acted(user, request):
        raise ServiceError(
            "four_eyes", f"{done} Two people decide on a request.", "Leave it to somebody else."
        )
    if verb == Verb.APPROVE and not Decider(user).approves(request, gpus):
        raise _too_large(user, request)


def _check_author(user: User, request: QuotaRequest, verb: Verb) -> None:
    if request.author_id != user.pk:
        raise _forbidden("Only who asked may do that.")
    if verb != Verb.WITHDRAW and (request.queue is None or not may_ask(user, request.queue)):
        raise _forbidden(f"You may not ask for {request.place} any more.")


def _forbidden(sentence: str) -> ServiceError:
    return ServiceError("forbidden", sentence, "Ask the lead of the team.")


def _too_large(user: User, request: QuotaRequest) -> ServiceError:
    sides, decider = _sides(request), Decider(user)
    if any(decider.bound_at(queue) is None for queue in sides):
        sentence = "You do not decide on the quota that it is taken from."
        return ServiceError("beyond_bound", sentence, "Forward it to an approver.", field="giver")
    if request.kind in SIZELESS:
        sentence = f"{Kind(request.kind).label} is given by an approver of any amount."
        return ServiceError("beyond_bound", sentence, "Forward it.")
    bounds = [bound for queue in sides if (bound := decider.bound_at(queue)) is not None]
    most = min((b.most for b in bounds if b.most is not None), default=0) / MILLI
    return ServiceError(
        "beyond_bound",
        f"You approve up to {most:g} GPU{'' if most == 1 else 's'}.",
        f"Grant {most:g} at most, or forward it.",
        field="gpus",
    )
