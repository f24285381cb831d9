"""Nobody hands out more than they have: what a person may give and take, and where.

Asked by every door that makes, changes or ends a membership, by page, API or file alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from portal.accounts.capabilities import CLASS_OF_SERVICE, MEANINGS, Capability, Reach
from portal.accounts.models import Persona, User
from portal.teams.access import is_admin, places
from portal.teams.models import Membership, MembershipQuerySet, Team
from portal.teams.rights import Rights, rights_of
from scheduling.models import MILLI, Queue
from scheduling.services import events
from scheduling.services.errors import ServiceError
from scheduling.services.words import span

LIMITS: Mapping[str, Callable[[int], str]] = {
    "max_gpus_per_workload": lambda milli: f"{milli / MILLI:g} GPUs a workload",
    "max_gpus_at_once": lambda milli: f"{milli / MILLI:g} GPUs at once",
    "max_run_time_s": lambda seconds: f"{span(seconds)} of run time",
}
"""Column -> how it reads. NULL is without limit."""


@dataclass(frozen=True, slots=True)
class Excess:
    """What a persona has that its giver lacks."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Giver:
    """The memberships by which somebody gives, and what they may by those."""

    memberships: MembershipQuerySet
    rights: Rights

    @property
    def personas(self) -> list[Persona]:
        rows = Persona.objects.filter(memberships__in=self.memberships).distinct()
        return list(rows.prefetch_related("priority_classes", "gpu_classes"))


def _now(user: User) -> Giver:
    memberships = Membership.objects.in_force(timezone.now()).filter(user=user)
    return Giver(memberships, rights_of(user))


def _lasting(user: User, until: datetime | None) -> Giver:
    """By what they still have when something that they give ends."""
    memberships = Membership.objects.lasting(until).filter(user=user)
    return Giver(memberships, Rights(user, memberships))


def excess(giver: User, persona: Persona, team: Team) -> Excess | None:
    """Why ``giver`` may not hand ``persona`` out in ``team``; None where they may."""
    return _excess(_now(giver), persona, team)


def _excess(giver: Giver, persona: Persona, team: Team) -> Excess | None:
    rights = giver.rights
    if rights.everywhere(Capability.ADMINISTER):
        return None
    for name, reach in persona.grants.items():
        capability = Capability(name)
        if capability not in CLASS_OF_SERVICE and not _covers(rights, capability, reach, team):
            return Excess(f"It may {MEANINGS[capability].verb} more than its giver.")
    if _approves_more(giver, persona):
        return Excess("It approves larger requests than its giver.")
    if Capability.SUBMIT in persona.grants:
        return _excess_of_service(giver, persona)
    return None


def _covers(rights: Rights, capability: Capability, reach: str, team: Team) -> bool:
    """Whether the giver has it where the persona would; what is one's own is everybody's."""
    if reach == Reach.OWN:
        return True
    if rights.everywhere(capability):
        return True
    if reach == Reach.ALL:
        return False
    cluster, path = team.queue.cluster_id, team.queue.path
    return any(
        grant.cluster_id == cluster
        and (grant.path == path or not grant.path or path.startswith(f"{grant.path}/"))
        and (grant.reach(capability) == Reach.SUBTREE or grant.reach(capability) == reach)
        and (grant.reach(capability) == Reach.SUBTREE or grant.path == path)
        for grant in rights.holding(capability)
    )


def _approves_more(giver: Giver, persona: Persona) -> bool:
    if Capability.APPROVE not in persona.grants:
        return False
    bounds = [own.approves_gpus for own in giver.personas if Capability.APPROVE in own.grants]
    if None in bounds:
        return False
    most = persona.approves_gpus
    return most is None or most > max((bound for bound in bounds if bound is not None), default=0)


def _excess_of_service(giver: Giver, persona: Persona) -> Excess | None:
    """A class of service is handed out by whoever has one like it in some team."""
    own = [p for p in giver.personas if Capability.SUBMIT in p.grants]
    if not own:
        return Excess("It may submit, and no persona of its giver may.")
    found = [next(_beyond(persona, mine), None) for mine in own]
    return None if None in found else found[0]


def _beyond(persona: Persona, mine: Persona) -> Iterator[Excess]:
    for column, said in LIMITS.items():
        bound, most = getattr(persona, column), getattr(mine, column)
        if most is not None and (bound is None or bound > most):
            text = "no limit" if bound is None else said(bound)
            yield Excess(f"It allows {text}, against {said(most)} of its giver.")
    if mine.preemptible_only and not persona.preemptible_only:
        yield Excess("It allows work that is not preemptible, and that of its giver does not.")
    if persona.interactive and not mine.interactive:
        yield Excess("It allows interactive work, and that of its giver does not.")
    for relation, words in (("priority_classes", "priority"), ("gpu_classes", "GPU")):
        bound, given = (set(getattr(p, relation).all()) for p in (persona, mine))
        if given and (not bound or bound - given):
            more = ", ".join(sorted(str(c) for c in bound - given)) or "every one"
            yield Excess(f"It allows the {words} classes {more}, and that of its giver does not.")


