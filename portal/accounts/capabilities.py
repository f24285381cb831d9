"""What a persona may let its members do, and how far each of it reaches.

A row here is all that a new capability needs besides the door that asks for it: the matrix of personas,
"may X do this", the API and the checks of who hands out what read the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Reach(StrEnum):
    """How far a capability goes. Each holds the ones before it."""

    OWN = "own"
    """What carries the person's own name."""
    TEAM = "team"
    """The queue that the team is bound to."""
    SUBTREE = "subtree"
    """That queue and all below it."""
    ALL = "all"
    """Every queue of every cluster."""

    @property
    def rank(self) -> int:
        return list(Reach).index(self)


OWN, TEAM, SUBTREE, ALL = Reach
OF_TEAM = (TEAM, SUBTREE)
BELOW = (SUBTREE, ALL)
IN_QUEUES = (TEAM, SUBTREE, ALL)
EVERYWHERE = (ALL,)
ANY = tuple(Reach)


class Capability(StrEnum):
    SUBMIT = "submit"
    ACT = "act"
    SEE = "see"
    ASK = "ask"
    EDIT_QUOTAS = "edit_quotas"
    LEND = "lend"
    APPROVE = "approve"
    MEMBERS = "members"
    COSTS = "costs"
    AUDIT = "audit"
    OPERATE = "operate"
    ADMINISTER = "administer"


@dataclass(frozen=True, slots=True)
class Meaning:
    """``name`` heads its line of the matrix; ``verb`` stands behind "may" and before the place.

    ``strictly``: a subtree is what lies below the team's queue, without the queue itself.
    """

    group: str
    name: str
    verb: str
    reaches: tuple[Reach, ...]
    strictly: bool = False


WORK, QUOTAS, PEOPLE, OPERATING = "Work", "Quotas", "People and costs", "Operating"
MEANINGS: Mapping[Capability, Meaning] = {
    Capability.SUBMIT: Meaning(WORK, "Submit", "submit to", OF_TEAM),
    Capability.ACT: Meaning(
        WORK, "Cancel, hold, release", "cancel, hold and release the work of", ANY
    ),
    Capability.SEE: Meaning(WORK, "See work and waits", "see the work, waits and reasons of", ANY),
    Capability.ASK: Meaning(QUOTAS, "Ask for quota", "ask for quota for", OF_TEAM),
    Capability.EDIT_QUOTAS: Meaning(
        QUOTAS, "Edit quotas, weights, priorities", "edit the quotas of", BELOW, strictly=True
    ),
    Capability.LEND: Meaning(
        QUOTAS, "Lend and recall", "lend and recall idle quota of", BELOW, strictly=True
    ),
    Capability.APPROVE: Meaning(QUOTAS, "Approve requests", "approve requests of", BELOW),
    Capability.MEMBERS: Meaning(
        PEOPLE, "Members and their personas", "give and take personas in", IN_QUEUES
    ),
    Capability.COSTS: Meaning(PEOPLE, "Read costs", "read the costs of", ANY),
    Capability.AUDIT: Meaning(PEOPLE, "Read the audit log", "read the audit log of", IN_QUEUES),
    Capability.OPERATE: Meaning(
        OPERATING, "Nodes, engine, mode", "operate the nodes and the engine of", EVERYWHERE
    ),
    Capability.ADMINISTER: Meaning(
        OPERATING,
        "Clusters, classes, policy, personas",
        "set up clusters, classes, policy and personas of",
        EVERYWHERE,
    ),
}
"""In the order of every list of them."""

EVERYBODY = "everybody"
"""Where capabilities are listed: whoever there is."""

Grants = Mapping[Any, str]
"""Capability -> reach, as a persona keeps them."""

CLASS_OF_SERVICE = (Capability.SUBMIT,)
"""Handed out within the class of service that the giver has, not within their own reach."""
NOT_BY_RIGHT = frozenset({Capability.SUBMIT, Capability.ASK})
"""Not held by superusers as such: whoever submits and asks does so as the member of a team."""


def ordered(grants: Grants) -> dict[str, str]:
    """``grants`` in the order of the list, those that are none left out."""
    return {name.value: grants[name] for name in MEANINGS if grants.get(name)}


def faults(grants: Grants) -> Iterable[tuple[str, str]]:
    """(capability, what is wrong with it) of those that no persona may have."""
    for name, reach in grants.items():
        if name not in MEANINGS:
            yield name, f"There is no capability {name}."
        elif reach and reach not in MEANINGS[Capability(name)].reaches:
            can = ", ".join(MEANINGS[Capability(name)].reaches)
            yield name, f"{MEANINGS[Capability(name)].name} reaches one of: {can}."
    for wide in (Capability.OPERATE, Capability.ADMINISTER):
        if grants.get(wide) and grants.get(Capability.SEE) != ALL:
            needs = f"{MEANINGS[wide].name} needs to see the work of all."
            yield Capability.SEE.value, needs
