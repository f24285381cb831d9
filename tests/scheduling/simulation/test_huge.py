"""The organisation behind ``bench cycle-huge``, small: its shards share it out without rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from scheduling.engine import encode
from scheduling.engine.state.units import PENDING
from workshop.benches.engine.huge import HUGE, SHARES, measure_huge
from workshop.benches.engine.large import LargeLoad, Part, fill, organisation

SMALL = replace(
    HUGE, nodes=8 * 512, leaves=8, running=200, pending=9_000, changes=40, rounds=2, questions=2
)


@pytest.mark.parametrize("way", sorted(SHARES))
def test_every_node_is_in_one_shard(way: str) -> None:
    named = Counter(node.name for part in SHARES[way] for node in organisation(SMALL, part).nodes)

    assert len(named) == SMALL.nodes
    assert set(named.values()) == {1}


@pytest.mark.parametrize("way", sorted(SHARES))
def test_every_workload_is_in_one_shard(way: str) -> None:
    assert sum(_drawn(SMALL, part) for part in SHARES[way]) == _drawn(SMALL, Part()) == 9_000


def _drawn(load: LargeLoad, part: Part) -> int:
    frame = encode(organisation(load, part))
    fill(frame, load, load.pending, np.random.default_rng(7), part)
    return int(np.count_nonzero(frame.work.phase == PENDING))


@pytest.mark.parametrize("way", sorted(SHARES))
def test_quotas_of_shards_add_up_to_those_of_the_whole(way: str) -> None:
    def nominal(part: Part) -> int:
        return int(encode(organisation(SMALL, part)).quotas.nominal.sum())

    assert sum(nominal(part) for part in SHARES[way]) == nominal(Part())


def test_measurement_has_the_figures_of_one_planner_and_of_each_way_to_share() -> None:
    found = measure_huge(SMALL, lambda line: None).measured

    assert found["placements"] > 100
    assert found["by_class_slowest_scratch_s"] <= found["by_class_all_scratch_s"]
    assert found["by_block_slowest_one_percent_s"] <= found["by_block_all_one_percent_s"]
    assert found["peak_gib"] > 0
