"""Sign in and out, and who one is."""

from __future__ import annotations

import sys

import click

from weir import account
from weir.api import Api
from weir.commands.options import Options, printed
from weir.printing import ago, facts, moment, table


@click.command()
@click.argument("url")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option("--cluster", default="", metavar="NAME", help="The cluster that commands mean.")
@click.option("--ca-file", type=click.Path(exists=True, dir_okay=False, resolve_path=True),
              help="Authority of the portal's certificate.")  # fmt: skip
def login(url: str, token_stdin: bool, cluster: str, ca_file: str | None) -> None:
    """Keep the address of the portal and a token, which you make on your account's page there."""
    server = account.checked(url)
    if token_stdin:
        token = sys.stdin.readline().strip()
    else:
        click.echo(f"Make a token on {server}/account/.", err=True)
        token = click.prompt("Token", hide_input=True, err=True).strip()
    found = account.Account(server, token, cluster, ca_file or "")
    api = Api(found)
    me = api.get("me")
    if cluster:
        api.get(api.within())
    account.keep(found)
    click.echo(f"Signed in to {server} as {me['username']}.", err=True)


@click.command()
def logout() -> None:
    """Forget the token. It stays valid: revoke it on your account's page."""
    known = account.forget()
    click.echo("Signed out." if known else "Nobody was signed in.", err=True)


@click.command()
@click.pass_obj
def whoami(given: Options) -> None:
    """The signed-in person: teams and personas."""
    me = given.api().get("me")
    if printed(given, me):
        return
    facts([("User", me["username"]), ("Operator", me["operator"])])
    rows = me["memberships"]
    columns = [("TEAM", lambda row: row["team"]), ("PERSONA", lambda row: row["persona"])]
    table(rows, columns, "You are in no team.")


@click.command()
@click.pass_obj
def clusters(given: Options) -> None:
    """Clusters that you may see."""
    rows = given.api().pages("clusters")
    if printed(given, rows):
        return
    table(
        rows,
        [
            ("CLUSTER", lambda row: row["name"]),
            ("MODE", lambda row: row["mode"]),
            ("ITS TIME", lambda row: moment(row["now"])),
            ("LAST CYCLE", lambda row: ago(row["planned_at"])),
        ],
        "You may see no cluster.",
    )
