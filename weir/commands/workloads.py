"""Work: submit it, list it, why it waits, when it starts, cancel it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

import click

from weir.api import workload
from weir.commands.options import YES, LengthOfTime, Options, listed, printed, read_yaml, sure
from weir.faults import Fault
from weir.printing import band, counted, facts, moment, number, safe, table

Row = Mapping[str, Any]
AT_ONCE = 100
"""Workloads that the portal acts on in one call."""
LIVE = ("waiting", "holding")
CHANGES = [
    ("CHANGE", lambda row: row["change"].replace("_", " ")),
    ("TO", lambda row: row["value"]),
    ("EVICTS GPUS", lambda row: number(row["evicts_gpus"])),
    ("", lambda row: row["sentence"]),
]


@click.command()
@click.option("--all", "everyone", is_flag=True, help="Those too in which nothing runs or waits.")
@click.pass_obj
def queues(given: Options, /, everyone: bool) -> None:
    """Queues that you may see, with their shares by GPU class."""
    api = given.api()
    rows = api.pages(api.within("queues"))
    if printed(given, rows):
        return
    lines = [
        {"queue": row["path"] or "(all)", **share}
        for row in rows
        for share in row["shares"]
        if everyone or share["allocated"] or share["pending"] or share["nominal"]
    ]
    columns = [
        ("QUEUE", lambda row: row["queue"]),
        ("CLASS", lambda row: row["gpu_class"]),
        *((name.upper().replace("_", " "), _figure(name))
          for name in ("nominal", "allocated", "fair_share", "potential", "pending")),
    ]  # fmt: skip
    table(lines, columns, "You may see no queue with quota or work.")


def _figure(name: str) -> Any:
    return lambda row: number(row[name])


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-f",
    "--file",
    type=click.File(),
    help="A manifest, as kubectl apply takes it; - is standard input.",
)
@click.option("--name")
@click.option("--queue")
@click.option("--image")
@click.option(
    "--class", "classes", multiple=True, help="GPU class; several in order of preference."
)
@click.option("--gpus", type=click.IntRange(1, 1024), help="Per pod.  [default: 1]")
@click.option("--pods", type=click.IntRange(1, 100_000), help="Of the gang.  [default: 1]")
@click.option("--pods-max", type=click.IntRange(1, 100_000), help="Above --pods: elastic.")
@click.option("--cpus", type=click.FloatRange(min=0), help="Per pod.")
@click.option("--memory", type=click.FloatRange(min=0), help="GiB per pod.")
@click.option("--priority", help="Priority class.")
@click.option("--limit", type=LengthOfTime(), help="Longest run time: 6h, 1d12h; bare: seconds.")
@click.option("--checkpoint", type=LengthOfTime(), help="Between checkpoints: 30min.")
@click.option("--together", metavar="LEVEL", help="All pods in one domain of it, as rack or node.")
@click.option("--segment", type=click.IntRange(1), help="So many pods at a time are together …")
@click.option("--segment-in", metavar="LEVEL", help="… in one domain of this level.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Environment.")
@click.option("--volume", "volumes", multiple=True, metavar="CLAIM=/PATH", help="To mount.")
@click.option("--secret", "secrets", multiple=True, help="A Secret; its keys become environment.")
@click.option("--kind", type=click.Choice(["training", "interactive", "service"]))
@click.option("--not-before", metavar="TIME", help="Such as 2026-12-01T18:00+01:00.")
@click.option("--after", multiple=True, help="Work that it starts after; NAME:ended for any end.")
@click.option("--array", type=click.IntRange(2), help="So many members, each a workload.")
@click.option("--at-once", type=click.IntRange(1), help="Members of the array at once.")
@click.option(
    "--even-if-never", is_flag=True, help="Even what can't start as limits and nodes are."
)
@click.argument("command", nargs=-1)
@click.pass_obj
def submit(
    given: Options,
    /,
    file: IO[str] | None,
    even_if_never: bool,
    array: int | None,
    at_once: int | None,
    **fields: Any,
) -> None:
    """Submit a manifest, or a job made of options and then its COMMAND, best after --.

    \b
    weir submit --name probe --queue speech --image registry/probe:1 \\
        --class h100-80gb --gpus 8 -- python train.py
    """
    body = _of_file(file, fields) if file is not None else _of_options(fields)
    if even_if_never:
        body["even_if_never"] = True
    members = {"array": array, "array_at_once": at_once}
    body |= {name: value for name, value in members.items() if value is not None}
    api = given.api()
    made = api.post(api.within("workloads"), body)
    if not printed(given, made):
        more = f" and {array - 1} more members of its array are" if array else " is"
        click.echo(f"{made['namespace']}/{made['name']}{more} submitted; its uid is {made['uid']}.")


def _of_file(file: IO[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    if any(fields.values()):
        raise click.UsageError("Give a manifest or options, not both.")
    manifest = read_yaml(file)
    if not isinstance(manifest, dict):
        raise Fault(f"{file.name} holds no manifest.", "Give one object of Kubernetes.")
    return {"manifest": manifest}


SENT_AS = {
    "name": "name", "queue": "queue", "image": "image", "classes": "gpu_classes", "gpus": "gpus_per_pod",
    "pods": "pods_min", "pods_max": "pods_max", "cpus": "cpus_per_pod", "memory": "memory_gib_per_pod",
    "priority": "priority_class", "limit": "run_time_limit_s", "checkpoint": "checkpoint_interval_s",
    "command": "command", "env": "env", "volumes": "volumes", "secrets": "secrets", "kind": "kind",
    "not_before": "not_before", "after": "after",
}  # fmt: skip


TOPOLOGY = {
    "together": "required", "segment": "segment_size", "segment_in": "segment_required",
}  # fmt: skip
"""Options of which it consists."""


def _of_options(fields: Mapping[str, Any]) -> dict[str, Any]:
    missing = [name for name in ("name", "queue", "image", "classes") if not fields[name]]
    if missing:
        option = "--" + missing[0].replace("classes", "class")
        raise click.UsageError(f"{option} is missing; or give a manifest with -f.")
    topology = {key: fields[name] for name, key in TOPOLOGY.items() if fields[name] is not None}
    said = {
        SENT_AS[name]: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value not in (None, ()) and name not in TOPOLOGY
    }
    said |= {"topology": topology} if topology else {}
    return said | {name: _pairs(name, said[name]) for name in ("env", "volumes") if name in said}


def _pairs(name: str, said: Sequence[str]) -> dict[str, str]:
    """NAME=value, each once."""
    found: dict[str, str] = {}
    for one in said:
        key, equals, value = one.partition("=")
        if not equals or key in found:
            option = "--" + name.removesuffix("s")
            what = "is there twice" if equals else "has no '='"
            raise click.UsageError(f"{option} {key} {what}.")
        found[key] = value
    return found


@click.command()
@click.option("--all", "over", is_flag=True, help="Finished work too.")
@click.option("--state", multiple=True, help="One of the states, or waiting, holding.")
@click.option("--queue", help="With everything below it.")
@click.option("--user")
@click.option("--mine", is_flag=True, help="Your own.")
@click.option("--class", "gpu_class", help="GPU class held, or asked for.")
@click.option("--name", help="Contains this.")
@click.option("--limit", default=200, type=click.IntRange(1, 100_000), show_default=True)
@click.pass_obj
def ls(
    given: Options, /, over: bool, state: tuple[str, ...], mine: bool, limit: int, **query: Any
) -> None:
    """Workloads, the last submitted first."""
    api = given.api()
    if mine:
        query["user"] = api.get("me")["username"]
    query["state"] = list(state) or ([] if over else list(LIVE))
    rows = api.pages(api.within("workloads"), limit, ordering="-submitted_at", **query)
    columns = [
        ("NAME", lambda row: row["name"]),
        ("QUEUE", lambda row: row["queue"] or row["queue_label"]),
        ("USER", lambda row: row["user"]),
        ("STATE", lambda row: row["outcome"] or row["state"]),
        ("GPUS", lambda row: number(row["allocated_gpus"] or row["requested_gpus"])),
        ("CLASS", lambda row: row["gpu_class"] or ",".join(row["gpu_classes"])),
        ("SUBMITTED", lambda row: moment(row["submitted_at"])),
        ("WHY", lambda row: row["ending"] or row["sentence"]),
    ]
    listed(given, rows, columns, "There is no such workload.")


@click.command()
@click.argument("name")
@click.pass_obj
def why(given: Options, /, name: str) -> None:
    """Why a workload (NAME or uid) waits, runs or was evicted."""
    found = workload(given.api(), name)
    if printed(given, found):
        return
    click.echo(safe(found["ending"] or found["sentence"] or _end(found)))
    facts(
        [
            ("State", found["outcome"] or found["state"]),
            ("What to do", found["remedy"]),
            ("Exit code", found["exit_code"]),
            ("Queue", found["queue_path"] or found["queue_label"]),
            ("Place in its queue", found["position"]),
            ("Needs", f"{number(found['requested_gpus'])} of {', '.join(found['gpu_classes'])}"),
            ("Submitted", moment(found["submitted_at"])),
            ("Started", moment(found["started_at"]) if found["started_at"] else None),
            ("Ended", moment(found["finished_at"]) if found["finished_at"] else None),
            ("Evicted", counted(count, "time") if (count := found["eviction_count"]) else None),
            ("Starts", _forecast(found)),
        ]
    )


def _end(found: Row) -> str:
    """Of what has no sentence."""
    return (
        f"It has ended: {found['outcome']}."
        if found["outcome"]
        else "Nothing was decided about it yet."
    )


@click.command()
@click.argument("name")
@click.pass_obj
def eta(given: Options, /, name: str) -> None:
    """When a waiting workload starts: the forecast, P50 to P90."""
    found = workload(given.api(), name)
    if printed(given, {"uid": found["uid"], "start_forecast": found["start_forecast"]}):
        return
    click.echo(safe(_forecast(found) or _no_forecast(found)))


def _forecast(found: Row) -> str:
    forecast = found["start_forecast"]
    if not forecast or not forecast["p90_at"]:
        return ""
    if not forecast["p50_at"]:
        return f"Any moment, by {moment(forecast['p90_at'])} (as of {moment(forecast['at'])})"
    return f"{band(forecast['p50_at'], forecast['p90_at'])} (as of {moment(forecast['at'])})"


def _no_forecast(found: Row) -> str:
    if found["started_at"]:
        return f"It started {moment(found['started_at'])}."
    forecast = found["start_forecast"]
    place = f" Place {found['position']} in its queue." if found["position"] else ""
    return ((forecast and forecast["why_not"]) or "No start is predicted.") + place


@click.command()
@click.argument("name")
@click.pass_obj
def sooner(given: Options, /, name: str) -> None:
    """What would start a waiting workload now, each change planned by the engine."""
    api = given.api()
    found = workload(api, name)
    rows = api.get(api.within(f"workloads/{found['uid']}/sooner"))["changes"]
    if not printed(given, rows):
        table(rows, CHANGES, "Nothing that you could change would start it now.")


def _act(given: Options, verb: str, names: tuple[str, ...], done: str, **more: str) -> None:
    """All are found before the first is touched; one that is refused stops none of the others."""
    api = given.api()
    uids = [workload(api, name)["uid"] for name in names]
    rows: list[Row] = []
    for at in range(0, len(uids), AT_ONCE):
        body = {"action": verb, "uids": uids[at : at + AT_ONCE], **more}
        rows += api.post(api.within("workload-actions"), body)["results"]
    failed = [row for row in rows if not row["done"]]
    if not printed(given, rows):
        for row in rows:
            if row["done"]:
                click.echo(safe(f"{row['name']}: {done}."))
    if failed:
        raise _not_done(failed)


def _not_done(failed: Sequence[Row]) -> Fault:
    """What stands on the error stream, and in the exit code, for those that were refused."""
    said = [f"{row['name']}: {row['refused']['sentence']}" for row in failed]
    remedy = failed[0]["refused"]["remedy"]
    return Fault("\n".join(said), remedy, code=failed[0]["refused"]["code"])


@click.command()
@click.argument("names", nargs=-1, required=True)
@YES
@click.pass_obj
def cancel(given: Options, /, names: tuple[str, ...], yes: bool) -> None:
    """Cancel workloads (names or uids). It can't be undone."""
    sure(f"Cancel {', '.join(names)}? It can't be undone.", yes=yes)
    _act(given, "cancel", names, "it ends")


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.pass_obj
def hold(given: Options, /, names: tuple[str, ...]) -> None:
    """Keep waiting workloads from being started."""
    _act(given, "hold", names, "held")


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.pass_obj
def release(given: Options, /, names: tuple[str, ...]) -> None:
    """Undo a hold."""
    _act(given, "release", names, "released")


