"""Files and command lines made to hurt whoever reads them: each ends with exit code 2 and says where.

They run in a process whose memory is bounded and whose time is measured (attacker.py).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings

from scheduling.cluster.connection.kubeconfig import COMMANDS_ALLOWED, configuration_from

MOST_S = 5.0
"""CPU time of one attack."""
MOST_RESIDENT_MIB = 512
HEAD = "now: 2026-01-05T10:00:00Z\n"
ESCAPES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    cpu_s: float
    resident_mib: float


class Attacker:
    """The process in which attacks are run, with ``database`` for those that get so far."""

    def __init__(self, database: Path) -> None:
        self._environment = {
            **os.environ,
            "NUMBA_DISABLE_JIT": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "DATABASE_URL": f"sqlite:///{database}",
        }
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "tests/security/attacker.py"],
            cwd=settings.BASE_DIR,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> Ended:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            died = self._process.wait()
            self._process = self._start()
            raise AssertionError(f"{words} ended the process with {died}")
        return Ended(**json.loads(answer))

    def refused(self, *words: str) -> str:
        """The one line that the command refused with: code 2, in time, in memory, nothing printed."""
        ended = self.run(*words)
        assert "Traceback" not in ended.err, ended.err
        assert (ended.code, ended.out) == (2, ""), ended.err[-2000:]
        assert ended.cpu_s < MOST_S
        assert ended.resident_mib < MOST_RESIDENT_MIB
        (line,) = ended.err.splitlines()
        assert not ESCAPES.search(line)
        return line

    def stop(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def attacker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacker]:
    started = Attacker(tmp_path_factory.mktemp("attacks") / "weir.sqlite3")
    yield started
    started.stop()


def doubled(levels: int) -> str:
    """Lists of lists of aliases: 9 times as many values with each level."""
    rows = ["a0: &a0 [x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(rows) + "\n"


NESTED = "found lists inside lists without end, expected at most 64 levels"
BOMB = "found aliases of aliases without end"
FILES = {
    "an alias bomb": (doubled(30) + HEAD, f":7: {BOMB}"),
    "an alias bomb as workloads": (HEAD + doubled(30) + "workloads: [*a29, *a29]\n", f":8: {BOMB}"),
    "an alias of itself": (HEAD + "nodes: &a [*a]\n", ":2: found *a inside itself"),
    "100,000 opening brackets": ("[" * 100_000, f":1: {NESTED}"),
    "100,000 brackets in a value": (
        HEAD + f"nodes: {'[' * 100_000}{']' * 100_000}",
        f":2: {NESTED}",
    ),
    "100,000 brackets, one a line": ("[\n" * 100_000, f":66: {NESTED}"),
    "100,000 braces": ('{"a":' * 100_000 + "1" + "}" * 100_000, f":1: {NESTED}"),
    "100,000 dashes": ("- " * 100_000 + "x", f":1: {NESTED}"),
    "100,000 keys of keys": ("? " * 100_000 + "x", ":1: found lists or keys as a key"),
    "depth 2,000 by indentation": (
        "".join(" " * i + "a:\n" for i in range(2000)),
        f":65: {NESTED}",
    ),
    "depth 2,000 in JSON": ('{"a":' * 2000 + "1" + "}" * 2000, f":1: {NESTED}"),
    "half a million keys": (
        "{" + ",".join(f"k{i}: 1" for i in range(500_000)) + "}",
        ":1: found more keys than that, expected at most 100,000",
    ),
    "a number of 200,000 digits": (
        f"now: {'9' * 200_000}\n",
        ":1: found a number of 200000 characters",
    ),
    "a number to base 60": (
        f"now: {':'.join(['59'] * 50_000)}\n",
        ":1: found a number of 149999 characters",
    ),
    "a Python object": (
        HEAD + "nodes: !!python/object/apply:os.system ['id']\n",
        ":2: found the tag tag:yaml.org,2002:python/object/apply:os.system",
    ),
    "bytes": (HEAD + "nodes: !!binary aGk=\n", ":2: found the tag tag:yaml.org,2002:binary"),
    "a list as a key": (HEAD + "? [1, 2]\n: 3\n", ":2: found lists or keys as a key"),
    "a key twice": (HEAD + "nodes: []\nnodes: []\n", ":3: found key 'nodes' twice"),
    "a NUL": (HEAD + "queues: a\0b\n", r":2: found the character '\x00', expected printable text"),
    "a terminal's escape": (
        HEAD + "queues: \x1b[31mred\n",
        r":2: found the character '\x1b', expected printable text",
    ),
    "an unpaired surrogate": ('{"now": "\\ud800"}', ":1: found invalid Unicode character escape"),
    "two documents": (HEAD + "---\n" + HEAD, ":2: found another document"),
    "a list": ("[1, 2]", ":1: document: found [1, 2], expected keys with values"),
    "nothing": ("", ":1: document: found nothing, expected keys with values"),
}


@pytest.mark.parametrize("attack", FILES)
def test_file_of_an_attack_is_refused_in_one_line_with_the_lines_number(
    attacker: Attacker, tmp_path: Path, attack: str
) -> None:
    text, said = FILES[attack]
    file = tmp_path / "now.yaml"
    file.write_text(text)

    line = attacker.refused("manage.py", "plan", str(file))

    assert line.startswith(f"{file}{said}")
    assert "; " in line, "a remedy"


def test_file_without_end_is_refused(attacker: Attacker, tmp_path: Path) -> None:
    assert "/dev/zero: found more than that, expected at most 64 MiB" in attacker.refused(
        "manage.py", "plan", "/dev/zero"
    )


def test_file_that_is_no_text_is_refused_at_its_line(attacker: Attacker, tmp_path: Path) -> None:
    file = tmp_path / "now.yaml"
    file.write_bytes(HEAD.encode() + b"queues: \xff\n")

    assert f"{file}:2: found a byte 0xff that is no text, expected UTF-8" in attacker.refused(
        "manage.py", "plan", str(file)
    )


def test_quarter_of_a_million_broken_rows_are_told_of_by_the_first(
    attacker: Attacker, tmp_path: Path
) -> None:
    file = tmp_path / "now.yaml"
    file.write_text(HEAD + "workloads: [" + "1," * 250_000 + "]\n")

    ended = attacker.run("manage.py", "plan", str(file))

    assert ended.code == 2
    assert ended.cpu_s < MOST_S
    assert len(ended.err.splitlines()) == 20
    assert ended.err.startswith(f"{file}:2: workloads[0]: found 1, expected keys with values")


SNAPSHOT = """now: 2026-01-05T10:00:00Z
gpu_classes: [{name: h100}]
nodes:
  - {name: n1, gpu_class: h100, gpus: 8}
