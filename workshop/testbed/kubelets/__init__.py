"""Simulated nodes for any API server: the embedded cluster's kubelet, over the wire."""

from .fleet import Fleet
from .machines import SIMULATED, STOPPED, Machine, node_manifest

__all__ = ["SIMULATED", "STOPPED", "Fleet", "Machine", "node_manifest"]
