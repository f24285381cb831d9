"""Experiments of the policy lab: begun, followed, cancelled."""

from __future__ import annotations

import time
from base64 import b64encode
from pathlib import Path
from typing import IO, Any

import click

from weir.api import Api
from weir.commands.options import Given, printed, read_yaml
from weir.faults import Fault
from weir.printing import document, moment, table

OPEN = ("waiting", "running")
MOST_TRACE = 700 * 1024
"""Bytes of a file: more the portal does not take."""


@click.group()
def lab() -> None:
    """Live a past period, or a trace, under variants of policy and quotas; for who operates the cluster."""


@lab.command("run")
@click.option(
    "-f",
    "--file",
    type=click.File(),
    required=True,
    help="The experiment as YAML; - is standard input.",
)
@click.option(
    "--trace",
    "trace",
    metavar="NAME|FILE",
    help="Live a trace instead of the cluster's past: a file that is sent (SWF, Philly's CSV, Weir's"
    " .ledger.csv; packed or not), else one that the portal keeps.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until every variant has been lived.")
@click.pass_obj
def run(given: Given, file: IO[str], trace: str | None, wait: bool) -> None:
    """Begin one.

    \b
    name: Order in November
    begin: 2026-11-02T00:00:00Z
    end: 2026-11-09T00:00:00Z
    variants:
    - name: Arrival order
      changes: [{kind: policy, setting: order, value: arrival}]

    With --trace, begin and end may be left out: as much of it as may be lived is.
    """
    asked = read_yaml(file)
    if not isinstance(asked, dict):
        raise Fault(f"{file.name} holds no experiment.", "Begin it with: name:")
    told = _plain(asked)
    if trace is not None:
        told["trace"] = _trace(trace)
    api = given.api()
    made = api.post(api.within("experiments"), told)
    found = _lived(api, made["id"]) if wait else made
    _show(given, found)


@lab.command("show")
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def show(given: Given, number: int) -> None:
    """An experiment, with what is lived so far."""
    api = given.api()
    _show(given, api.get(api.within(f"experiments/{number}")))


@lab.command("list")
@click.option(
    "--by", type=click.Choice(["people", "adaptation", "all"]), default="people", show_default=True,
    help="Whose are listed.",
)  # fmt: skip
@click.pass_obj
def list_(given: Given, by: str) -> None:
    """Experiments, the newest first."""
    api = given.api()
    rows = api.pages(api.within("experiments"), by=by)
    if printed(given, rows):
        return
    columns = [
        ("NO.", lambda row: row["id"]),
        ("NAME", lambda row: row["name"]),
        ("AUTHOR", lambda row: row["author"] or "Adaptation"),
        ("BEGUN", lambda row: moment(row["asked_at"])),
        ("VARIANTS", _state),
    ]
    table(rows, columns, "There is no experiment yet.")


@lab.command("cancel")
@click.argument("number", type=click.IntRange(1))
@click.argument("letters", nargs=-1)
@click.pass_obj
def cancel(given: Given, number: int, letters: tuple[str, ...]) -> None:
    """Live an experiment no further, or only the variants of LETTERS."""
    api = given.api()
    at = api.within(f"experiments/{number}")
    found = api.get(at)
    for letter in letters or [one["letter"] for one in found["variants"] if one["state"] in OPEN]:
        found = api.post(f"{at}/cancel", {"letter": letter})
    if not printed(given, found):
        click.echo(_state(found))


def _trace(name: str) -> dict[str, str]:
    """A file of that name is sent; else a trace of that name is meant. Raises Fault."""
    file = Path(name)
    if not file.is_file():
        return {"name": name}
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_TRACE + 1)
    except OSError as error:
        raise Fault(f"{name}: {error.strerror}.", "Check name and rights.") from error
    if len(content) > MOST_TRACE:
        raise Fault(
            f"{name} is larger than {MOST_TRACE >> 10} KiB.",
            "Pack it, cut it, or have it put into the portal's folder of traces.",
        )
    return {"name": file.name, "content": b64encode(content).decode("ascii")}


def _plain(asked: dict[Any, Any]) -> dict[str, Any]:
    """YAML reads times as such; the API takes text."""
    return {
        str(key): value.isoformat() if hasattr(value, "isoformat") else value
        for key, value in asked.items()
    }


def _lived(api: Api, number: int) -> dict[str, Any]:
    """Ask until every variant has ended; the progress goes where it disturbs no script."""
    while True:
        found: dict[str, Any] = api.get(api.within(f"experiments/{number}"))
        if not any(one["state"] in OPEN for one in found["variants"]):
            break
        done = sum(one["done"] for one in found["results"]["variants"])
        click.echo(f"\r{done} replays", nl=False, err=True)
        time.sleep(1)
    click.echo("\r", nl=False, err=True)
    return found


def _state(found: dict[str, Any]) -> str:
    """'A done, B running'."""
    return ", ".join(f"{one['letter']} {one['state']}" for one in found["variants"])


def _show(given: Given, found: dict[str, Any]) -> None:
    if printed(given, found):
        return
    lived = {one["letter"]: one for one in found.get("results", {}).get("variants", ())}
    told = [
        {key: one[key] for key in ("letter", "name", "state", "fault")}
        | {"done": lived[one["letter"]]["done"], "figures": lived[one["letter"]]["figures"]}
        if one["letter"] in lived
        else one
        for one in found["variants"]
    ]
    document({"id": found["id"], "name": found["name"], "variants": told}, "yaml")
