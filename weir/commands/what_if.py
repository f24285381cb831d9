"""What would be if: changes tried on the live cluster and on its last days."""

from __future__ import annotations

import time
from typing import IO, Any

import click

from weir.api import Api
from weir.commands.options import Given, printed, read_yaml
from weir.faults import Fault
from weir.printing import document

OPEN = ("waiting", "running")


@click.command("what-if")
@click.option(
    "-f",
    "--file",
    type=click.File(),
    required=True,
    help="The list of changes as YAML; - is standard input.",
)
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 90))
@click.option(
    "--now", "now_only", is_flag=True, help="Plan the live cluster only; answers at once."
)
@click.option("--wait/--no-wait", default=True, help="Wait for the answer.")
@click.pass_obj
def what_if(given: Given, file: IO[str], days: int, now_only: bool, wait: bool) -> None:
    """Try changes of queues, quotas, policy or capacity; for who operates the cluster.

    \b
    - {kind: quota, queue: speech, gpu_class: h100-80gb, nominal_gpus: 4}
    - {kind: capacity, gpu_class: h100-80gb, nodes: 2}
    """
    changes = read_yaml(file)
    if not isinstance(changes, list):
        raise Fault(f"{file.name} holds no list of changes.", "Begin each with: - kind:")
    api = given.api()
    body = {"changes": changes, "days": days, "replay": not now_only}
    asked = api.post(api.within("what-ifs"), body)
    if wait:
        asked = _answer(api, asked)
    if not printed(given, asked):
        document({key: asked[key] for key in ("id", "title", "state", "fault", "answer")}, "yaml")
    if asked["fault"]:
        raise Fault(asked["fault"])


def _answer(api: Api, asked: dict[str, Any]) -> dict[str, Any]:
    """Ask until it is worked out; the progress goes where it disturbs no script."""
    while asked["state"] in OPEN:
        click.echo(f"\r{asked['progress']:>3} %", nl=False, err=True)
        time.sleep(1)
        asked = api.get(api.within(f"what-ifs/{asked['id']}"))
    click.echo("\r", nl=False, err=True)
    return asked
