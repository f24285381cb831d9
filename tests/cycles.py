"""A cycle with its record: pretraining gives back what alignment is owed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from scheduling.cluster.enforcement.enforcer import Report, Write
from scheduling.engine import Outline, Waits, plan
from scheduling.engine import model as m
from scheduling.models import Cycle, CycleRecord, Workload
from scheduling.services.cycle.record.causes import Cause, What
from scheduling.services.cycle.record.records import WRITING, PlanRecord, keep
from scheduling.services.explain.asking import name_in_plan

GPUS = 8


def snapshot_of(
    at: datetime, gpu_class: str, *, borrower: str, owner: str, runs: tuple[str, ...], waits: str
) -> m.Snapshot:
    """One node a run, 8 GPUs each; ``runs`` in order of their start, all of ``borrower``."""
    quota = {gpu_class: m.Quota(nominal=len(runs) * GPUS * m.MILLI // 2)}
    return m.Snapshot(
        now=at,
        gpu_classes=(m.GpuClass(gpu_class),),
        nodes=tuple(m.Node(f"node-{i}", gpu_class, GPUS * m.MILLI) for i, _ in enumerate(runs)),
        queues=(m.Queue(borrower, quotas=quota), m.Queue(owner, quotas=quota)),
        priority_classes=(m.PriorityClass("normal", 50), m.PriorityClass("fixed", 50, False)),
        workloads=(
            *(_run(name, borrower, gpu_class, at, i) for i, name in enumerate(runs)),
            m.Workload(waits, owner, "normal", at - timedelta(minutes=1), GPUS * m.MILLI,
                       gpu_classes=(gpu_class,)),
        ),
    )  # fmt: skip


def _run(name: str, queue: str, gpu_class: str, at: datetime, place: int) -> m.Workload:
    started = at - timedelta(hours=4 - place)
    return m.Workload(
        name, queue, "fixed" if place == 0 else "normal", started, GPUS * m.MILLI,
        gpu_classes=(gpu_class,), phase=m.Phase.RUNNING, started=started, gpu_class=gpu_class,
        placement={f"node-{place}": 1},
    )  # fmt: skip


def record(cycle: Cycle, snapshot: m.Snapshot) -> CycleRecord:
    """What the worker keeps of ``cycle``, with the plan of ``snapshot``."""
    rows = {name_in_plan(w): w for w in Workload.objects.filter(cluster=cycle.cluster)}
    made = plan(snapshot)
    waits = (m.Action.WAIT, m.Action.RESERVE)
    acts = tuple(d for d in made.decisions if d.action not in waits)
    outline = Outline(made.fair_share, acts, Waits([], [], [], lambda _: []))
    phases = [("Look at the cluster", 61.0), ("Plan", 120.4), (WRITING, 44.0)]
    acted = [rows.get(act.workload, next(iter(rows.values()))) for act in acts]
    report = Report(written=3, said=1, writes=[_write(work) for work in acted])
    report.failed = {"a": "refused"}
    causes = [*_causes(acted), *_common(cycle.at)]
    return keep(PlanRecord(cycle, snapshot, outline, rows, causes), phases, report)


def _write(work: Workload) -> Write:
    refused = {"method": "PUT", "code": 422, "message": f"Job {work.name} is invalid."}
    return Write(work.kind, work.name, work.uid, purpose="suspend", took_ms=14.2, **refused)


def _causes(works: Sequence[Workload]) -> list[Cause]:
    return [Cause(What.EDITED, work.submitted_at, work) for work in works]


def _common(at: datetime) -> list[Cause]:
    return [Cause(What.NODE_DOWN, at, name="h100-01"), Cause(What.POLICY, at, name="quotas")]
