"""manage.py export-trace CLUSTER FILE: finished work of the ledger as a trace that ``replay`` reads."""
# ruff: noqa: N999 - the name of the file is that of the command

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from scheduling.engine.reasons.wording import plural
from scheduling.files.arguments import instant
from scheduling.management.command import refusal
from scheduling.management.database import DatabaseCommand
from scheduling.models import Cluster
from scheduling.services.ledger.trace_export import spells_of
from scheduling.simulation.traces.ledger import write_ledger

ENDING = ".ledger.csv"


class Command(DatabaseCommand):
    help = "Write the finished work of a cluster to a file that ends in .ledger.csv, for replays."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", metavar="CLUSTER", help="name of the cluster")
        parser.add_argument("file", metavar="FILE", type=Path, help=f"a name that ends in {ENDING}")
        parser.add_argument("--from", dest="begin", type=instant, help="first submit time (UTC)")
        parser.add_argument("--to", dest="end", type=instant, help="last submit time (UTC)")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            names = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none yet"
            raise refusal(f"There is no cluster {options['cluster']!r}. Known: {names}.")
        file: Path = options["file"]
        if not file.name.endswith(ENDING):
            raise refusal(
                f"{file}: expected a name that ends in {ENDING}, by which replay knows it."
            )
        spells = spells_of(cluster, options["begin"], options["end"])
        try:
            with file.open("x", encoding="utf-8", newline="") as to:
                count = write_ledger(spells, to)
        except FileExistsError as error:
            raise refusal(f"{file} is there already: name another, or take it away.") from error
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        self.say(f"{plural(count, 'workload')} of {cluster.name} in {file}.")