@click.command()
@click.argument("priority_class", metavar="CLASS")
@click.argument("names", nargs=-1, required=True)
@click.pass_obj
def priority(given: Options, /, priority_class: str, names: tuple[str, ...]) -> None:
    """Give workloads (names or uids) that wait or run the priority class CLASS."""
    done = f"now of the priority class {priority_class}"
    _act(given, "priority", names, done, priority_class=priority_class)


LIMITS = {
    "priority": "priority_class", "limit": "run_time_limit_s", "gpus": "gpus_per_pod", "pods": "pods_min",
    "pods_max": "pods_max", "not_before": "not_before", "at_once": "at_once",
}  # fmt: skip


@click.command()
@click.argument("name")
@click.option("--priority", help="Priority class.")
@click.option("--limit", type=LengthOfTime(least=0), help="Run time: 6h, 1d12h; 0 for none.")
@click.option(
    "--class", "classes", multiple=True, help="GPU class; several in order of preference."
)
@click.option("--gpus", type=click.IntRange(1, 1024), help="Per pod.")
@click.option("--pods", type=click.IntRange(1, 100_000), help="Of the gang.")
@click.option("--pods-max", type=click.IntRange(1, 100_000), help="Above --pods: elastic.")
@click.option(
    "--not-before", metavar="TIME", help="Such as 2026-12-01T18:00+01:00; 'now' for no time."
)
@click.option("--after", multiple=True, help="Work that it starts after; 'nothing' for none.")
@click.option("--at-once", type=click.IntRange(0), help="Members of its array at once; 0 for all.")
@click.option("--dry-run", is_flag=True, help="Only show what it does to its start.")
@click.pass_obj
def change(
    given: Options,
    /,
    name: str,
    classes: tuple[str, ...],
    after: tuple[str, ...],
    dry_run: bool,
    **said: Any,
) -> None:
    """Change a waiting workload (NAME or uid), and see what that does to its start."""
    body = {LIMITS[key]: value for key, value in said.items() if value is not None}
    if body.get("not_before") == "now":
        body["not_before"] = None
    if classes:
        body["gpu_classes"] = list(classes)
    if after:
        body["after"] = [] if after == ("nothing",) else list(after)
    if not body:
        raise click.UsageError("Say what is to be otherwise.")
    api = given.api()
    at = api.within(f"workloads/{workload(api, name)['uid']}/change")
    found = api.post(f"{at}/preview", body)
    done = None if dry_run else api.post(at, body)
    if printed(given, done or found):
        return
    facts([("As it is", _outcome(found["before"])), ("Changed", _outcome(found["after"]))])
    if found["is_open"]:
        click.echo("When it would start is still being worked out: ask again in a moment.")
    click.echo("Nothing is saved." if dry_run else f"{name} is changed.")


def _outcome(one: Row) -> str:
    if one["starts_now"]:
        return "starts now"
    start = f"{band(one['p50_at'], one['p90_at'])}. " if one["p90_at"] else ""
    return " ".join(filter(None, (start + str(one["sentence"]), one["why_not"])))
