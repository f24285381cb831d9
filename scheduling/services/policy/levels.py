"""The levels of a cluster's topology, as its policy names them."""

from __future__ import annotations

from scheduling.cluster.vocabulary import topology
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.models import Cluster


def levels_of(cluster: Cluster) -> Levels:
    return topology.parse(cluster.topology_levels)
