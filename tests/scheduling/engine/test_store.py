"""After an edit a kernel's inner functions come from disk, but for those that the edit changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scheduling.engine.compile.kernel import PLAIN

pytestmark = pytest.mark.skipif(PLAIN, reason="nothing is compiled")

RULES = """
from typing import NamedTuple
import numpy as np
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import as_struct, declare

LIMIT = 5

class Pair(NamedTuple):
    less: int
    more: int

@declare
class Room(NamedTuple):
    free: np.ndarray
    kept: np.ndarray

@inner
def taken(room):
    return room.free[0] - room.kept[0]

@kernel
def left(room):
    return taken(room)

@inner
def span(pair):
    return pair.more - pair.less

@kernel
def spanned(x):
    return span(Pair(x, x + 7))

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
import numpy as np
from numba.core import event

class Compiled(event.Listener):
    def on_start(self, event): pass
    def on_end(self, event): names.append(event.data["dispatcher"].py_func.__name__)

names = []
from edited_rules import *
with event.install_listener("numba:compile", Compiled()):
    print({call})
print(*sorted({{name for name in names if name in globals()}}))
"""
DECIDED = "decide(np.array([1, 2, 7]))"
WRITING = """
import os
from numba.core.caching import IndexDataCacheFile as File
"""
KILLED_AFTER_THE_INDEX = WRITING + "File._save_data = lambda *_: os._exit(0)\n"
NOTHING_WRITTEN = (
    WRITING
    + """
def refused(*_): raise OSError(30, os.strerror(30))
File._open_for_write = refused
"""
)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    assert _decided(folder, RULES) == ("6", "bounded decide grown least")
    (folder / "cache").rename(folder / "as-compiled")
    return folder


@pytest.fixture
def first(once: Path) -> Iterator[Path]:
    """A folder where the rules have been compiled once; Numba's files go by its name, so it is one."""
    shutil.copytree(once / "as-compiled", once / "cache")
    yield once
    shutil.rmtree(once / "cache")


def _decided(folder: Path, rules: str, call: str = DECIDED) -> tuple[str, str]:
    """What a new process decides, and what it compiled for that."""
    (folder / "edited_rules.py").write_text(rules)
    answer, compiled = _run(folder, RUN.format(call=call)).stdout.splitlines()
    return answer, compiled


def _run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(folder), *filter(None, sys.path)))
    env = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-B", "-c", program], env=env, capture_output=True, text=True, check=True
    )


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
    "an argument more": (
        [("by=1, per=2", "by=1, per=2, less=0"), ("by * per", "by * per - less")],
        "6",
        "bounded decide grown",
    ),
    "the name of a leaf": ([("grown", "risen")], "6", "bounded decide risen"),
}


@pytest.mark.parametrize(("edits", "answer", "compiled"), EDITS.values(), ids=EDITS)
def test_rules_edited_what_changed_is_compiled(
    first: Path, edits: list[tuple[str, str]], answer: str, compiled: str
) -> None:
    rules = RULES
    for old, new in edits:
        rules = rules.replace(old, new)
    assert _decided(first, rules) == (answer, compiled)


WHOLE = """
@inner
def whole(x):
    return int(x)

@inner
def further(x):
    return int(x) + 1

@kernel
def both(x):
    return whole(x) + further(x * 1.5)
"""


def test_function_of_numbas_own_is_called_by_code_from_disk_and_by_an_edit(tmp_path: Path) -> None:
    rules = RULES + WHOLE
    assert _decided(tmp_path, rules, "both(2.5)") == ("6", "both further whole")
    edited = rules.replace("int(x) + 1", "int(x) + 2")
    assert _decided(tmp_path, edited, "both(2.5)") == ("7", "both further")


TWICE = """
@kernel
def twice(values):
    return 2 * decide(values)
"""
HELD = """
def holds_intermediate_code():
    (made,) = decide.overloads.values()
    return made.library._shared_module is not None
"""


def test_kernel_from_disk_its_intermediate_code_is_read_for_a_caller_alone(first: Path) -> None:
    rules = RULES + TWICE + HELD
    held = f"({DECIDED}, holds_intermediate_code())"
    assert _decided(first, rules, held) == ("(6, False)", "")
    held = f"({DECIDED.replace('decide', 'twice')}, holds_intermediate_code())"
    assert _decided(first, rules, held) == ("(12, True)", "twice")


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


ORDERS = {
    "a struct": (
        "left(as_struct(Room(free=np.array([9]), kept=np.array([2]))))",
        [
            (
                "    free: np.ndarray\n    kept: np.ndarray",
                "    kept: np.ndarray\n    free: np.ndarray",
            )
        ],
        ("7", "left taken"),
        ("7", "left taken"),
    ),
    "a named tuple": (
        "spanned(1)",
        [("    less: int\n    more: int", "    more: int\n    less: int")],
        ("7", "span spanned"),
        ("-7", "span spanned"),
    ),
}


@pytest.mark.parametrize(("call", "edits", "before", "after"), ORDERS.values(), ids=ORDERS)
def test_fields_in_another_order_who_reads_them_is_compiled(
    tmp_path: Path,
    call: str,
    edits: list[tuple[str, str]],
    before: tuple[str, str],
    after: tuple[str, str],
) -> None:
    assert _decided(tmp_path, RULES, call) == before
    rules = RULES
    for old, new in edits:
        rules = rules.replace(old, new)
    assert _decided(tmp_path, rules, call) == after


def test_two_processes_compile_at_once_both_decide_and_a_third_compiles_nothing(
    tmp_path: Path,
) -> None:
    with ThreadPoolExecutor(2) as at_once:
        both = list(at_once.map(lambda _: _decided(tmp_path, RULES), range(2)))
    assert [answer for answer, _ in both] == ["6", "6"]
    assert _decided(tmp_path, RULES) == ("6", "")


def test_process_killed_between_index_and_machine_code_the_next_takes_no_code_of_the_state_before(
    first: Path,
) -> None:
    edited = RULES.replace("LIMIT = 5", "LIMIT = 3")
    (first / "edited_rules.py").write_text(edited)
    assert _run(first, KILLED_AFTER_THE_INDEX + RUN.format(call=DECIDED)).stdout == ""
    assert _decided(first, edited) == ("4", "bounded decide")


def test_rules_edited_machine_code_of_the_state_before_is_removed(first: Path) -> None:
    _decided(first, RULES.replace("LIMIT = 5", "LIMIT = 3"))
    assert len(list((first / "cache").rglob("*.nbc"))) == 1


def test_folder_takes_nothing_the_plan_is_made_and_a_warning_names_folder_and_remedy(
    tmp_path: Path,
) -> None:
    (tmp_path / "edited_rules.py").write_text(RULES)
    done = _run(tmp_path, NOTHING_WRITTEN + RUN.format(call=DECIDED))
    assert done.stdout.splitlines() == ["6", "bounded decide grown least"]
    assert str(tmp_path / "cache") in done.stderr
    assert "Read-only file system" in done.stderr
    assert "NUMBA_CACHE_DIR" in done.stderr
