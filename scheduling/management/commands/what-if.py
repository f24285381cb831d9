"""Asks what changes would do to a cluster, and prints the answer."""
# ruff: noqa: N999 - the name of the file is that of the command

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from scheduling.cluster.connection.client import ApiError
from scheduling.engine.model import SnapshotError
from scheduling.files.arguments import whole
from scheduling.management.command import refusal
from scheduling.management.database import DatabaseCommand
from scheduling.models import Cluster, Study
from scheduling.services.errors import ServiceError
from scheduling.services.studies import running
from scheduling.services.studies.what_if import MOST_DAYS, ask


class Command(DatabaseCommand):
    help = (
        "Plans the live cluster with and without changes, and lives its last days again with them."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("cluster", metavar="CLUSTER")
        parser.add_argument("changes", type=Path, metavar="FILE", help="the changes, a JSON list")
        parser.add_argument("--days", type=whole(1, MOST_DAYS), default=7)
        parser.add_argument("--now", action="store_true", help="live no past again")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            raise refusal(f"There is no cluster {options['cluster']}.")
        try:
            question = ask(
                cluster=cluster,
                document=_read(options["changes"]),
                author="command",
                days=options["days"],
                replays=not options["now"],
            )
        except (ServiceError, ApiError, SnapshotError) as error:
            raise refusal(str(error)) from error
        running.work(question.pk)
        question.refresh_from_db()
        if question.fault:
            raise refusal(question.fault)
        if options["as_json"]:
            self.stdout.write(json.dumps(question.answer, indent=2))
            return
        for line in lines(question):
            self.say(line)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(f"{path}: cannot be read ({error}).") from error
    except ValueError as error:
        raise refusal(f"{path}: found no JSON, expected a list of changes ({error}).") from error


def lines(question: Study) -> list[str]:
    answer = question.answer
    output = [
        question.name,
        f"  at once: {answer['started']} start, {answer['evicted']} leave,"
        f" {answer['lost_gpu_hours']:g} GPU-hours lost",
    ]
    output += [
        f"    {'starts' if line['starts'] else 'leaves'}: {line['workload']}: {line['sentence']}"
        for line in answer["lines"]
        if line["starts"] or line["leaves"]
    ]
    for row in answer.get("replay", {}).get("queues", ()):
        p90 = row["p90_s"]
        name = row["queue"] or "all queues"
        output.append(
            f"  {name:<24} P90 wait {p90['before']:>10,.0f} s → {p90['after']:>10,.0f} s {p90['verdict']}"
        )
    return output
