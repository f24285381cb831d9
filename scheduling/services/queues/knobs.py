"""The policy of a cluster, field by field: what it means, its bounds and default, and whom it touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from scheduling.cluster.vocabulary import topology
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.queues.sharing import SAID


@dataclass(frozen=True, slots=True)
class Knob:
    """``unit``: "s", "", or the words of a choice. None as a value is "no bound", where ``optional``."""

    field: str
    group: str
    name: str
    meaning: str
    touches: str
    unit: str = ""
    least: float = 0
    most: float = 1_000_000
    optional: bool = False
    choices: tuple[str, ...] = ()
    read: Callable[[str], object] | None = None
    """Of a text: raises ValueError with what is wrong with it."""

    @property
    def default(self) -> Any:
        column: Any = Cluster._meta.get_field(self.field)
        return column.get_default()

    @property
    def is_text(self) -> bool:
        return self.read is not None

    @property
    def whole(self) -> bool:
        return "Integer" in type(Cluster._meta.get_field(self.field)).__name__


YEAR_S = 366 * 86400
SHARING, WAITING, EVICTING, PLACING, IDLING, RUNNING = (
    "Dividing", "Waiting", "Taking back", "Placing", "Idle GPUs", "The engine",
)  # fmt: skip
KNOBS = (
    Knob(
        "sharing",
        SHARING,
        "What is above nominal",
        " ".join(f"{way.value}: {said}" for way, said in SAID.items()),
        "Everybody who waits. Under fair_share a queue may say otherwise for all below it.",
        choices=tuple(way.value for way in SAID),
    ),
    Knob(
        "history_strength",
        SHARING,
        "Weight of the past between queues",
        "How much less of the spare GPUs a queue gets for what it used of late; 0 forgets.",
        "Queues that borrow.",
        most=100,
    ),
    Knob(
        "usage_half_life_s",
        SHARING,
        "Half-life of use",
        "After this time what was used counts half.",
        "Every queue and user where the past counts.",
        unit="s",
        least=1,
        most=YEAR_S,
    ),
    Knob(
        "user_history_strength",
        SHARING,
        "Weight of the past between users",
        "In the order of a leaf: what a user held of late, against what they hold now.",
        "Users of one queue.",
        most=100,
    ),
    Knob(
        "charge_s",
        SHARING,
        "Charged at a start",
        "A start counts as use for so long at once, so that a burst gains nothing.",
        "Users who start much at a time.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "order",
        WAITING,
        "Order inside a queue",
        "Which of a queue's work of one priority goes first.",
        "Everybody who waits.",
        choices=("arrival", "shortest_predicted", "rank"),
    ),
    Knob(
        "class_order",
        WAITING,
        "Order of GPU classes",
        "Of several classes that work may use, which is tried first: as listed, or where it would end first,"
        " as learned; as listed where nobody knows. Or work waits for the faster alone, for as long as its"
        " run is shorter there, where starts there have come soon enough of late.",
        "Work that may use several classes.",
        choices=("listed", "ends_first", "waits"),
    ),
    Knob(
        "reserve_after_s",
        WAITING,
        "Room is kept after",
        "Work that has waited so long has the GPUs that come free kept for it.",
        "Large gangs, and small work that would pass them.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "backfill_quantile",
        WAITING,
        "Quantile for backfill",
        "Work passes a gang that keeps nodes or its turn if it is over in time, by this quantile of its"
        " predicted run time. Lower lets more pass, and delays the gang where they run on.",
        "Large gangs, and small work that would pass them.",
        least=0.5,
        most=0.99,
    ),
    Knob(
        "preemption_delay_s",
        EVICTING,
        "Wait before anybody leaves",
        "Work waits so long before others are evicted for it.",
        "Work that waits for lent GPUs, and work that borrows.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "fair_share_delay_s",
        EVICTING,
        "Wait for a fair share above nominal",
        "Above its nominal quota a queue takes back only for work that waited so long.",
        "Queues that borrow from each other.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "lowering_grace_s",
        EVICTING,
        "Grace of a lowered quota",
        "A lowered quota evicts nobody for so long.",
        "Work in queues whose quota was cut.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "cooldown_s",
        EVICTING,
        "Rest after an eviction",
        "Within it who was evicted takes only what nominal owes, and nothing if it accepts several classes;"
        " who moved is not moved again.",
        "Evicted work.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "claim_hold_s",
        EVICTING,
        "GPUs are kept past their time",
        "So long past the time when others were to be gone; then they left in vain.",
        "Work whose GPUs come free late, and whoever could use them.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "eviction_cap",
        EVICTING,
        "Evicted per GPU asked for",
        "At most so many GPUs are evicted for each that is asked for; empty: no bound.",
        "Work that waits for room that is held in large pieces.",
        least=1,
        optional=True,
    ),
    Knob(
        "max_evictions",
        EVICTING,
        "Evictions of one workload",
        "From who was evicted so often within a day only what nominal owes is taken back; empty: no bound.",
        "Work that borrows.",
        optional=True,
    ),
    Knob(
        "stale_gang_grace_s",
        EVICTING,
        "Grace of an incomplete gang",
        "A gang that lost members keeps its GPUs so long.",
        "Gangs whose pods fail.",
        unit="s",
        most=YEAR_S,
    ),
    Knob(
        "placement",
        PLACING,
        "Placement",
        "Pack fills nodes and keeps whole ones free; spread evens the load.",
        "Everything that starts.",
        choices=("pack", "spread"),
    ),
    Knob(
        "spread_weight",
        PLACING,
        "Weight of an even load",
        "Where nodes are packed: how much the emptiness of a node counts against what a start takes from the"
        " demand; 0 packs alone, and spread does without.",
        "Everything that starts.",
        most=1,
    ),
    Knob(
        "max_moves",
        PLACING,
        "Moves at once",
        "Running work that may be moved in one cycle to make room; 0 moves none.",
        "Checkpointing work on half-full nodes.",
        most=1000,
    ),
    Knob(
        "topology_levels",
        PLACING,
        "Topology levels",
        "Which labels of nodes name what is close together, the widest level first:"
        " NAME=LABEL,LABEL; NAME=LABEL. A gang asks for a level by its name or label; the node itself is"
        " always one.",
        "Gangs that want to be together.",
        read=topology.parse,
    ),
    Knob(
        "idle_after_s",
        IDLING,
        "Told after",
        "Owners of GPUs on which nothing ran for so long are told, where GPUs are measured.",
        "Work that holds idle GPUs.",
        unit="s",
        least=60,
        most=YEAR_S,
    ),
    Knob(
        "cull_after_s",
        IDLING,
        "Notebooks are culled after",
        "Notebooks on whose GPUs nothing ran for so long are cancelled, once their owner was told and did"
        " not keep them; empty: none are. Training and services are only told.",
        "Notebooks that idle.",
        unit="s",
        least=120,
        most=YEAR_S,
        optional=True,
    ),
    Knob(
        "cycle_interval_s",
        RUNNING,
        "A cycle at least every",
        "Changes of the cluster ask for a cycle at once; this is the longest between two.",
        "Nobody's share; the load on the API server.",
        unit="s",
        least=0.1,
        most=3600,
    ),
)
BY_FIELD = {knob.field: knob for knob in KNOBS}


def policy_of(cluster: Cluster) -> dict[str, Any]:
    return {knob.field: getattr(cluster, knob.field) for knob in KNOBS}


@transaction.atomic
def set_policy(
    *, cluster: Cluster, values: Mapping[str, Any], author: AbstractBaseUser | None, reason: str
) -> dict[str, Any]:
    """Change fields of the policy, in force with the next cycle; what changed, as it was before.

    Raises ServiceError at a field: one that there is not, a value out of bounds, or no reason.
    """
    found = Cluster.objects.select_for_update().get(pk=cluster.pk)
    if not reason.strip():
        raise ServiceError(
            "no_reason", "A change of policy needs a reason.", "Say why.", field="reason"
        )
    for field, value in values.items():
        check(field, value)
    changed = [name for name, value in values.items() if getattr(found, name) != value]
    before = {name: getattr(found, name) for name in changed}
    for name in changed:
        setattr(found, name, values[name])
        setattr(cluster, name, values[name])
    if changed:
        found._history_user = author  # type: ignore[attr-defined]  # read by simple_history
        found.save(update_fields=changed)
        announce(
            "policy.set",
            actor=author,
            cluster=found,
            subject=found.name,
            before=before,
            after={name: values[name] for name in changed},
            reason=reason.strip(),
        )
        found.touch()
    return before


def check(field: str, value: Any) -> None:
    """Raises ServiceError for what ``field`` may not be."""
    knob = BY_FIELD.get(field)
    if knob is None:
        raise ServiceError("unknown_field", f"The policy has no {field}.", field=field)
    if value is None and knob.optional:
        return
    if knob.choices:
        if value not in knob.choices:
            _refuse(knob, f"Use {' or '.join(knob.choices)}.")
        return
    if knob.read:
        _read(knob, value)
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        _refuse(knob, "Write a number.")
    if not knob.least <= value <= knob.most or (knob.whole and value != int(value)):
        kind = "whole number" if knob.whole else "number"
        _refuse(knob, f"Write a {kind} from {knob.least:g} to {knob.most:,.10g}.")


def _read(knob: Knob, value: Any) -> None:
    if not isinstance(value, str):
        _refuse(knob, "Write a text.")
    try:
        assert knob.read  # noqa: S101 - looked at by the caller
        knob.read(value)
    except ValueError as wrong:
        _refuse(knob, f"Correct it: {wrong}. Its default is {knob.default}.")


def _refuse(knob: Knob, remedy: str) -> None:
    raise ServiceError("out_of_bounds", f"{knob.name}: out of bounds.", remedy, field=knob.field)


def levels_of(cluster: Cluster) -> Levels:
    return topology.parse(cluster.topology_levels)
