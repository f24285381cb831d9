"""Each struct of the engine is written by one module, or by one room where its fields belong together."""

from __future__ import annotations

import ast

from tests.scheduling.engine.writers import ENGINE, sizes, writers

OWNERS = {
    "Baseline": "placement.node_room",
    "Demand": "division.demand",
    "Division": "division",
    "FreeByClass": "placement.node_index",
    "Holds": "snapshot.events",
    "HoldsByNode": "snapshot.events",
    "Limits": "quota.limits",
    "MeritLine": "order.by_merit",
    "MeritSearches": "eviction",
    "Mix": "placement.demand_mix",
    "NodeBlocks": "eviction",
    "NodeChanges": "placement.node_room",
    "NodeIndex": "placement",
    "NodeRoom": "placement.node_room",
    "Pool": "snapshot.events",
    "Quotas": "division.share_out",
    "Reservations": "admission.reserve",
    "Rules": "cycle.one_pass",
    "RunningSlots": "order.running",
    "Starts": "statement.operations",
    "Turns": "admission.turns",
    "Usage": "quota.usage",
    "Work": "snapshot",
    "Candidates": "eviction",
    "CostHeap": "eviction",
    "QueueBounds": "eviction",
    "VictimOrder": "eviction",
}
SHARED = {
    "Changes": "who changes a slot lists it, the two orders take it off the list",
    "Decisions": "whoever decides, or knows why not, writes the line of a workload",
    "FailedSearches": "eviction, and what makes a failure stale",
    "NodeBounds": "eviction, and what makes a bound stale",
    "Pass": "the cycle walks, the order keeps its cursors",
    "PendingSlots": "the order, and who asks again among few of it",
    "Redivision": "the division, and each start or eviction that changes what is asked for",
    "Refusals": "the order, and what makes a refusal stale",
    "Round": "counters of whoever does something of which a cycle does no more than so many",
    "Search": "eviction, and the log that counts what it takes",
    "SeatPool": "whoever is given seats",
    "Seats": "scratch of whoever seats a workload",
    "Shapes": "the order tells shapes; demand and mix count by shape",
    "StartLog": "who starts, and who steps back",
    "Searches": "eviction, and who clears or copies the line of a workload",
    "StatementLog": "the statement, and eviction where it strikes out or forgets",
}
"""Written from several rooms, and why."""


def test_every_struct_is_written_by_its_owner_alone() -> None:
    strangers = {
        f"{struct}.{field}": sorted(others)
        for (struct, field), modules in sorted(writers().items())
        if struct not in SHARED
        for others in [{m for m in modules if not f"{m}.".startswith(f"{OWNERS[struct]}.")}]
        if others
    }

    assert strangers == {}


def test_every_struct_that_is_written_has_an_owner_or_a_reason_to_have_none() -> None:
    written = {struct for struct, _ in writers()}

    assert written == OWNERS.keys() | SHARED.keys()
    assert not OWNERS.keys() & SHARED.keys()


def test_no_struct_but_that_of_workloads_has_more_than_sixteen_fields() -> None:
    """What a snapshot says of a workload is one table: it is filled, kept and read column by column."""
    assert [name for name, size in sizes().items() if size > 16] == ["Work"]


def test_no_more_functions_take_the_whole_session() -> None:
    """A number that only falls: who needs one struct takes that."""
    whole = [
        node.name
        for path in ENGINE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and any(arg.arg == "world" for arg in node.args.args)
    ]

    assert len(whole) <= MOST_WHOLE


MOST_WHOLE = 319
