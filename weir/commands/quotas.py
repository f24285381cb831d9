"""Quotas: in force, what an edit would do, and the edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from weir.commands.options import YES, Options, listed, printed, sure
from weir.commands.trees import apply, diff, export
from weir.faults import Fault
from weir.printing import facts, moment, number, safe, table

FIELDS = ("nominal", "borrowing_limit", "lending_limit", "weight", "budget_gpu_hours")
EDITS = click.argument("edits", nargs=-1, required=True, metavar="CLASS.FIELD=VALUE...")
KINDS = {"starts": "starts", "leaves": "is evicted", "waits": "waits longer"}


@click.group()
def quota() -> None:
    """Read and change quotas."""


@quota.command("get")
@click.option("--queue", help="With everything below it.")
@click.option("--class", "gpu_class")
@click.option("--at", help="As of an instant, such as 2026-01-05T10:00:00Z.")
@click.pass_obj
def get(given: Options, /, **query: Any) -> None:
    """Quotas in force."""
    api = given.api()
    rows = api.pages(api.within("quotas"), **query)
    columns = [
        ("QUEUE", lambda row: row["queue"]),
        ("CLASS", lambda row: row["gpu_class"]),
        ("NOMINAL", lambda row: number(row["nominal_gpus"])),
        ("BORROWS", lambda row: _limit(row["borrowing_limit_gpus"])),
        ("LENDS", lambda row: _limit(row["lending_limit_gpus"])),
        ("WEIGHT", lambda row: f"{row['weight']:g}"),
        ("SINCE", lambda row: moment(row["effective_from"])),
        ("UNTIL", lambda row: moment(row["effective_until"])),
    ]
    listed(given, rows, columns, "There is no quota that you may see.")


def _limit(value: float | None) -> str:
    return "no limit" if value is None else number(value)


@quota.command("preview")
@click.argument("queue")
@EDITS
@click.pass_obj
def preview(given: Options, /, queue: str, edits: Sequence[str]) -> None:
    """What an edit of QUEUE would do now: who starts, who leaves, whose share moves. Nothing is saved.

    \b
    weir quota preview speech h100-80gb.nominal=8 h100-80gb.borrowing_limit=none
    """
    api = given.api()
    body = api.post(api.within("quotas/preview"), {"cells": _cells(queue, edits)})
    if printed(given, body):
        return
    lines = body["lines"]
    columns = [
        ("WORKLOAD", lambda row: row["name"] or "one of another team"),
        ("QUEUE", lambda row: row["queue"]),
        ("GPUS", lambda row: number(row["gpus"])),
        ("THEN", lambda row: KINDS[row["kind"]]),
        ("GPU-HOURS LOST", lambda row: number(row["lost_gpu_hours"])),
    ]
    table(lines, columns, "Nobody would start, leave or wait longer now.")
    click.echo()
    shares = [
        ("QUEUE", lambda row: row["queue"]),
        ("CLASS", lambda row: row["gpu_class"]),
        ("NOMINAL", lambda row: _pair(row["nominal"])),
        ("FAIR SHARE", lambda row: _pair(row["fair_share"])),
    ]
    table(body["queues"], shares, "No fair share would move.")


def _pair(pair: Sequence[float]) -> str:
    before, after = number(pair[0]), number(pair[1])
    return before if before == after else f"{before} → {after}"


@quota.command("set")
@click.argument("queue")
@EDITS
@click.option("--reason", required=True)
@click.option("--from", "start", help="An instant; else now.")
@click.option("--until", "end", help="An instant; else for good.")
@YES
@click.pass_obj
def set_(given: Options, /, queue: str, edits: Sequence[str], reason: str, start: str | None,
         end: str | None, yes: bool) -> None:  # fmt: skip
    """Change quotas of QUEUE, all or nothing."""
    api = given.api()
    cells = _cells(queue, edits)
    above = api.get(api.within(f"queues/{queue}"))["parent"]
    if above is None:
        raise Fault(f"{queue} is the root; it has what the cluster has.", "Name a queue below it.")
    # What others change from here on is not overwritten.
    api.get(api.within("quotas"), page_size=1)
    sure(f"Save {len(cells)} figures of {queue}?", yes=yes)
    body = {"queue": above, "cells": cells, "reason": reason,
            "effective_from": start, "effective_until": end}  # fmt: skip
    made = api.post(api.within("quotas"), body)
    if printed(given, made):
        return
    facts([("Change", made["id"]), ("From", moment(made["effective_from"])),
           ("Until", moment(made["effective_until"]))])  # fmt: skip
    for cell in made["cells"]:
        name = f"{cell['queue']} {cell['gpu_class']} {cell['field']}"
        click.echo(safe(f"{name}: {_limit(cell['before'])} → {_limit(cell['after'])}"))


for command in (export, diff, apply):
    quota.add_command(command)


@quota.command("changes")
@click.pass_obj
def changes(given: Options, /) -> None:
    """Changes of quotas, with author, time and reason, newest first, with what was expected of it."""
    api = given.api()
    rows = api.pages(api.within("quota-changes"))
    columns = [
        ("ID", lambda row: str(row["id"])),
        ("AT", lambda row: moment(row["at"])),
        ("BY", lambda row: row["author"] or "–"),
        ("WHAT", lambda row: ", ".join(map(_move, row["cells"]))),
        ("REASON", lambda row: row["reason"]),
        ("EXPECTED", lambda row: row["expected"] or "–"),
    ]
    listed(given, rows, columns, "Nobody changed a quota that you may see.")


def _move(cell: Mapping[str, Any]) -> str:
    before, after = (_limit(cell[side]) for side in ("before", "after"))
    return (
        f"{cell['queue']} {cell['gpu_class']} {cell['field'].replace('_', ' ')} {before} → {after}"
    )


@quota.command("revert")
@click.argument("change", type=int)
@click.option("--reason", required=True)
@YES
@click.pass_obj
def revert(given: Options, /, change: int, reason: str, yes: bool) -> None:
    """Put back what CHANGE replaced, as a new change. `quota changes` has its number."""
    api = given.api()
    sure(f"Revert change {change}?", yes=yes)
    made = api.post(api.within(f"quota-changes/{change}/revert"), {"reason": reason})
    if not printed(given, made):
        click.echo(safe(", ".join(map(_move, made["cells"]))))


def _cells(queue: str, edits: Sequence[str]) -> list[dict[str, Any]]:
    """Raises a usage error that quotes the edit that is not understood."""
    return [_cell(queue, edit) for edit in edits]


def _cell(queue: str, edit: str) -> dict[str, Any]:
    name, equals, value = edit.partition("=")
    gpu_class, dot, field = name.rpartition(".")
    if not (equals and dot) or field not in FIELDS:
        raise click.UsageError(
            f"{edit}: write CLASS.FIELD=VALUE, where FIELD is one of {', '.join(FIELDS)}."
        )
    return {"queue": queue, "gpu_class": gpu_class, "field": field, "value": _value(edit, value)}


def _value(edit: str, value: str) -> str | None:
    if value == "none":
        return None
    try:
        float(value)
    except ValueError as error:
        raise click.UsageError(f"{edit}: {value} is no number; none is no limit.") from error
    return value
