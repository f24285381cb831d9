"""Alibaba's GPU trace and FGD's protocol on it, on a small cluster of the same format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scheduling.simulation.traces import TraceError
from workshop.benches.engine.bound import most_allocated
from workshop.benches.engine.fragmentation import Run, arrivals, frame_of, place_all
from workshop.benches.engine.moving import bounds_pct, with_moves
from workshop.benches.engine.openb import OpenbNode, OpenbPod, find_list, read_nodes, read_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,16000,65536,2,T4\nn2,8000,65536,2,P100\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p1,1000,1024,1,500,\np2,2000,1024,2,1000,T4|P100\np3,6000,1024,0,0,\np4,1000,1024,1,1000,P100\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS)
    return tmp_path


def test_pod_asks_for_the_gpus_of_all_its_devices_and_the_models_it_names(folder: Path) -> None:
    pods = read_pods(find_list(folder, "default"))

    assert [p.gpus for p in pods] == [500, 2000, 0, 1000]
    assert [p.models for p in pods] == [(), ("P100", "T4"), (), ("P100",)]


def test_broken_pod_line_names_file_line_and_column(folder: Path) -> None:
    file = folder / "broken.csv"
    file.write_text(PODS + "p5,many,1024,1,1000,\n")

    with pytest.raises(
        TraceError, match=r"broken.csv:6: expected a whole number as cpu_milli, found 'many'"
    ):
        read_pods(file)


def test_missing_column_is_named(folder: Path) -> None:
    file = folder / "nodes.csv"
    file.write_text("sn,gpu\nn1,2\n")

    with pytest.raises(TraceError, match="columns cpu_milli, memory_mib, model"):
        read_nodes(file)


def test_arrivals_shuffle_the_list_and_go_on_until_they_ask_for_every_gpu(folder: Path) -> None:
    pods = read_pods(find_list(folder, "default"))
    frame = frame_of(read_nodes(folder / "openb_node_list_gpu_node.csv"), pods)

    order = arrivals(frame, len(pods), seed=42)

    asked = frame.work.need[0, order]
    assert asked.sum() >= 4000 > asked[:-1].sum()
    assert sorted(order[:4]) == [0, 1, 2, 3]


def test_allocated_share_is_the_same_for_the_same_seed_and_never_above_all(folder: Path) -> None:
    pods = read_pods(find_list(folder, "default"))
    frame = frame_of(read_nodes(folder / "openb_node_list_gpu_node.csv"), pods)

    shares = [place_all(frame, pods, seed).allocated_pct for seed in (42, 43, 42)]

    assert shares[0] == shares[2]
    assert all(50 <= share <= 100 for share in shares)


def pod(gpus: int, cpus: int = 0) -> OpenbPod:
    return OpenbPod("pod", cpus, 0, gpus, ())


def scattered(*cpus: int) -> tuple[list[OpenbNode], Run]:
    """A node with one pod of .3 for each of ``cpus``, then a pod of a whole GPU, which was refused."""
    nodes = [OpenbNode(f"n{i}", free, 0, 1, "T4") for i, free in enumerate(cpus)]
    count = len(nodes)
    run = Run(
        [*(pod(300, cpus=8) for _ in nodes), pod(1000)],
        np.array([*range(count), -1]),
        np.array([0] * count + [-1]),
        30.0,
    )
    return nodes, run


@pytest.mark.parametrize(
    ("cpus", "allowed", "moves", "allocated_pct"),
    [((16, 16), 1, 1, 80.0), ((16, 16), 0, 0, 30.0), ((8, 8), 1, 0, 30.0)],
    ids=["moves", "as_no_move_is_allowed", "as_no_other_node_has_cpus"],
)
def test_refused_pod_starts_where_another_may_and_can_move(
    cpus: tuple[int, ...], allowed: int, moves: int, allocated_pct: float
) -> None:
    nodes, run = scattered(*cpus)

    moving = with_moves(nodes, run, allowed, seed=42)

    assert (moving.moves, moving.allocated_pct()) == (moves, pytest.approx(allocated_pct))


def test_bounds_count_what_shares_leave_and_who_was_kept() -> None:
    pods = [pod(810), pod(810), pod(190), pod(1000), pod(1000)]
    run = Run(pods, np.array([0, 1, 1, -1, -1]), np.array([0, 0, 0, -1, -1]), 90.5)

    assert bounds_pct(run, 2) == (pytest.approx(100.0), pytest.approx(90.5))


@pytest.mark.parametrize(
    ("asked", "gpus", "allocated"),
    [
        ({810: 2}, 1, 810),
        ({600: 2, 400: 1}, 1, 1000),
        ({470: 4}, 2, 1880),
        ({2000: 1}, 1, 1000),
        ({300: 9}, 2, 1800),
    ],
)
def test_most_that_gpus_can_give_is_what_the_best_ways_to_fill_them_hold(
    asked: dict[int, int], gpus: int, allocated: int
) -> None:
    assert most_allocated(asked, {}, gpus) == pytest.approx(allocated)


def test_bound_refuses_to_keep_more_than_the_gpus_hold() -> None:
    with pytest.raises(ArithmeticError, match="1 GPUs do not hold those kept"):
        most_allocated({810: 2}, {810: 2}, 1)
