"""The queues of another scheduler: what they would be here, and making them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

import click

from weir.api import Api
from weir.commands.options import YES, Options, printed, read_text, read_yamls, sure
from weir.commands.trees import TAKING, differences, print_differences, put_tree
from weir.faults import Fault
from weir.importing import kueue as of_kueue
from weir.importing import slurm as of_slurm
from weir.importing.findings import Findings
from weir.printing import safe, table

FILE = click.argument("file", type=click.File())
APPLY = click.option("--apply", "really", is_flag=True, help="Make it; else nothing is saved.")
REASON = click.option("--reason", default="", help="Else: Imported from Kueue, or Slurm.")
MOST_PLACES = 3


@click.group("import")
def importing() -> None:
    """Make the queues that another scheduler has. Without --apply nothing is saved."""


@importing.command()
@FILE
@APPLY
@REASON
@TAKING
@YES
@click.pass_obj
def kueue(
    given: Options, /, file: IO[str], really: bool, reason: str, taking: Sequence[str], yes: bool
) -> None:
    """Of Kueue's objects in FILE (- is standard input): classes, tree with quotas, namespaces,
    levels of topology.

    \b
    kubectl get clusterqueues,cohorts,resourceflavors,topologies,localqueues -A -o yaml | weir import kueue -
    """
    found = of_kueue.translate(read_yamls(file))
    _carry_out(given, found, really, reason or "Imported from Kueue", taking, yes=yes)


@importing.command()
@FILE
@click.option(
    "--class", "named", multiple=True, metavar="TYPE=CLASS",
    help="Which GPU class a type of Slurm is; else the classes of the cluster by their names.",
)  # fmt: skip
@APPLY
@REASON
@YES
@click.pass_obj
def slurm(
    given: Options, /, file: IO[str], named: Sequence[str], really: bool, reason: str, yes: bool
) -> None:
    """Of what `sacctmgr dump` wrote to FILE: accounts with their FairShare and their caps of GPUs."""
    found = of_slurm.translate(read_text(file), _classes(given, named))
    _carry_out(given, found, really, reason or "Imported from Slurm", (), yes=yes)


def _classes(given: Options, named: Sequence[str]) -> dict[str, str]:
    pairs = {model: name for model, _, name in (pair.partition("=") for pair in named)}
    if not all(pairs.values()):
        raise Fault("A class is named as TYPE=CLASS.", "Such as --class h100=h100-80gb")
    if pairs:
        return pairs
    api = given.api()
    return {row["name"]: row["name"] for row in api.pages(api.within("gpu-classes"))}


def _carry_out(
    given: Options, found: Findings, really: bool, reason: str, taking: Sequence[str], *, yes: bool
) -> None:
    """Classes first, since quotas name them; where the tree is refused they stay for the next try."""
    if not really and printed(given, found.document()):
        return
    api = given.api()
    there = {row["name"]: row for row in api.pages(api.within("gpu-classes"))}
    new = [row for row in found.classes if row["name"] not in there]
    for row in found.classes:
        _compare(found, row, there.get(row["name"]))
    changes = list(differences(api.get(api.within("tree"))["queues"], found.queues))
    levels = found.topology_levels and found.topology_levels != _levels_now(api)
    if not (really and yes):
        _show(found, new, changes)
    if not really or not (new or changes or levels):
        return
    sure(f"Make {_many(new, 'GPU class', 'es')} and {_many(changes, 'change')} of queues?", yes=yes)
    if levels:
        values = {"topology_levels": found.topology_levels}
        api.put(api.within("policy"), {"values": values, "reason": reason})
    for row in new:
        api.post(api.within("gpu-classes"), row)
    made = put_tree(api, found.queues, reason, taking)
    if not printed(given, {**found.document(), "made": made["queues"]}):
        for path in made["queues"]:
            click.echo(safe(path))


def _levels_now(api: Api) -> str:
    rows = api.get(api.within("policy"))
    return str(next(row["value"] for row in rows if row["field"] == "topology_levels"))


def _compare(found: Findings, row: Mapping[str, Any], there: Mapping[str, Any] | None) -> None:
    """A class that is there stays; that its nodes are others is said."""
    if there and there.get("node_labels") != row["node_labels"]:
        found.leave(
            f"GPU class {row['name']}", "its node labels", "the class is there and stays as it is"
        )


def _show(found: Findings, new: Sequence[Mapping[str, Any]], changes: Sequence[Any]) -> None:
    columns = [
        ("NEW GPU CLASS", lambda row: row["name"]),
        ("RESOURCE", lambda row: row["resource_name"]),
        ("NODES", lambda row: ", ".join(f"{k}={v}" for k, v in row["node_labels"].items()) or "–"),
    ]
    table(new, columns, "No new GPU class.")
    click.echo()
    if found.topology_levels:
        click.echo(safe(f"Topology levels: {found.topology_levels}\n"))
    print_differences(changes)
    click.echo()
    rows = [{"what": row.what, "instead": row.instead, "at": row.at} for row in found.left]
    left = [
        ("NO COUNTERPART", lambda row: row["what"]),
        ("OF", lambda row: _places(row["at"])),
        ("INSTEAD", lambda row: row["instead"]),
    ]
    table(rows, left, "Everything has a counterpart.")


def _places(names: Sequence[str]) -> str:
    more = len(names) - MOST_PLACES
    return ", ".join(names[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "")


def _many(rows: Sequence[Any], word: str, plural: str = "s") -> str:
    return f"{len(rows)} {word}{'' if len(rows) == 1 else plural}"
