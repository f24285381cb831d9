"""The way from a clone to the first page, as it is measured: on a demo that only says what one says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workshop.benches.worker import first_run
from workshop.benches.worker.overview import NoDemoError

MAKEFILE = """
setup: ; @{setup}
demo: ; @python3 demo.py $(PORT)
"""
DEMO = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status} if self.path.startswith("/c/") else 200)
        self.end_headers()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(302)
        self.end_headers()
    def log_message(self, *_): pass

port = int(sys.argv[1])
server = HTTPServer(("127.0.0.1", port), Pages)
for line in {lines}:
    print(line, flush=True)
print(f"Weir is at http://127.0.0.1:{{port}}/", flush=True)
server.serve_forever()
"""
LINES = ["Making the database", "First start: seeding", "Living 14 days of it"]


@pytest.fixture
def clone(tmp_path: Path):
    def made(*, setup: str = "true", status: int = 200, lines: list[str] = LINES) -> Path:
        (tmp_path / "Makefile").write_text(MAKEFILE.format(setup=setup))
        (tmp_path / "demo.py").write_text(DEMO.format(status=status, lines=lines))
        return tmp_path

    return made


def test_each_phase_that_the_demo_tells_of_is_measured(clone) -> None:
    found = first_run._visited(clone(), "", print)
    names = {name.rpartition("_cpu_s")[0] for name in found if name.endswith("_cpu_s")}
    assert names == {"start", "migrate", "seed", "live", "page"}
    assert found["page_peak_mib"] > 1
    assert all(value >= 0 for value in found.values())


def test_second_start_tells_of_less(clone) -> None:
    found = first_run._visited(clone(lines=[]), "second_", print)
    assert set(found) == {
        f"second_{name}_{unit}"
        for name in ("start", "page")
        for unit in ("cpu_s", "wall_s", "peak_mib")
    }


def test_step_of_setup_is_measured_with_all_that_it_starts(clone) -> None:
    busy = "python3 -c 'sum(range(3000000))'"
    found = first_run._made(clone(setup=busy), "compile", "setup")
    assert found["compile_cpu_s"] > 0
    assert found["compile_peak_mib"] > 1


def test_step_that_fails_says_what_it_said_last(clone) -> None:
    with pytest.raises(NoDemoError, match="no room left"):
        first_run._made(clone(setup="echo no room left; exit 3"), "compile", "setup")


def test_page_that_fails_ends_the_measurement_and_the_demo(clone) -> None:
    with pytest.raises(NoDemoError, match="could not be visited"):
        first_run._visited(clone(status=500), "", print)


def test_settings_of_ours_are_not_a_newcomers(monkeypatch) -> None:
    monkeypatch.setenv("WEIR_DEMO_FOLDER", "var/other")
    monkeypatch.setenv("DATABASE_URL", "sqlite:///other")
    assert first_run._environment().keys() == os.environ.keys() - {
        name for name in os.environ if name.startswith(("WEIR_", "DATABASE_URL", "DJANGO_"))
    }
