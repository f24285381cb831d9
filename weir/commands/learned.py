"""Learned orders of a cluster: read, trained, switched, withdrawn."""

from __future__ import annotations

from typing import Any

import click

from weir.api import Api
from weir.commands.options import Given, printed
from weir.faults import Fault
from weir.printing import document, moment, table


@click.group()
def learned() -> None:
    """What weights were found on the cluster's own past, and what became of them; for who operates it."""


@learned.command("list")
@click.pass_obj
def list_(given: Given) -> None:
    """Versions, the newest first."""
    api = given.api()
    rows = api.pages(api.within("learned-orders"))
    if printed(given, rows):
        return
    columns = [
        ("VERSION", lambda row: f"v{row['version']}"),
        ("STATE", lambda row: row["state"]),
        ("SINCE", lambda row: moment(row["since"])),
        ("WHY", lambda row: row["why"]),
    ]
    table(rows, columns, "There is no learned order yet.")


@learned.command("show")
@click.argument("version", type=click.IntRange(1), required=False)
@click.pass_obj
def show(given: Given, version: int | None) -> None:
    """One version, else the newest: what it weighs, how it held, what it lacks."""
    api = given.api()
    found = api.get(api.within(f"learned-orders/{_number(api, version)}"))
    if not printed(given, found):
        document(found, "yaml")


@learned.command("differences")
@click.argument("version", type=click.IntRange(1), required=False)
@click.pass_obj
def differences(given: Given, version: int | None) -> None:
    """What it would have decided otherwise, and what that would have led to."""
    api = given.api()
    found = api.get(api.within(f"learned-orders/{_number(api, version)}"))
    rows: list[dict[str, Any]] = found["differences"]
    if printed(given, rows):
        return
    columns = [
        ("AT", lambda row: moment(row["at"])),
        ("DECIDED", lambda row: f"{row['kind']} {row['decided']['name']}"),
        ("WOULD", lambda row: row["would"]["name"] if row["would"] else "nobody"),
        ("WAIT, ALL", lambda row: _waited(row["effect"])),
        ("LOST, GPU-H", lambda row: _lost(row["effect"])),
    ]
    table(rows, columns, "There is no difference.")


def _waited(effect: dict[str, Any] | None) -> str:
    """Minutes with their range over lives that differ by little, or why there are none."""
    if effect is None:
        return "not replayed yet"
    if effect["wait_s"] is None:
        return f"not replayed: {effect['why_not']}"
    mean, least, most = (round(effect[name] / 60) for name in ("wait_s", "least_s", "most_s"))
    return f"{mean:+d} min ({least:+d} to {most:+d})"


def _lost(effect: dict[str, Any] | None) -> str:
    told = effect["lost_gpu_s"] if effect else None
    return "-" if told is None else f"{told / 3600:+.1f}"


@learned.command("train")
@click.pass_obj
def train(given: Given) -> None:
    """Train a version now; it is found again with: weir learned show."""
    api = given.api()
    made = api.post(api.within("learned-orders"), {})
    if not printed(given, made):
        click.echo(f"v{made['version']} {made['state']}")


@learned.command("switch")
@click.argument("state", type=click.Choice(["on", "off"]))
@click.option("--reason", default="", help="Kept in the audit log.")
@click.pass_obj
def switch(given: Given, state: str, reason: str) -> None:
    """Let learned orders decide, or not; off: hand-written order from the next cycle."""
    api = given.api()
    asked = {"may_decide": state == "on", "reason": reason}
    found = api.post(api.within("learned-orders/switch"), asked)
    if not printed(given, found):
        click.echo(f"learned orders may decide: {'yes' if found['may_decide'] else 'no'}")


@learned.command("withdraw")
@click.argument("version", type=click.IntRange(1))
@click.option("--reason", required=True, help="Kept with the version.")
@click.pass_obj
def withdraw(given: Given, version: int, reason: str) -> None:
    """Take a version away, whatever it does."""
    api = given.api()
    at = api.within(f"learned-orders/{_number(api, version)}/withdraw")
    found = api.post(at, {"reason": reason})
    if not printed(given, found):
        click.echo(f"v{found['version']} {found['state']}")


def _number(api: Api, version: int | None) -> int:
    """The key of a version. Raises Fault where there is none."""
    rows: list[dict[str, Any]] = api.pages(api.within("learned-orders"))
    for row in rows:
        if version is None or row["version"] == version:
            return int(row["id"])
    told = f"There is no v{version}." if version else "There is no learned order yet."
    raise Fault(told, "Train one with: weir learned train")