queues:
  - {name: research, quotas: {h100: {nominal: 8}}}
priority_classes: [{name: train, value: 50}]
workloads:
  - {name: w1, queue: research, priority_class: train, gpus: 4, gpu_classes: [h100],
     submitted: 2026-01-05T09:00:00Z, state: running, started: 2026-01-05T09:10:00Z,
     placement: {n1: 1}}
  - {name: w2, queue: research, priority_class: train, gpus: 4, gpu_classes: [h100],
     submitted: 2026-01-05T09:30:00Z}
"""
FAULTS = {
    "10^12 GPUs on a node": (
        "gpus: 8}", "gpus: 1000000000000}",
        ":4: nodes[0].gpus: found 1000000000000, expected at most 100,000",
    ),
    "10^12 GPUs for a member": (
        "gpus: 4, gpu_classes: [h100],\n     submitted: 2026-01-05T09:30",
        "gpus: 1000000000000, gpu_classes: [h100],\n     submitted: 2026-01-05T09:30",
        ":12: workloads[1].gpus: found 1000000000000, expected at most 100,000",
    ),
    "10^12 members": (
        "name: w2,", "name: w2, members: {min: 1000000000000},",
        ":12: workloads[1].members.min: found 1000000000000, expected at most 100,000",
    ),
    "GPUs that are no number": (
        "gpus: 8}", "gpus: .nan}", ":4: nodes[0].gpus: found nan, expected a finite number",
    ),
    "GPUs without end": (
        "gpus: 8}", "gpus: .inf}", ":4: nodes[0].gpus: found inf, expected a finite number",
    ),
    "negative GPUs": ("gpus: 8}", "gpus: -8}", ":4: nodes[0].gpus: found -8, expected at least 0"),
    "the year 9999": (
        "now: 2026-01-05T10:00:00Z", "now: 9999-12-31T23:59:59-14:00",
        ":1: now: found 9999-12-31 23:59:59-14:00, expected a time in the years 1971 to 2199",
    ),
    "the year 1": (
        "submitted: 2026-01-05T09:30:00Z", "submitted: 0001-01-01T00:00:00+14:00",
        ":13: workloads[1].submitted: found 0001-01-01 00:00:00+14:00, expected a time in the years",
    ),
    "a name that colours the terminal": (
        "name: w2", r'name: "w2\e[31m"', ":12: workloads[1].name: found 'w2\\x1b[31m', expected printable",
    ),
    "a name of two lines": (
        "name: w2", r'name: "w2\nadmit    evil"',
        ":12: workloads[1].name: found 'w2\\nadmit    evil', expected printable",
    ),
    "a name written backwards": (
        "name: w2", r'name: "w2\u202e"', ":12: workloads[1].name: found 'w2\\u202e', expected printable",
    ),
    "a key that colours the terminal": (
        "{name: w2", r'{"\e[31mname": w2, name: w2',
        ":12: workloads[1].\\x1b[31mname: found 'w2', expected no such key",
    ),
    "a name of a million characters": (
        "name: w2", f"name: {'w' * 1_000_000}", ":12: workloads[1].name: found 'www",
    ),
    "an overfull node": (
        "gpus: 8}", "gpus: 3}",
        ":4: nodes[0].gpus: found 3, expected the 4 GPUs that are held on n1; correct it",
    ),
    "a node overfull with foreign GPUs": (
        "gpus: 8}", "gpus: 8, foreign_gpus: 5}",
        ":4: nodes[0].gpus: found 8, expected the 9 GPUs that are held on n1",
    ),
    "more foreign GPUs than the node has": (
        "gpus: 8}", "gpus: 8, foreign_gpus: 9}",
        ":4: nodes[0].foreign_gpus: found 9, expected at most the 8 GPUs that n1 has",
    ),
    "running without a place": (
        ",\n     placement: {n1: 1}}", "}",
        ":9: workloads[0].placement: found nothing, expected the nodes that it sits on",
    ),
    "running with an empty place": (
        "{n1: 1}", "{}", ":11: workloads[0].placement: found nothing, expected the nodes that it sits on",
    ),
    "more members placed than there are": (
        "{n1: 1}", "{n1: 2}", ":11: workloads[0].placement: found 2 members, expected at most 1",
    ),
    "fewer members placed than there are": (
        "name: w1,", "name: w1, members: {min: 2},",
        ":11: workloads[0].placement: found 1 members, expected at least 2",
    ),
    "no members in a place": (
        "{n1: 1}", "{n1: 0}", ":11: workloads[0].placement.n1: found 0, expected at least 1",
    ),
    "a place that is no node": (
        "{n1: 1}", "{n9: 1}", ":11: workloads[0].placement.n9: found 'n9', expected a name of nodes",
    ),
    "P90 below P50": (
        "name: w2,", "name: w2, predicted_s: {p50: 60, p90: 59},",
        ":12: workloads[1].predicted_s.p90: found 59, expected at least p50, 60",
    ),
    "a workload twice": (
        "name: w2", "name: w1", ":12: workloads[1].name: found 'w1', expected a name that stands once",
    ),
    "a GPU that the node lacks": (
        "{n1: 1}}", "{n1: 1}, devices: {n1: [8]}}",
        ":11: workloads[0].devices.n1: found 8, expected a GPU of n1, below 8",
    ),
    "more GPUs named than members sit there": (
        "gpus: 4, gpu_classes: [h100],\n     submitted: 2026-01-05T09:00:00Z,",
        "gpus: 0.5, devices: {n1: [0, 1]}, gpu_classes: [h100],\n     submitted: 2026-01-05T09:00:00Z,",
        ":9: workloads[0].devices.n1: found 2 GPUs, expected one for each of the 1 members there",
    ),
    "more than all of one GPU": (
        "gpus: 4, gpu_classes: [h100],\n     submitted: 2026-01-05T09:00:00Z,",
        "gpus: 0.6, members: {min: 2}, devices: {n1: [0, 0]}, gpu_classes: [h100],\n"
        "     submitted: 2026-01-05T09:00:00Z,",
        None,
    ),
    "a queue below itself": (
        "{name: research,", "{name: research, parent: research,",
        ":6: queues[0].parent: found 'research', expected a queue that is not below this one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", FAULTS)
def test_snapshot_that_cannot_be_is_refused_with_its_line_and_path(
    attacker: Attacker, tmp_path: Path, attack: str
) -> None:
    good, bad, said = FAULTS[attack]
    file = tmp_path / "now.yaml"
    assert good in SNAPSHOT
    file.write_text(SNAPSHOT.replace(good, bad))
    if attack == "more than all of one GPU":
        file.write_text(file.read_text().replace("{n1: 1}", "{n1: 2}"))
        said = ":9: workloads[0].devices.n1: found 0, expected a GPU with 0.6 of it free"

    line = attacker.refused("manage.py", "plan", str(file))

    assert line.startswith(f"{file}{said}")
    assert line.rpartition("; ")[2], "a remedy"


def test_queues_2000_levels_deep_are_refused(attacker: Attacker, tmp_path: Path) -> None:
    file = tmp_path / "now.yaml"
    below = "".join(
        f"  - {{name: q{i}, parent: {f'q{i - 1}' if i else 'research'}}}\n" for i in range(2000)
    )
    file.write_text(SNAPSHOT.replace("priority_classes:", f"{below}priority_classes:"))

    assert attacker.refused("manage.py", "plan", str(file)).startswith(
        f"{file}:70: queues[64].parent: found 'q62', expected at most 64 levels of queues; "
    )


def test_nodes_whose_gpus_would_fill_the_memory_are_refused(
    attacker: Attacker, tmp_path: Path
) -> None:
    file = tmp_path / "now.yaml"
    fat = "".join(f"  - {{name: f{i}, gpu_class: h100, gpus: 100000}}\n" for i in range(2000))
    file.write_text(SNAPSHOT.replace("queues:\n", f"{fat}queues:\n"))

    assert attacker.refused("manage.py", "plan", str(file)).startswith(
        f"{file}:24: nodes[20].gpus: found 2,000,008 with the nodes before it, expected at most 2,000,000"
    )


def test_members_that_would_keep_the_plan_busy_for_minutes_are_refused(
    attacker: Attacker, tmp_path: Path
) -> None:
    file = tmp_path / "now.yaml"
    fat = "  - {name: fat, gpu_class: h100, gpus: 100000}\n"
    gang = "members: {min: 20000, max: 20000}, gpus: 0.001"
    many = "".join(
        f"  - {{name: g{i}, queue: research, priority_class: train, gpu_classes: [h100],"
        f" submitted: 2026-01-05T09:00:00Z, {gang}}}\n"
        for i in range(2)
    )
    text = SNAPSHOT.replace("queues:\n", f"{fat}queues:\n")
    file.write_text(text.replace("workloads:\n", f"workloads:\n{many}"))

    said = attacker.refused("manage.py", "plan", str(file))
    assert (
        "workloads[0].members: found 20,000 with the workloads before it, expected at most " in said
    )


def test_explain_refuses_as_plan_does(attacker: Attacker, tmp_path: Path) -> None:
    file = tmp_path / "now.yaml"
    file.write_text(doubled(30))

    assert BOMB in attacker.refused("manage.py", "explain", str(file), "w1")


def test_name_typed_by_somebody_cannot_colour_the_terminal(
    attacker: Attacker, tmp_path: Path
) -> None:
    file = tmp_path / "now.yaml"
    file.write_text(SNAPSHOT)

    said = attacker.refused("manage.py", "explain", str(file), "w\x1b[31m")

    assert r"found 'w\x1b[31m', expected the name of one of workloads: 'w1', 'w2'" in said


TRACE = "timestamp,duration,num_gpus,cluster\n2017-10-02 00:00:00,100,8,a\n"
COMMANDS = {
    "replay with negative nodes": ("replay", "TRACE", "--nodes=-3"),
    "replay with 10^12 nodes": ("replay", "TRACE", "--nodes", "1000000000000"),
    "replay with nodes of 5,000 digits": ("replay", "TRACE", "--nodes", "9" * 5000),
    "replay with Arabic digits": ("replay", "TRACE", "--nodes", "\u0663"),
    "replay from the year 9999": ("replay", "TRACE", "--from", "9999-12-31T23:59:59-14:00"),
    "replay from the year 1": ("replay", "TRACE", "--to", "0001-01-01T00:00:00+14:00"),
    "replay with an endless cycle": ("replay", "TRACE", "--cycle-s", "9" * 30),
    "replay of what is not there": ("replay", "nowhere.csv"),
    "bench that is none": ("bench", "\x1b[31m"),
    "scenario of what is not there": ("scenario", "nowhere.yaml"),
    "bench without traces": ("bench", "replay", "--traces", "/nowhere"),
    "demo at a speed that is no number": ("demo", "--speed", "nan"),
    "demo at an endless speed": ("demo", "--speed", "inf"),
    "demo at a speed below zero": ("demo", "--speed=-1"),
    "demo with negative nodes": ("demo", "--trace", "TRACE", "--nodes=-3"),
    "demo on port 99999999": ("demo", "--port", "99999999"),
    "demo on a negative port": ("demo", "--port=-1"),
    "cluster verb that is none": ("cluster", "drop"),
    "cluster option that is none": ("cluster", "list", "--\x1b[31m"),
    "plan of nothing": ("plan",),
    "plan of a folder": ("plan", "/"),
    "plan of a name with a NUL's neighbour": ("plan", "\x01\x1b[31m.yaml"),
}


@pytest.mark.parametrize("attack", COMMANDS)
def test_command_line_of_an_attack_is_refused_in_one_line(
    attacker: Attacker, tmp_path: Path, attack: str
) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(TRACE)
    typed = [str(trace) if word == "TRACE" else word for word in COMMANDS[attack]]

    line = attacker.refused("manage.py", *typed)

    assert re.search("expected|; --help|choose|Choose", line), line


PROGRAMS = {
    "embedded on port 99999999": ("workshop.testbed.server", "--port", "99999999"),
    "embedded at a speed that is no number": ("workshop.testbed.server", "--speed", "nan"),
    "kubelets without a kubeconfig": ("workshop.testbed.kubelets", "--kubeconfig", "/nowhere"),
    "kubelets at a pace below zero": (
        "workshop.testbed.kubelets", "--kubeconfig", "/nowhere", "--pace=-1",
    ),
    "control plane verb that is none": ("workshop.testbed.control_plane", "drop"),
}  # fmt: skip


@pytest.mark.parametrize("attack", PROGRAMS)
def test_program_of_an_attack_is_refused_in_one_line(
    attacker: Attacker, tmp_path: Path, attack: str
) -> None:
    line = attacker.refused("-m", *PROGRAMS[attack])

    assert re.search("expected|; --help", line), line


ROW = "2017-10-02 00:00:00,100,8,"
DATE, TAIL = "2017-10-02 00:00:00", "100,8,a\n"
TRACES = {
    "NUL in a name": (
        f"{ROW}a\0b\n", r":3: expected text in every field, found the character '\x00'",
    ),
    "a terminal's escape in a name": (f"{ROW}\x1b[31ma\n", ":3: expected text in every field"),
    "a huge field": (ROW + "a" * 1_000_000, ":3: expected at most 65,536 characters"),
    "10^12 GPUs": (
        f"{DATE},100,1000000000000,a\n",
        ":3: expected at most 100,000 GPUs, found num_gpus '1000000000000'",
    ),
    "GPUs of 5,000 digits": (f"{DATE},100,{'9' * 5000},a\n", ":3: expected at most 100,000 GPUs"),
    "negative GPUs": (f"{DATE},100,-8,a\n", ":3: expected a whole number of GPUs, 1 or more"),
    "a duration that is no number": (f"{DATE},nan,8,a\n", ":3: expected seconds, zero or more"),
    "a duration past the calendar": (f"{DATE},1e11,8,a\n", ":3: expected at most"),
    "the year 9999": (f"9999-12-31T23:59:59-14:00,{TAIL}", ":3: expected a time such as"),
    "the year 1": (f"0001-01-01T00:00:00+14:00,{TAIL}", ":3: expected a time such as"),
}  # fmt: skip


@pytest.mark.parametrize("attack", TRACES)
def test_trace_of_an_attack_is_refused_at_its_line(
    attacker: Attacker, tmp_path: Path, attack: str
) -> None:
    row, said = TRACES[attack]
    file = tmp_path / "t.csv"
    file.write_text(TRACE + row)

    line = attacker.refused("manage.py", "replay", str(file), "--nodes", "2")

    assert line.startswith(f"{file}{said}")


def test_trace_without_its_columns_is_refused(attacker: Attacker, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("timestamp,duration\n")

    line = attacker.refused("manage.py", "replay", str(file), "--nodes", "2")

    assert line.startswith(
        f"{file}:1: expected a header with timestamp, duration, num_gpus, cluster"
    )


def test_packed_trace_that_unpacks_a_thousandfold_is_refused(
    attacker: Attacker, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv.gz"
    with gzip.open(file, "wt") as packed:
        for _ in range(300):
            packed.write("\n" * (1 << 20))

    line = attacker.refused("manage.py", "replay", str(file), "--nodes", "2")

    assert "expected less than 100 times the packed size" in line


@pytest.mark.parametrize(
    "text",
    [
        "; UnixStartTime: " + "9" * 40,
        "; MaxProcs: 1000000000000",
        "1 1e300 1 10 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "1 0 1 10 1000000000000 1 1 1000000000000 1 1 1 1 1 1 1 1 1 1",
        "1 nan 1 10 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
    ],
)
def test_workload_log_with_impossible_numbers_is_refused_at_its_line(
    attacker: Attacker, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "t.swf"
    file.write_text(f"; a log\n{text}\n")

    assert attacker.refused("manage.py", "replay", str(file), "--nodes", "2").startswith(
        f"{file}:2: expected"
    )


def test_demo_in_a_folder_of_somebodys_own_leaves_it_alone(
    attacker: Attacker, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")

    line = attacker.refused("manage.py", "demo", "--data", str(home), "--port", "1")

    assert f"--data: found 'thesis.tex' in {home}, expected an empty folder" in line
    assert (home / "thesis.tex").read_text() == "years of work"


KUBECONFIG = """apiVersion: v1
kind: Config
current-context: fra1
contexts:
  - {name: fra1, context: {cluster: fra1, user: weir}}
