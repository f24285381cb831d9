"""What besides objects and pods a picture is read from: device classes, runtimes, volumes, LimitRanges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from scheduling.cluster.adapters import ClassSpec
from scheduling.cluster.connection.reflector import untrimmed
from scheduling.cluster.vocabulary import devices, limit_ranges, runtimes, volumes
from scheduling.cluster.vocabulary.devices import Devices
from scheduling.cluster.vocabulary.limit_ranges import ByNamespace
from scheduling.cluster.vocabulary.runtimes import Runtimes
from scheduling.cluster.vocabulary.volumes import NO_VOLUMES, Volumes

Json = dict[str, Any]
Trim = Callable[[Json], Json]

NO_DEVICES = Devices()
RESOURCES: Mapping[str, tuple[str, Trim]] = {
    **{name: (devices.list_path(name), untrimmed) for name in devices.RESOURCES},
    runtimes.RESOURCE: (runtimes.LIST_PATH, untrimmed),
    **{name: (path, untrimmed) for name, path in runtimes.TRAINING.items()},
    limit_ranges.RESOURCE: (limit_ranges.LIST_PATH, untrimmed),
    **{name: (path, volumes.TRIMS[name]) for name, path in volumes.LIST_PATHS.items()},
}
"""What a mirror holds of it: resource -> list path, and what is kept of each."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What besides an object and its pods decides how it is read, and where it may run."""

    classes: Sequence[ClassSpec]
    devices: Devices = NO_DEVICES
    runtimes: Runtimes = field(default_factory=dict)
    defaults: ByNamespace = field(default_factory=dict)
    volumes: Volumes = NO_VOLUMES


def circumstances(
    classes: Sequence[ClassSpec], objects_of: Callable[[str], Iterable[Json]]
) -> Circumstances:
    """``held`` are the objects of each of ``RESOURCES``."""
    found = runtimes.read(objects_of(runtimes.RESOURCE))
    return Circumstances(
        classes,
        devices.count(*(list(objects_of(name)) for name in devices.RESOURCES)),
        runtimes.with_training(found, chain.from_iterable(map(objects_of, runtimes.TRAINING))),
        limit_ranges.read(objects_of(limit_ranges.RESOURCE)),
        volumes.read(*(list(objects_of(name)) for name in volumes.LIST_PATHS)),
    )
