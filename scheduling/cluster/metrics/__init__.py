"""What GPUs do, as a Prometheus server tells it."""

from .gpus import PodUse, read
from .prometheus import MetricsError, Prometheus

__all__ = ["MetricsError", "PodUse", "Prometheus", "read"]
