"""May somebody do this, and why: the same check as every page, API call and file, put into a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from portal.accounts.capabilities import MEANINGS, NOT_BY_RIGHT, OWN, Capability, Meaning, Reach
from portal.accounts.models import User
from portal.teams.access import visible_queues, visible_workloads
from portal.teams.giving import excess, givable
from portal.teams.models import Team
from portal.teams.people import led_teams, visible_personas, visible_teams
from portal.teams.rights import Grant, nearest, rights_of
from portal.teams.sight import grants_before
from scheduling.models import Queue, Workload

WITHIN = {
    Reach.OWN: "what is the person's own",
    Reach.TEAM: "the team's own queue",
    Reach.SUBTREE: "the subtree of the team's queue",
    Reach.ALL: "every queue",
}
OWN_WORK = "their own work alone"


@dataclass(frozen=True, slots=True)
class MayAnswer:
    """``persona`` and ``team`` are of the membership that allows it, empty where none is needed or does."""

    yes: bool
    sentence: str
    persona: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class Permission:
    """One thing that a person may or may not do: what, where, and whence it comes."""

    group: str
    what: str
    where: str
    source: str


def ask(
    reader: User,
    person: User,
    capability: Capability,
    queue: Queue,
    workload: Workload | None = None,
) -> MayAnswer:
    """Whether ``person`` may do that to ``queue``, or to one workload of it, in words for ``reader``."""
    if not person.is_active:
        return MayAnswer(False, f"No: {person} is deactivated.")
    if workload is not None and workload.user == person.get_username() and _is_own(capability):
        return MayAnswer(True, f"Yes: {workload.name} is {person}'s own work.")
    if rights_of(person).granting(capability, queue.cluster_id, queue.path) is not None:
        grants = grants_before(reader, person)
        return _yes(nearest(grants, capability, queue.cluster_id, queue.path), capability, queue)
    if person.is_superuser and capability not in NOT_BY_RIGHT:
        return MayAnswer(True, f"Yes: {person} is a superuser, who may do it everywhere.")
    return MayAnswer(False, _no(reader, person, capability, queue))


def _is_own(capability: Capability) -> bool:
    return OWN in MEANINGS[capability].reaches


def _yes(grant: Grant | None, capability: Capability, queue: Queue) -> MayAnswer:
    """None: what allows it is a membership that the reader is not told of."""
    if grant is None:
        return MayAnswer(True, "Yes, by a membership of a team that you do not see.")
    reach = grant.reach(capability) or Reach.TEAM
    near = queue.path == grant.path
    place = (
        f"{queue} is the team's queue" if near else f"{queue} is below {grant.path or 'the root'}"
    )
    because = f"{place}, and the persona" if reach != Reach.ALL else "the persona"
    return MayAnswer(
        True,
        f"Yes, as {grant.persona} in {grant.team}: {because} may {MEANINGS[capability].verb}"
        f" {WITHIN[reach]}.",
        grant.persona,
        grant.team,
    )


def _no(reader: User, person: User, capability: Capability, queue: Queue) -> str:
    meaning = MEANINGS[capability]
    grants = [grant for grant in grants_before(reader, person) if grant.reach(capability)]
    if any(rights_of(person).holding(capability)) and not grants:
        return f"No: {person} may not {meaning.verb} {queue}. {_remedy(meaning)}"
    if not grants:
        return f"No: no persona of {person} may {meaning.verb} any queue. {_remedy(meaning)}"
    where = ", ".join(f"{_reaching(grant, capability)} as {grant.persona}" for grant in grants)
    # "cancel the work of" is said of queues; of one's own it is the work itself.
    said = f"{meaning.verb} {where}".replace(f"the work of {OWN_WORK}", OWN_WORK)
    return f"No: {person} may {said}, and {queue} is not there. {_remedy(meaning)}"


def _permission(meaning: Meaning, where: str, grant: Grant) -> Permission:
    what = _upper(meaning.verb)
    if where == OWN_WORK:
        what = what.removesuffix(" the work of")
    return Permission(meaning.group, what, where, _source(grant))


def _reaching(grant: Grant, capability: Capability) -> str:
    reach = grant.reach(capability)
    if reach == Reach.OWN:
        return OWN_WORK
    if reach == Reach.ALL:
        return "every queue"
    name = grant.path or "the root"
    if MEANINGS[capability].strictly:
        return f"what is below {name}"
    return name if reach == Reach.TEAM else f"{name} and what is below"


def _remedy(meaning: Meaning) -> str:
    narrow = Reach.TEAM in meaning.reaches or Reach.SUBTREE in meaning.reaches
    who = "A lead of the team, or an admin" if narrow else "An admin"
    return f"{who} may give a persona that does."


def may(reader: User, person: User) -> list[Permission]:
    """Every capability that a membership gives which ``reader`` is told of, in the order of the list."""
    grants = grants_before(reader, person)
    lines = [
        _permission(meaning, _reaching(grant, capability), grant)
        for capability, meaning in MEANINGS.items()
        for grant in grants
        if grant.reach(capability)
    ]
    if person.is_superuser:
        lines.append(
            Permission(
                "Operating", "Do everything but submit and ask in", "every queue", "superuser"
            )
        )
    return lines


def _source(grant: Grant) -> str:
    return f"{grant.persona} in {grant.team}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def may_not(reader: User, person: User) -> Iterator[Permission]:
    """What no membership gives, and the personas that are withheld from whoever hands some out."""
    rights = rights_of(person)
    for capability, meaning in MEANINGS.items():
        if not any(rights.holding(capability)) and not rights.everywhere(capability):
            yield Permission(meaning.group, _upper(meaning.verb), "any queue", _remedy(meaning))
    led = led_teams(person).filter(pk__in=visible_teams(reader))
    for team in led.select_related("queue")[:1]:
        yield from _withheld(reader, person, team)


def _withheld(reader: User, person: User, team: Team) -> Iterator[Permission]:
    given = {persona.pk for persona in givable(person, team)}
    for persona in visible_personas(reader).exclude(pk__in=given).order_by("name"):
        over = excess(person, persona, team)
        if over is not None:
            yield Permission("People and costs", "Give the persona", persona.name, over.sentence)


def answer_about(reader: User, about: User, capability: Capability, thing: str) -> MayAnswer | None:
    """Of the queue or the workload of that name; None where the reader sees neither."""
    queues = visible_queues(reader).select_related("cluster")
    queue = queues.filter(path=thing).first() or queues.filter(name=thing).first()
    if queue is not None:
        return ask(reader, about, capability, queue)
    work = visible_workloads(reader).filter(name=thing).exclude(queue=None)
    found = work.select_related("queue__cluster").order_by("-submitted_at").first()
    if found is None or found.queue is None:
        return None
    return ask(reader, about, capability, found.queue, found)
