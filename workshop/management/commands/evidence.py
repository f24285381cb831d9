"""Measures what docs/evidence.md claims and writes its tables anew."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings

from scheduling.management.command import WeirCommand
from workshop.benches.evidence.claims import CLAIMS, HERE
from workshop.benches.evidence.comparing import changes, figures_of, in_words
from workshop.benches.evidence.rendering import PageError, rendered
from workshop.benches.evidence.running import in_process, reports_in, run_all

FOLDER = settings.BASE_DIR / "var" / "evidence"
PAGE = settings.BASE_DIR / "docs" / "evidence.md"


class Command(WeirCommand):
    help = (
        "Runs the benches behind docs/evidence.md, keeps their reports, writes the tables anew and "
        "tells what got worse."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "names", nargs="*", choices=[*CLAIMS, []], metavar="NAME",
            help="only these; those on a control plane or PostgreSQL run only by name",
        )  # fmt: skip
        parser.add_argument("--traces", type=Path, default=settings.WEIR_TRACES, metavar="DIR")
        parser.add_argument("--tables", action="store_true", help="run nothing, write the tables")

    def handle(self, *args: Any, **options: Any) -> None:
        then = figures_of(PAGE.read_text())
        claims = [CLAIMS[name] for name in options["names"]] or list(HERE)
        failed = 0
        if not options["tables"]:
            run = in_process(settings.BASE_DIR / "manage.py")
            failed = run_all(claims, options["traces"], FOLDER, self.note, run)
        try:
            PAGE.write_text(rendered(PAGE.read_text(), reports_in(FOLDER)))
        except PageError as error:
            self.refuse([str(error)])
        ran = {claim.bench for claim in claims}
        reports = {name: report for name, report in reports_in(FOLDER).items() if name in ran}
        for line in in_words(list(changes(then, reports))):
            self.note(line)
        if failed:
            self.refuse([f"{failed} of {len(claims)} benches failed; the page says which."])