clusters:
  - {name: fra1, cluster: {server: "https://127.0.0.1:9"}}
users:
  - {name: weir, user: {token: secret}}
"""
KUBECONFIGS = {
    "a context that is not there": (
        KUBECONFIG, "fra2", ":4: contexts: found 'fra2', expected one of 'fra1'; name one that is there",
    ),
    "a context that colours the terminal": (
        KUBECONFIG, "\x1b[31m", r":4: contexts: found '\x1b[31m', expected one of 'fra1'",
    ),
    "no current context": (
        KUBECONFIG.replace("current-context: fra1", ""), "", ":4: contexts: found no current-context",
    ),
    "a cluster that is not there": (
        KUBECONFIG.replace("cluster: fra1, user", "cluster: x, user"), "", ":6: clusters: found 'x'",
    ),
    "an API server that is a file": (
        KUBECONFIG.replace("https://127.0.0.1:9", "file:///etc/passwd"), "",
        ":7: clusters[0].cluster.server: found 'file:///etc/passwd', expected the URL of an API server",
    ),
    "a command to run": (
        KUBECONFIG.replace("token: secret", "exec: {apiVersion: v1, command: touch, args: [RUN]}"), "",
        ":9: users[0].user.exec: found a command to run, expected a token or a certificate; set "
        "WEIR_KUBECONFIG_COMMANDS=1 if you trust the file",
    ),
    "a command of an old cloud": (
        KUBECONFIG.replace("token: secret", "auth-provider: {name: gcp, config: {cmd-path: touch}}"), "",
        ":9: users[0].user.auth-provider: found a command to run",
    ),
    "an alias bomb": (doubled(30), "", f":7: {BOMB}"),
    "100,000 brackets": ("[" * 100_000, "", f":1: {NESTED}"),
    "a list": ("[1]", "", ": found no keys, expected a kubeconfig"),
    "contexts that are no list": (
        KUBECONFIG.replace("contexts:\n  -", "contexts:\n   "), "", ":4: contexts: found no list of those",
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", KUBECONFIGS)
def test_kubeconfig_of_an_attack_is_refused_and_runs_nothing(
    attacker: Attacker, tmp_path: Path, attack: str
) -> None:
    text, context, said = KUBECONFIGS[attack]
    file, trace = tmp_path / "config", tmp_path / "run"
    file.write_text(text.replace("RUN", str(trace)))
    attacker.run("manage.py", "migrate", "--verbosity", "0")
    attacker.run("manage.py", "shell", "--verbosity", "0", "-c", FORGET)
    added = attacker.run(
        "manage.py", "cluster", "add", "fra1", "--kubeconfig", str(file), "--context", context
    )
    assert added.code == 0, added.err

    for words in (("cluster", "check", "fra1"), ("snapshot", "fra1")):
        ended = attacker.run("manage.py", *words)
        line = ended.err.splitlines()[-1].removeprefix("CommandError: ")
        assert ended.code == 2, ended.err
        assert line.startswith(f"{file}{said}")
    assert not trace.exists()


FORGET = "from scheduling.models import Cluster; Cluster.objects.all().delete()"


def test_kubeconfig_runs_its_command_where_the_environment_trusts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMANDS_ALLOWED, "1")
    told = {
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": "from a command"},
    }  # fmt: skip
    user = {"apiVersion": told["apiVersion"], "command": "echo", "args": [json.dumps(told)]}
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.replace("{token: secret}", json.dumps({"exec": user})))

    configuration = configuration_from(str(file))

    assert list(configuration.api_key.values()) == ["Bearer from a command"]


def test_unknown_cluster_is_refused(attacker: Attacker) -> None:
    attacker.run("manage.py", "migrate", "--verbosity", "0")
    for verb in ("check", "guardrails", "classes"):
        assert "There is no cluster 'x" in attacker.refused(
            "manage.py", "cluster", verb, "x\x1b[31m"
        )