def check_within(giver: User, persona: Persona, team: Team, act: str) -> None:
    """For what acts with a persona (an account, its token, a rule): raises ServiceError ``forbidden`` for who
    gives no personas in ``team``, and ``not_yours`` at ``persona`` where it has more than ``giver``; ``act``
    is what the giver was about to do with it.
    """
    check_may_give(giver, team)
    over = excess(giver, persona, team)
    if over is not None:
        sentence = f"You may not {act} the persona {persona} in {team}. {over.sentence}"
        remedy = "Choose a persona that you have, or ask an admin."
        raise ServiceError("not_yours", sentence, remedy, field="persona")


def check_end(
    giver: User, persona: Persona, team: Team, until: datetime | None, field: str = "until"
) -> None:
    """Raises ServiceError at ``field`` for what would go on when ``giver`` may not give it any more."""
    if _gives(_lasting(giver, until), persona, team):
        return
    end = last_end(giver, persona, team)
    raise ServiceError(
        "past_your_own_end",
        f"It would go on when you may no longer give {persona} in {team}.",
        f"Give it an end, at the latest {end:%Y-%m-%d %H:%M} UTC, or ask who has it for longer."
        if end
        else "Ask who has it for longer.",
        field=field,
    )


def check_admin_for_good(by: User) -> None:
    """For what changes everybody's rights and has no end. Raises ServiceError."""
    if not _lasting(by, None).rights.everywhere(Capability.ADMINISTER):
        raise ServiceError(
            "past_your_own_end",
            "It would stay when you no longer administer this installation.",
            "Ask somebody who administers it without an end.",
        )


def last_end(giver: User, persona: Persona, team: Team) -> datetime | None:
    """Until when ``giver`` may give ``persona`` in ``team``; None is for good, or not at all."""
    if _gives(_lasting(giver, None), persona, team):
        return None
    ends = Membership.objects.filter(user=giver, until__gt=timezone.now())
    every = ends.order_by("-until").values_list("until", flat=True).distinct()
    return next((end for end in every if _gives(_lasting(giver, end), persona, team)), None)


def _gives(giver: Giver, persona: Persona, team: Team) -> bool:
    return _may_give(giver.rights, team) and _excess(giver, persona, team) is None


def check_may_give(giver: User, team: Team) -> None:
    """Raises ServiceError ``forbidden`` for whoever gives no personas in ``team``."""
    if not _may_give(rights_of(giver), team):
        raise ServiceError(
            "forbidden", f"You give no personas in {team}.", "Ask a lead of the team, or an admin."
        )


def _may_give(rights: Rights, team: Team) -> bool:
    place = team.queue
    if rights.everywhere(Capability.MEMBERS) or rights.everywhere(Capability.ADMINISTER):
        return True
    return rights.granting(Capability.MEMBERS, place.cluster_id, place.path) is not None


def check_gives(giver: User, *, person: User, persona: Persona, team: Team) -> None:
    """Raises ServiceError at ``persona`` or ``user`` for what the giver may not hand out, and notes the try.

    In order: 1. the giver gives personas there at all; 2. not to themselves; 3. not more than they have.
    """
    check_may_give(giver, team)
    if person == giver and not is_admin(giver):
        refuse(
            giver, person, persona, team,
            ServiceError(
                "for_oneself",
                "Nobody changes their own memberships.",
                "Ask another lead of the team, or an admin.",
                field="user",
            ),
        )  # fmt: skip
    over = excess(giver, persona, team)
    if over is not None:
        refuse(
            giver, person, persona, team,
            ServiceError(
                "more_than_you_have",
                f"You may not hand out or take {persona.name} in {team}. {over.sentence}",
                "Choose another persona, or ask an admin.",
                field="persona",
            ),
        )  # fmt: skip


def refuse(giver: User, person: User, persona: Persona, team: Team, error: ServiceError) -> None:
    events.note_refusal(
        "member.changed",
        actor=giver,
        cluster=team.queue.cluster,
        queue=team.queue.path,
        subject=f"{person}, {team}",
        after={"persona": persona.name},
        reason=error.sentence,
    )
    raise error


def led_teams(giver: User) -> QuerySet[Team]:
    """Teams whose members and programs the person looks after."""
    return Team.objects.filter(queue__in=Queue.objects.filter(places(giver, Capability.MEMBERS)))


def givable(giver: User, team: Team) -> list[Persona]:
    """The personas that ``giver`` may hand out in ``team``."""
    every = Persona.objects.prefetch_related("priority_classes", "gpu_classes")
    return [persona for persona in every if excess(giver, persona, team) is None]
