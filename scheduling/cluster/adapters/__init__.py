"""Kinds of objects that hold work. Another kind is another module here and one more line below."""

from scheduling.cluster.adapters import notes
from scheduling.cluster.adapters.base import Adapter, Admission, ClassSpec, Sighting, Target, key_of
from scheduling.cluster.adapters.inference import DeploymentAdapter, LeaderWorkerSetAdapter
from scheduling.cluster.adapters.job import JobAdapter
from scheduling.cluster.adapters.jobset import JobSetAdapter
from scheduling.cluster.adapters.kubeflow import MPIJobAdapter, PaddleJobAdapter, PyTorchJobAdapter
from scheduling.cluster.adapters.podgroup import PodGroupAdapter
from scheduling.cluster.adapters.ray import RayClusterAdapter, RayJobAdapter
from scheduling.cluster.adapters.trainjob import TrainJobAdapter

ADAPTERS: tuple[Adapter, ...] = (
    JobAdapter(),
    JobSetAdapter(),
    PyTorchJobAdapter(),
    PaddleJobAdapter(),
    MPIJobAdapter(),
    TrainJobAdapter(),
    RayJobAdapter(),
    RayClusterAdapter(),
    LeaderWorkerSetAdapter(),
    DeploymentAdapter(),
    PodGroupAdapter(),
)

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Admission",
    "ClassSpec",
    "JobAdapter",
    "Sighting",
    "Target",
    "key_of",
    "notes",
]
