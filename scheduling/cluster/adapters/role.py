"""One role of a workload: pods from one template, and how many of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class Role:
    """Pods made from one template. ``template`` may be edited in place by ``steer``.

    ``resize`` sets how many there are, where plans may; ``lowest`` and ``highest`` are the bounds where the
    object itself states them. ``restore`` sets it where only what a person raised is to be taken back.
    """

    name: str
    count: int
    template: Json
    resize: Callable[[int], None] | None = None
    lowest: int | None = None
    highest: int | None = None
    restore: Callable[[int], None] | None = None
    spare: int = 0
    """Pods among them that an autoscaler of its own may leave out."""
    runtime: str = ""
    """What stands for the runtime class of its pods where the template does not name it."""

    @property
    def pod(self) -> Json:
        """Its pods' spec."""
        spec: Json = self.template["spec"]
        return spec

    @property
    def as_run(self) -> Json:
        """The spec with the runtime class that its pods will have."""
        return {"runtimeClassName": self.runtime, **self.pod} if self.runtime else self.pod
