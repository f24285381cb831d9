"""Requests for quota, boosts, queues and access: ask, follow, decide."""

from __future__ import annotations

from typing import Any

import click

from weir.commands.options import Options, listed, printed, set_options
from weir.printing import facts, moment, number, safe, table

NUMBER = click.argument("number", type=int)


@click.group()
def request() -> None:
    """Ask for quota, a boost, a queue or access, and decide what others ask for."""


@request.command("ls")
@click.option("--state", default="open", show_default=True,
              type=click.Choice(["open", "decide", "mine", "ended", "all"]))  # fmt: skip
@click.pass_obj
def ls(given: Options, /, state: str) -> None:
    """Requests that you may see, the last moved first."""
    api = given.api()
    rows = api.pages(api.within("requests"), state=state)
    columns = [
        ("NO.", lambda row: row["id"]),
        ("WHAT", lambda row: row["title"]),
        ("BY", lambda row: row["author"]),
        ("STATE", lambda row: row["state"].replace("_", " ")),
        ("SINCE", lambda row: moment(row["since"])),
        ("YOU MAY", lambda row: ", ".join(row["may"]).replace("_", " ")),
    ]
    listed(given, rows, columns, "There is no such request.")


@request.command("show")
@NUMBER
@click.pass_obj
def show(given: Options, /, number: int) -> None:
    """One request with its life and its comments."""
    api = given.api()
    _tell(given, api.get(api.within(f"requests/{number}")))


@request.command("new")
@click.argument("kind", type=click.Choice(["quota", "boost", "queue", "access"]))
@click.option("--queue", required=True, help="That gets it; of a new queue the one above.")
@click.option("--class", "gpu_class", help="GPU class.")
@click.option("--priority", "priority_class", help="Priority class, of access.")
@click.option("--gpus", type=click.FloatRange(min=0, min_open=True), help="How many more.")
@click.option("--figure", type=click.Choice(["nominal", "borrowing_limit"]))
@click.option("--giver", help="A queue beside it that gives.")
@click.option("--name", help="Of a new queue.")
@click.option("--from", "starts_at", help="An instant; else with the approval.")
@click.option("--until", "ends_at", help="An instant; else for good.")
@click.option("--reason", required=True)
@click.option("--draft", is_flag=True, help="Keep it to yourself; submit it later.")
@click.pass_obj
def new(given: Options, /, **options: Any) -> None:
    """Ask. It is submitted at once unless it is a draft.

    \b
    weir request new boost --queue speech --class h100-80gb --gpus 8 \\
        --until 2026-12-01T00:00:00Z --reason "Paper deadline"
    """
    api = given.api()
    _tell(given, api.post(api.within("requests"), set_options(options)))


@request.command("preview")
@NUMBER
@click.option(
    "--gpus", type=click.FloatRange(min=0, min_open=True), help="As if so many were granted."
)
@click.pass_obj
def preview(given: Options, /, number: int, gpus: float | None) -> None:
    """What it would do, planned now."""
    api = given.api()
    body = api.get(api.within(f"requests/{number}/preview"), gpus=gpus)
    if printed(given, body):
        return
    columns = [
        ("WORKLOAD", lambda row: row["name"] or "one of another team"),
        ("QUEUE", lambda row: row["queue"]),
        ("THEN", lambda row: row["kind"]),
        ("WHY", lambda row: row["sentence"]),
    ]
    table(body.get("lines", []), columns, body.get("fault") or "Nobody starts or leaves now.")


@request.command("comment")
@NUMBER
@click.argument("text")
@click.pass_obj
def comment(given: Options, /, number: int, text: str) -> None:
    """Say something to whoever sees it."""
    api = given.api()
    made = api.post(api.within(f"requests/{number}/comments"), {"text": text})
    if not printed(given, made):
        click.echo("Said.")


def _verb(name: str, text: str, *, note: str = "") -> None:
    """A command that does one thing to one request. ``note``: ``may`` or ``must`` be given."""

    def act(given: Options, /, number: int, **typed: Any) -> None:
        api = given.api()
        _tell(given, api.post(api.within(f"requests/{number}/{name}"), set_options(typed)))

    made = click.pass_obj(act)
    if name == "approve":
        made = click.option("--gpus", type=float, help="Grant less.")(made)
        made = click.option("--until", "ends_at", help="Grant it for less long.")(made)
    if name in ("approve", "forward"):
        made = click.option("--giver", help="A queue beside it that gives.")(made)
    if note:
        made = click.option("--note", required=note == "must", help="Why; both sides read it.")(
            made
        )
    request.command(name, help=text)(NUMBER(made))


_verb("submit", "Hand your draft to whoever decides.")
_verb("forward", "Hand it to an approver, with a word on it.", note="may")
_verb("approve", "Grant it, or less of it.", note="must")
_verb("ask-changes", "Send it back to its author.", note="must")
_verb("reject", "Refuse it.", note="must")
_verb("withdraw", "Take your own back.")
_verb("revoke", "Take back what was granted, from now on.", note="must")
_verb("renew", "Ask for the same again, from where it ends.")


def _tell(given: Options, row: dict[str, Any]) -> None:
    if printed(given, row):
        return
    click.echo(safe(f"{row['id']}: {row['title']}"))
    granted = row["granted_gpus"]
    facts(
        [
            ("State", row["state"].replace("_", " ")),
            ("By", row["author"]),
            ("Why", row["reason"]),
            ("Until", moment(row["ends_at"]) if row["ends_at"] else None),
            ("Granted", number(granted) if granted else None),
            ("Decided", row["decision"]),
            ("Outcome", row["outcome"]),
            ("You may", ", ".join(row["may"]).replace("_", " ")),
        ]
    )
    for step in row["steps"]:
        click.echo(
            safe(
                f"{moment(step['at'])}  {step['verb']}  {step['by'] or 'Weir'}  {step['note']}"
            ).rstrip()
        )
    for said in row["comments"]:
        click.echo(safe(f"{moment(said['at'])}  {said['by']}: {said['text']}"))
