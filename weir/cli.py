"""``weir``: what a person does in the portal, in a terminal."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click
from click.shell_completion import get_completion_class

from weir import account
from weir.api import Api
from weir.commands import (
    importing,
    loans,
    login,
    logs,
    quotas,
    reports,
    requests,
    studies,
    workloads,
)
from weir.printing import JSON, TABLE, YAML


@dataclass
class Context:
    """What every command is given. The account is read when a command first needs it."""

    cluster: str
    form: str

    def api(self) -> Api:
        credentials = account.load()
        return Api(replace(credentials, cluster=self.cluster) if self.cluster else credentials)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--cluster", default="", metavar="NAME", help="Which cluster; else the one of weir login."
)
@click.option(
    "-o", "--output", "form", type=click.Choice([TABLE, JSON, YAML]), default=TABLE,
    help="Tables for people; json and yaml are what the API answers.",
)  # fmt: skip
@click.version_option(package_name="weir", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context, cluster: str, form: str) -> None:
    """Share GPUs: submit work, see why it waits, ask for quota and give it.

    \b
    Exit codes: 0 done, 1 refused, 2 not understood, 3 not signed in,
    4 there is no such thing (or not for you), 5 the portal does not answer.
    """
    ctx.obj = Context(cluster, form)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion of a shell: eval "$(weir completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choices are those that click knows
    click.echo(kind(main, {}, "weir", "_WEIR_COMPLETE").source())


for command in (
    login.login, login.logout, login.whoami, login.clusters,
    workloads.queues, workloads.submit, workloads.ls, workloads.why, workloads.sooner,
    workloads.eta, logs.logs, workloads.cancel, workloads.hold, workloads.release,
    workloads.priority, workloads.change,
    quotas.quota, importing.importing, loans.loan, requests.request, studies.study,
    reports.report,
):  # fmt: skip
    main.add_command(command)
