"""A Kubernetes API server small enough to live inside one process.

It speaks enough of the API for kubectl, the official Python client and plain HTTP, and plays
the parts of the controller manager, the scheduler and the kubelets, on a clock of its own.
The contract suite in `tests/scheduling/cluster/contract` says what it promises.
"""

from workshop.testbed.server.kinds.clock import Clock, ManualClock
from workshop.testbed.server.kinds.faults import FaultRules, Faults

from .http.identity import User
from .kubeconfig import kubeconfig, kubeconfig_yaml
from .server import EmbeddedServer

__all__ = [
    "Clock",
    "EmbeddedServer",
    "FaultRules",
    "Faults",
    "ManualClock",
    "User",
    "kubeconfig",
    "kubeconfig_yaml",
]
