"""kubectl's lines of README and the manual, typed one after the other at a real control plane."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.manual import PAGES, ROOT, typed
from tests.scheduling.control_plane import control_plane
from tests.test_manual import proof
from workshop.testbed.control_plane.plane import ControlPlane

pytestmark = pytest.mark.deploy
ORDER = ("install", "adopt", "repair", "README")
READ_ONLY = re.compile(
    r"rollout status|port-forward|describe job$|config view|--server ADDRESS|--cascade=orphan$"
)
"""What waits for pods, never ends, or is a part of a command: its verb and options are read and no more."""
HERE = "tests/deploy/test_typed.py"


def lines() -> list[str]:
    pages = {page.stem: page for page in PAGES}
    found = [line for name in ORDER for line in typed(pages[name])]
    return [line for line in dict.fromkeys(found) if proof(line)[0] == HERE]


def run(line: str, folder: Path, plane: ControlPlane) -> None:
    environment = {
        **os.environ,
        "KUBECONFIG": plane.access.kubeconfig,
        "PATH": f"{Path(plane._binaries.path('kubectl')).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-ec", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_every_page_with_commands_of_kubectl_is_typed() -> None:
    asked = {p.stem for p in PAGES if any(proof(line)[0] == HERE for line in typed(p))}

    assert asked <= set(ORDER)


@pytest.fixture
def kubernetes() -> Iterator[ControlPlane]:
    """A cluster of its own, on which nothing of Weir stands."""
    with control_plane("typed") as plane:
        yield plane


def test_kubectl_takes_every_line_in_the_order_of_a_new_installation(
    kubernetes: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "docker").symlink_to(ROOT / "docker")
    values = tmp_path / "values.yaml"
    values.write_text("registry: registry.example.org\nsecret: {existing: weir-secrets}\n")
    subprocess.run(
        [ROOT / "deploy/tools/manifests.sh", values, tmp_path / "var/manifests"], check=True
    )
    for namespace in ("vision", "speech"):
        run(f"kubectl create namespace {namespace}", tmp_path, kubernetes)

    for line in lines():
        run(f"{line} --help" if READ_ONLY.search(line) else line, tmp_path, kubernetes)

    assert (tmp_path / "token").read_text().count(".") == 2, "a token of three parts"
