"""A small cluster whose figures can be checked by hand.

    fra1
    ├── research
    │   ├── vision      nominal 8 h100, 14 slices
    │   └── speech      nominal 4 h100
    └── platform        nominal 4 h100

16 h100 (8 of them down in tests that say so) and 14 MIG slices, which are 2 GPUs.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from portal.reports.filters import ReportFilters
from scheduling.models import Cluster, GpuClass, Outcome, Queue, State, Transition, UsageSample
from scheduling.models.ledger import Resolution
from tests.factories import NOW, make_cluster, make_member, make_workload

HOUR = timedelta(hours=1)
END = NOW.replace(minute=0, second=0, microsecond=0)


class Small:
    """The cluster with its parts by name."""

    def __init__(self) -> None:
        self.cluster: Cluster = make_cluster(clock_real=None)
        self.h100 = self._gpu_class("h100", 0, resource_name="nvidia.com/gpu")
        self.mig = self._gpu_class("mig", 1, resource_name="nvidia.com/mig-1g.5gb")
        self.root = self._queue("fra1", None)
        self.research = self._queue("research", self.root)
        self.vision = self._queue("vision", self.research)
        self.speech = self._queue("speech", self.research)
        self.platform = self._queue("platform", self.root)
        self.operator = make_member(self.root, name="op", may_operate=True)
        self.lead = make_member(self.research, name="lea", may_edit_quotas=True)
        self.researcher = make_member(self.vision, name="rea", may_submit=True)

    def _gpu_class(self, name: str, position: int, **fields: str) -> GpuClass:
        return GpuClass.objects.create(cluster=self.cluster, name=name, position=position, **fields)

    def _queue(self, name: str, parent: Queue | None) -> Queue:
        return Queue.objects.create(cluster=self.cluster, name=name, parent=parent)

    def sample(
        self,
        queue: Queue,
        gpu_class: GpuClass,
        *,
        hours_ago: float = 1,
        resolution: str = Resolution.HOUR,
        seconds: int = 3600,
        **gpus: float | None,
    ) -> None:
        """``gpus`` are whole GPUs (or slices): installed, ready, allocated, used, nominal, pending. What
        a leaf has allocated is held by work that names nobody."""
        values = {
            f"{name}_gpus": None if value is None else value * 1000 for name, value in gpus.items()
        }
        UsageSample.objects.create(
            queue=queue,
            gpu_class=gpu_class,
            resolution=resolution,
            start=END - HOUR * hours_ago,
            seconds=seconds,
            **values,
        )
        if (held := gpus.get("allocated")) and queue in (self.vision, self.speech, self.platform):
            self.hold(queue, gpu_class, held, END - HOUR * hours_ago, timedelta(seconds=seconds))

    def hold(
        self, queue: Queue, gpu_class: GpuClass, gpus: float, at: datetime, long: timedelta
    ) -> None:
        milli = round(gpus * 1000)
        work = make_workload(
            queue, user="", gpus=milli, gpu_class=gpu_class,
            state=State.FINISHED, outcome=Outcome.CANCELLED, submitted_at=at, finished_at=at + long,
        )  # fmt: skip
        for when, state, held in ((at, State.RUNNING, milli), (at + long, State.FINISHED, 0)):
            Transition.objects.create(
                workload=work, at=when, to_state=state, gpus=held, gpu_class=gpu_class
            )

    def last(self, hours: float = 24, **fields: object) -> ReportFilters:
        fields = {"compare": False, **fields}
        return ReportFilters(start=END - HOUR * hours, end=END, **fields)  # type: ignore[arg-type]


@pytest.fixture
def small(db: None) -> Small:
    return Small()
