"""manage.py snapshot CLUSTER: everything the engine sees of a cluster now, as YAML."""

from __future__ import annotations

from typing import Any

import yaml
from django.core.management.base import CommandError, CommandParser
from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import ApiError
from scheduling.engine import document
from scheduling.management.command import refusal
from scheduling.management.database import DatabaseCommand
from scheduling.models import Cluster
from scheduling.services.snapshot import build as snapshots


class Command(DatabaseCommand):
    help = "Print everything the engine sees of a cluster now, read over its API, as YAML."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", metavar="CLUSTER", help="name of the cluster")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            names = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none yet"
            raise refusal(f"There is no cluster {options['cluster']!r}. Known: {names}.")
        self.note(f"Reading {cluster.name} over its API.")
        try:
            snapshot = snapshots.live(cluster)
        except ApiError as error:
            raise CommandError(f"Cluster {cluster.name} does not answer: {error}") from error
        except ConfigException as error:
            raise refusal(str(error)) from error
        text = yaml.safe_dump(document.dump(snapshot), sort_keys=False, width=120)
        self.stdout.write(text, ending="")
