"""GPUs of every vendor, by what they are called on a cluster: one row each, and the only place that says so.

What asks for GPUs is known by the shape of the name, whether or not a GPU class lists it. Admission policies,
adapters, quotas, the search for classes and the reading of metrics all ask here.

CEL (RE2) and Python read the patterns alike, and they match a whole name; a dot is written ``[.]``, so that
no backslash has to pass through CEL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""How the name begins that Kubernetes derives for devices of every DeviceClass, beside any other."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Names that the vendor's exporter gives to readings of one GPU.

    ``activity``: share of it that works, the best first; ``used`` and ``free`` memory in MiB, ``power`` in W.
    ``device``: labels that tell one GPU or partition from others; ``percent``: series of a hundred.
    """

    activity: tuple[str, ...]
    used: str
    free: str
    power: str
    device: tuple[str, ...]
    percent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vendor:
    """``resources`` are patterns of whole GPUs, ``partitions`` of parts and shared ones, ``drivers`` of those
    that serve GPUs by dynamic resource allocation; ``product`` are node labels that name the model.
    ``brands`` begin names of models and tell nothing apart; ``tool`` shows on a node what its driver sees.
    """

    name: str
    resources: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    product: tuple[str, ...] = ()
    metrics: Metrics | None = None
    brands: tuple[str, ...] = ()
    tool: str = ""


VENDORS: tuple[Vendor, ...] = (
    Vendor(
        "nvidia",
        # Those that begin with a capital are passed through to virtual machines, named after the model.
        resources=("nvidia[.]com/v?gpu", "nvidia[.]com/[A-Z].*"),
        partitions=("nvidia[.]com/mig-.+", "nvidia[.]com/v?gpu[-._].+"),
        drivers=("gpu[.]nvidia[.]com",),
        product=("nvidia.com/gpu.product",),
        brands=("nvidia", "tesla"),
        tool="nvidia-smi",
        # https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html
        metrics=Metrics(
            activity=(
                "DCGM_FI_PROF_SM_ACTIVE",
                "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                "DCGM_FI_DEV_GPU_UTIL",
            ),
            used="DCGM_FI_DEV_FB_USED",
            free="DCGM_FI_DEV_FB_FREE",
            power="DCGM_FI_DEV_POWER_USAGE",
            device=("Hostname", "instance", "UUID", "gpu", "GPU_I_ID"),
        ),
    ),
    Vendor(
        "amd",
        resources=("amd[.]com/gpu",),
        # Compute and memory partitioning of the Instinct series, and virtual functions.
        partitions=("amd[.]com/[sdtqc]px_nps[0-9]+", "amd[.]com/gpu[-._].+"),
        drivers=("gpu[.]amd[.]com",),
        product=("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"),
        brands=("amd",),
        tool="amd-smi",
        # https://instinct.docs.amd.com/projects/device-metrics-exporter: metricslist
        metrics=Metrics(
            activity=("gpu_gfx_activity",),
            used="gpu_used_vram",
            free="gpu_free_vram",
            power="gpu_package_power",
            device=("hostname", "serial_number", "gpu_id", "gpu_partition_id"),
            percent=("gpu_gfx_activity",),
        ),
    ),
    Vendor(
        "intel",
        resources=("gpu[.]intel[.]com/.+", "habana[.]ai/gaudi"),
        drivers=("gpu[.]intel[.]com", "gaudi[.]intel[.]com"),
        brands=("intel",),
        tool="xpu-smi",
    ),
    Vendor("huawei", resources=("huawei[.]com/[aA]scend.*",), drivers=("npu[.]huawei[.]com",)),
    Vendor("mthreads", resources=("mthreads[.]com/vgpu",), product=("mthreads.com/product",)),
    # Of any vendor and way of sharing: a name that says GPU.
    Vendor(
        "others",
        resources=("[^/]+/v?gpu",),
        partitions=("[^/]+/v?gpu[-._].+",),
        drivers=("gpu[.].+",),
    ),
)
CLOUDS = (
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.azure.com/accelerator",
)
"""Node labels by which clouds name the model of whatever vendor."""


def shape() -> str:
    """The pattern of every name by which a container may ask for GPUs. Any device may be one."""
    own = (p for v in VENDORS for p in (*v.resources, *v.partitions))
    return _any((*own, DEVICE_CLASS.replace(".", "[.]") + ".+"))


def is_gpu(resource: str) -> bool:
    return _matches(shape(), resource)


def is_partition(resource: str) -> bool:
    """Whether it is a part of a GPU, or one that is shared."""
    return _matches(_any([p for v in VENDORS for p in v.partitions]), resource)


def is_driver(name: str) -> bool:
    """Whether the devices of that driver are GPUs."""
    return _matches(_any([p for v in VENDORS for p in v.drivers]), name)


def product_labels() -> tuple[str, ...]:
    """Node labels that tell GPUs of one resource apart, the best first."""
    return (*(label for v in VENDORS for label in v.product), *CLOUDS)


def brands() -> tuple[str, ...]:
    """What the names of models begin with, in small letters."""
    return tuple(brand for v in VENDORS for brand in v.brands)


def tools() -> tuple[str, ...]:
    """Programs that show on a node what its driver sees."""
    return tuple(v.tool for v in VENDORS if v.tool)


def metrics() -> list[Metrics]:
    return [v.metrics for v in VENDORS if v.metrics is not None]


def _any(patterns: Sequence[str]) -> str:
    return f"^({'|'.join(patterns)})$"


@lru_cache(maxsize=4096)
def _matches(pattern: str, name: str) -> bool:
    """Cached: the same few names are asked about for every pod."""
    return re.search(pattern, name) is not None
