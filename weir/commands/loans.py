"""Loans between queues: offer, ask, consent, recall, give back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from weir.commands.options import Options, listed, printed, set_options
from weir.printing import duration, facts, moment, number, safe

NUMBER = click.argument("number", type=int)
GPUS = click.FloatRange(min=0, min_open=True)


@click.group()
def loan() -> None:
    """Lend nominal quota to another queue until a day, or borrow it."""


@loan.command("ls")
@click.option(
    "--state", default="all", show_default=True,
    type=click.Choice(["waiting", "running", "ended", "all"]),
)  # fmt: skip
@click.pass_obj
def ls(given: Options, /, state: str) -> None:
    """Loans of the queues that you lead, the last moved first."""
    api = given.api()
    rows = api.pages(api.within("loans"), state=state)
    columns = [
        ("NO.", lambda row: row["id"]),
        ("LENDER", lambda row: row["lender"]),
        ("BORROWER", lambda row: row["borrower"]),
        ("GPUS", lambda row: f"{number(row['gpus'])} {row['gpu_class']}"),
        ("UNTIL", lambda row: moment(row["term_ends_at"] or row["ends_at"])),
        ("STATE", lambda row: row["state"]),
        ("YOU MAY", lambda row: ", ".join(row["may"]).replace("_", " ")),
    ]
    listed(given, rows, columns, "There is no such loan.")


@loan.command("offers")
@click.pass_obj
def offers(given: Options, /) -> None:
    """Quota that is offered to all."""
    api = given.api()
    rows = api.pages(api.within("loan-offers"))
    columns = [
        ("NO.", lambda row: row["id"]),
        ("LENDER", lambda row: row["lender"]),
        (
            "LEFT",
            lambda row: f"{number(row['left_gpus'])} of {number(row['gpus'])} {row['gpu_class']}",
        ),
        ("UNTIL", lambda row: moment(row["ends_at"])),
        ("NOTICE", lambda row: duration(row["notice_h"] * 3600)),
    ]
    listed(given, rows, columns, "Nobody offers quota now.")


def _terms(command: Any) -> Any:
    options = (
        click.option("--class", "gpu_class", required=True, help="GPU class."),
        click.option("--gpus", type=GPUS, required=True),
        click.option("--until", required=True, help="An instant, such as 2026-12-18T18:00:00Z."),
        click.option("--notice", "notice_h", type=int, help="Of a recall, hours."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@loan.command("ask")
@click.option("--for", "borrower", required=True, help="Your queue, that borrows.")
@click.option("--of", "lender", required=True, help="The queue that lends.")
@click.option("--offer", type=int, help="Of an offer to all; see `loan offers`.")
@_terms
@click.option("--reason", required=True)
@click.pass_obj
def ask(given: Options, /, **options: Any) -> None:
    """Ask for a loan; it runs once its lender consents."""
    _propose(given, "ask", options)


@loan.command("lend")
@click.option("--of", "lender", required=True, help="Your queue, that lends.")
@click.option("--to", "borrower", required=True, help="The queue that borrows.")
@_terms
@click.option("--reason", required=True)
@click.pass_obj
def lend(given: Options, /, **options: Any) -> None:
    """Offer a loan to a queue; it runs once its lead consents."""
    _propose(given, "lend", options)


@loan.command("offer")
@click.option("--of", "lender", required=True, help="Your queue, that lends.")
@_terms
@click.pass_obj
def offer(given: Options, /, **options: Any) -> None:
    """Offer idle quota to all; you consent to each loan of it."""
    api = given.api()
    made = api.post(api.within("loan-offers"), set_options(options))
    if not printed(given, made):
        click.echo(f"Offer {made['id']} stands.")


@loan.command("withdraw-offer")
@NUMBER
@click.pass_obj
def withdraw_offer(given: Options, /, number: int) -> None:
    """Offer it no more; what was lent of it runs on."""
    api = given.api()
    api.delete(api.within(f"loan-offers/{number}"))
    click.echo("Withdrawn.")


def _propose(given: Options, kind: str, options: Mapping[str, Any]) -> None:
    api = given.api()
    _tell(given, api.post(api.within("loans"), {"kind": kind, **set_options(options)}))


def _verb(name: str, text: str) -> None:
    """A command that does one thing to one loan."""

    def act(given: Options, /, number: int, **typed: Any) -> None:
        api = given.api()
        _tell(given, api.post(api.within(f"loans/{number}/{name}"), set_options(typed)))

    made = click.pass_obj(act)
    if name == "consent":
        made = click.option("--gpus", type=GPUS, help="Lend less.")(made)
    if name in ("decline", "recall"):
        made = click.option("--note", help="Why.")(made)
    loan.command(name, help=text)(NUMBER(made))


_verb("consent", "Let it run.")
_verb("decline", "Say no.")
_verb("withdraw", "Take back what you asked for or offered.")
_verb("recall", "End it once its notice is over.")
_verb("undo", "Take a recall back.")
_verb("give-back", "End it now: your queue needs it no more.")


def _tell(given: Options, body: Mapping[str, Any]) -> None:
    if printed(given, body):
        return
    facts(
        [
            ("Loan", body["id"]),
            ("State", body["state"]),
            ("From, to", safe(f"{body['lender']} → {body['borrower']}")),
            ("What", f"{number(body['gpus'])} {body['gpu_class']}"),
            ("Until", moment(body["term_ends_at"] or body["ends_at"])),
            ("You may", ", ".join(body["may"]).replace("_", " ") or "–"),
        ]
    )
