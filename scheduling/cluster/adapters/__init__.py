"""Kinds of objects that hold work. Another kind is another module here and one more line below."""

from scheduling.cluster.adapters import notes
from scheduling.cluster.adapters.base import (
    Adapter,
    Admission,
    ClassSpec,
    Observed,
    Target,
    key_of,
)
from scheduling.cluster.adapters.inference import DeploymentAdapter, LeaderWorkerSetAdapter
from scheduling.cluster.adapters.job import JobAdapter
from scheduling.cluster.adapters.jobset import JobSetAdapter
from scheduling.cluster.adapters.kubeflow import MPIJobAdapter, PyTorchJobAdapter
from scheduling.cluster.adapters.ray import RayClusterAdapter, RayJobAdapter
from scheduling.cluster.adapters.trainjob import TrainJobAdapter

ADAPTERS: tuple[Adapter, ...] = (
    JobAdapter(),
    JobSetAdapter(),
    PyTorchJobAdapter(),
    MPIJobAdapter(),
    TrainJobAdapter(),
    RayJobAdapter(),
    RayClusterAdapter(),
    LeaderWorkerSetAdapter(),
    DeploymentAdapter(),
)

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Admission",
    "ClassSpec",
    "JobAdapter",
    "Observed",
    "Target",
    "key_of",
    "notes",
]
