"""After an edit a kernel's inner functions come from disk, but for those that the edit changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduling.engine.compile.kernel import PLAIN

pytestmark = pytest.mark.skipif(PLAIN, reason="nothing is compiled")

RULES = """
import numpy as np
from scheduling.engine.compile.kernel import inner, kernel

LIMIT = 5

@inner
def least(values):
    return np.sort(values)[0]

@inner
def grown(x, by=1, per=2):
    return x + by * per

@inner
def bounded(x):
    return min(grown(x, per=3), LIMIT)

@kernel
def decide(values):
    return least(values) + bounded(values[1])
"""

RUN = """
import sys
import numpy as np
from numba.core import event

class Compiled(event.Listener):
    def on_start(self, event): pass
    def on_end(self, event): names.append(event.data["dispatcher"].py_func.__name__)

names = []
import edited_rules
with event.install_listener("numba:compile", Compiled()):
    print(edited_rules.decide(np.array([1, 2, 7])))
print(*sorted({"least", "grown", "bounded", "decide"} & set(names)))
"""


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A folder where the rules have been compiled once."""
    assert _decided(tmp_path, RULES) == ("6", "bounded decide grown least")
    return tmp_path


def _decided(folder: Path, rules: str) -> tuple[str, str]:
    """What a new process decides, and what it compiled for that."""
    (folder / "edited_rules.py").write_text(rules)
    path = os.pathsep.join((str(folder), *filter(None, sys.path)))
    env = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", RUN], env=env, capture_output=True, text=True, check=True
    )
    answer, compiled = done.stdout.splitlines()
    return answer, compiled


EDITS = {
    "nothing": ([], "6", ""),
    "a constant": ([("LIMIT = 5", "LIMIT = 3")], "4", "bounded decide"),
    "a leaf": ([("x + by * per", "x - by * per")], "0", "decide grown"),
    "a leaf that returns another type": (
        [("x + by * per", "x + by * per / 2")],
        "4.5",
        "bounded decide grown",
    ),
    "the order of arguments": ([("by=1, per=2", "per=2, by=1")], "6", "bounded decide grown"),
    "a default": ([("by=1", "by=-1")], "0", "bounded decide grown"),
    "the name of a leaf": ([("grown", "risen")], "6", "bounded decide"),
}


@pytest.mark.parametrize(("edits", "answer", "compiled"), EDITS.values(), ids=EDITS)
def test_rules_edited_what_changed_is_compiled(
    first: Path, edits: list[tuple[str, str]], answer: str, compiled: str
) -> None:
    rules = RULES
    for old, new in edits:
        rules = rules.replace(old, new)
    assert _decided(first, rules) == (answer, compiled)


def test_kept_code_damaged_all_is_compiled(first: Path) -> None:
    for kept in (first / "cache").rglob("*.parts"):
        kept.write_bytes(kept.read_bytes()[:-100])
    assert _decided(first, RULES.replace("LIMIT = 5", "LIMIT = 3")) == (
        "4",
        "bounded decide grown least",
    )


@pytest.mark.parametrize("damaged", ["*.nbi", "*.nbc"])
def test_machine_code_damaged_it_is_made_again_from_what_is_kept(first: Path, damaged: str) -> None:
    for made in (first / "cache").rglob(damaged):
        made.write_bytes(made.read_bytes()[:-100])
    assert _decided(first, RULES) == ("6", "decide")
    assert _decided(first, RULES) == ("6", "")
