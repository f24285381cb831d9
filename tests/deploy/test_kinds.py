"""What the chart has for operators fits the types that their own projects publish, and nothing is beside."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.deploy.charts import SETS, Json, rendered
from tests.deploy.test_chart import OWN_KINDS, every_set

pytestmark = pytest.mark.deploy
SOURCE = Path(__file__).parent / "kinds"


@cache
def judge() -> Path:
    """The program that reads objects into those types, built where it is not there yet."""
    sources = b"".join((SOURCE / name).read_bytes() for name in ("go.sum", "main.go"))
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    made = home / "weir/tools" / f"kinds.{hashlib.sha256(sources).hexdigest()[:16]}"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        making = made.with_suffix(f".{os.getpid()}")
        go = shutil.which("go") or "/usr/local/go/bin/go"
        subprocess.run([go, "build", "-trimpath", "-o", making, "."], cwd=SOURCE, check=True)
        making.replace(made)
    return made


def faults(objects: list[Json]) -> str:
    text = "".join(f"{json.dumps(one)}\n" for one in objects)
    done = subprocess.run([judge()], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stdout == ""), done.stderr
    return done.stdout


@every_set
def test_object_of_an_operators_kind_has_the_fields_of_its_type_alone(name: str) -> None:
    assert faults([one for one in rendered(name) if one["kind"] in OWN_KINDS]) == ""


def test_every_operators_kind_is_in_some_set() -> None:
    assert {one["kind"] for name in SETS for one in rendered(name)} >= set(OWN_KINDS)


@pytest.mark.parametrize("kind", OWN_KINDS)
def test_field_that_a_type_lacks_is_found(kind: str) -> None:
    (found, *_) = (o for name in SETS for o in rendered(name) if o["kind"] == kind)

    assert 'unknown field "spek"' in faults([{**found, "spek": {}}])
