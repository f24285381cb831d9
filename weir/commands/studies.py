"""Studies: a past lived again with something changed; asked, followed, listed, cancelled."""

from __future__ import annotations

import time
from base64 import b64encode
from pathlib import Path
from typing import IO, Any

import click

from weir.api import Api
from weir.commands.adapting import adapting
from weir.commands.options import Options, listed, printed, read_yaml
from weir.faults import Fault
from weir.printing import document, moment

OPEN = ("waiting", "running")
MOST_TRACE = 700 * 1024
"""Bytes of a file: more the portal does not take."""
KINDS = ("now", "replay", "edit", "capacity", "experiment", "adapting")
waiting = click.option("--wait/--no-wait", default=True, help="Wait for the answer.")
from_file = click.option(
    "-f", "--file", type=click.File(), required=True, help="As YAML; - is standard input."
)


@click.group()
def study() -> None:
    """Live a past period, or a trace, again with something changed; for whoever operates the cluster."""


study.add_command(adapting)


@study.command("what-if")
@from_file
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 28))
@click.option("--now", is_flag=True, help="Plan the live cluster only; answers at once.")
@waiting
@click.pass_obj
def what_if(given: Options, file: IO[str], days: int, now: bool, wait: bool) -> None:
    """Try changes of queues, quotas, policy or capacity, now and on the last days.

    \b
    - {kind: quota, queue: speech, gpu_class: h100-80gb, nominal_gpus: 4}
    - {kind: capacity, gpu_class: h100-80gb, nodes: 2}
    """
    changes = read_yaml(file)
    if not isinstance(changes, list):
        raise Fault(f"{file.name} holds no list of changes.", "Begin each with: - kind:")
    _ask(given, {"kind": "now" if now else "replay", "changes": changes, "days": days}, wait=wait)


@study.command("capacity")
@click.option("--days", default=30, show_default=True, type=click.IntRange(1, 30))
@click.option("--queue", default="", help="This queue alone, on its own quota.")
@click.option("--step", "step_gpus", default=0, help="GPUs from one number to the next; 0: nodes.")
@waiting
@click.pass_obj
def capacity(given: Options, /, wait: bool, **options: Any) -> None:
    """How long work would have waited on more and fewer GPUs."""
    _ask(given, {"kind": "capacity", **options}, wait=wait)


@study.command("experiment")
@from_file
@click.option(
    "--trace",
    metavar="NAME|FILE",
    help="Live a trace instead of the cluster's past: a file that is sent (SWF, Philly's CSV, Weir's"
    " .ledger.csv; packed or not), else one that the portal keeps.",
)
@waiting
@click.pass_obj
def experiment(given: Options, file: IO[str], trace: str | None, wait: bool) -> None:
    """Compare variants of policy and quotas over a past period.

    \b
    name: Order in November
    begin: 2026-11-02T00:00:00Z
    end: 2026-11-09T00:00:00Z
    variants:
    - name: Arrival order
      changes: [{kind: policy, setting: order, value: arrival}]

    With --trace, begin and end may be left out: as much of it as may be lived is.
    """
    question = read_yaml(file)
    if not isinstance(question, dict):
        raise Fault(f"{file.name} holds no experiment.", "Begin it with: name:")
    body = {**_plain(question), "kind": "experiment"}
    if trace is not None:
        body["trace"] = _trace(trace)
    _ask(given, body, wait=wait)


@study.command("show")
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def show(given: Options, number: int) -> None:
    """A study, with what is lived so far."""
    api = given.api()
    _show(given, api.get(api.within(f"studies/{number}")))


@study.command("list")
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice(KINDS),
    help="All but those about edits and adaptation.",
)
@click.pass_obj
def list_(given: Options, kind: tuple[str, ...]) -> None:
    """Studies, the newest first."""
    api = given.api()
    wanted = kind or ("now", "replay", "capacity", "experiment")
    rows = api.pages(api.within("studies"), kind=wanted)
    columns = [
        ("NO.", lambda row: row["id"]),
        ("KIND", lambda row: row["kind"]),
        ("NAME", lambda row: row["name"]),
        ("AUTHOR", lambda row: row["author"] or "Weir"),
        ("BEGUN", lambda row: moment(row["asked_at"])),
        ("STATE", _state),
    ]
    listed(given, rows, columns, "There is no study yet.")


@study.command("cancel")
@click.argument("number", type=click.IntRange(1))
@click.argument("letters", nargs=-1)
@click.pass_obj
def cancel(given: Options, number: int, letters: tuple[str, ...]) -> None:
    """Live a study no further, or only the variants of LETTERS; what is lived already stays."""
    api = given.api()
    at = api.within(f"studies/{number}")
    for letter in letters:
        api.post(f"{at}/cancel", {"letter": letter})
    found = api.get(at)
    if not letters and found["state"] in OPEN:
        api.delete(at)
        found = api.get(at)
    if not printed(given, found):
        click.echo(_state(found))


def _ask(given: Options, body: dict[str, Any], *, wait: bool) -> None:
    api = given.api()
    found = api.post(api.within("studies"), body)
    if wait:
        found = _lived(api, found)
    _show(given, found)
    if found["fault"]:
        raise Fault(found["fault"])


def _lived(api: Api, found: dict[str, Any]) -> dict[str, Any]:
    """Ask until it has ended; the progress goes where it disturbs no script."""
    while found["state"] in OPEN or "answer" not in found:
        click.echo(f"\r{found['progress']:>3} %", nl=False, err=True)
        found = api.get(api.within(f"studies/{found['id']}"))
        time.sleep(1 if found["state"] in OPEN else 0)
    click.echo("\r", nl=False, err=True)
    return found


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


def _plain(question: dict[Any, Any]) -> dict[str, Any]:
    """YAML reads times as such; the API takes text."""
    return {
        str(key): value.isoformat() if hasattr(value, "isoformat") else value
        for key, value in question.items()
    }


def _state(found: dict[str, Any]) -> str:
    """'A done, B running' where it has variants."""
    each = [f"{one['letter']} {one['state']}" for one in found["variants"]]
    return ", ".join(each) or str(found["state"])


def _show(given: Options, found: dict[str, Any]) -> None:
    if printed(given, found):
        return
    body = {key: found[key] for key in ("id", "kind", "name", "state", "fault")}
    if found["variants"]:
        body["variants"] = _variants(found)
    elif "answer" in found:
        body["answer"] = found["answer"]
    document(body, "yaml")


def _variants(found: dict[str, Any]) -> list[dict[str, Any]]:
    lived = {one["letter"]: one for one in found.get("answer", {}).get("variants", ())}
    return [
        {key: one[key] for key in ("letter", "name", "state", "fault")}
        | {key: lived[one["letter"]][key] for key in ("done", "figures") if one["letter"] in lived}
        for one in found["variants"]
    ]
