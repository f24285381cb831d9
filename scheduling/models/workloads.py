"""Workloads as the cluster shows them and as the engine last judged them.

The cluster is the truth: these rows are its projection, kept so that people can read, filter and
look back. GPU columns are milli-GPU, CPU columns milli-CPU. Only ``services.lifecycle`` writes
``state``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from scheduling.engine.model import MILLI, Role, WorkloadType
from scheduling.engine.roles import by_role, members_on, pods_beside
from scheduling.models.clusters import Cluster, GpuClass, dns_label
from scheduling.models.queues import Queue


class State(models.TextChoices):
    """The lifecycle. PENDING and REQUEUED wait; ADMITTED, RUNNING and EVICTED hold GPUs."""

    PENDING = "pending", "Pending"
    ADMITTED = "admitted", "Admitted"
    RUNNING = "running", "Running"
    EVICTED = "evicted", "Evicted"
    REQUEUED = "requeued", "Requeued"
    FINISHED = "finished", "Finished"


WAITING = (State.PENDING, State.REQUEUED)
HOLDING = (State.ADMITTED, State.RUNNING, State.EVICTED)


class Outcome(models.TextChoices):
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class EndCause(models.TextChoices):
    """Why work ended that did not succeed, or what came over a pod of it that does not run."""

    RUN_TIME_LIMIT = "run_time_limit", "Run-time limit"
    OUT_OF_MEMORY = "out_of_memory", "Out of memory"
    IMAGE = "image", "Image not pulled"
    NODE_LOST = "node_lost", "Node lost"
    EVICTED = "evicted", "Evicted by the cluster"
    CONTAINER = "container", "Container not started"
    EXIT_CODE = "exit_code", "Exit code"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class PriorityClass(models.Model):
    """Value, protection and kind of work; mirrors a Kubernetes PriorityClass of the same name."""

    name = models.CharField(max_length=63, unique=True, validators=[dns_label])
    value = models.IntegerField(default=0)
    preemptible = models.BooleanField(default=True)
    min_run_time_s = models.PositiveIntegerField(default=0)
    type = models.CharField(
        max_length=11,
        choices=[(t.value, t.value.title()) for t in WorkloadType],
        default=WorkloadType.TRAINING.value,
    )
    max_wait_s = models.PositiveIntegerField(null=True, blank=True)
    """Work that has waited longer goes first in its leaf; NULL is never."""
    is_default = models.BooleanField(default=False)

    class Meta:
        ordering = ["-value", "name"]
        verbose_name_plural = "priority classes"
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"],
                condition=Q(is_default=True),
                name="priority_class_one_default",
            )
        ]

    def __str__(self) -> str:
        return self.name


def _role(shape: dict[str, Any]) -> Role:
    gpus, least = round(shape["gpus"] * MILLI), shape.get("pods_min", shape["pods"])
    return Role(str(gpus), least, gpus, extra=shape["pods"] - least)


class Workload(models.Model):
    """One unit of admission: a gang of pods owned by one object of the cluster."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="workloads")
    uid = models.CharField(max_length=64)
    kind = models.CharField(max_length=63, default="Job")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    queue = models.ForeignKey(
        Queue, on_delete=models.SET_NULL, null=True, blank=True, related_name="workloads"
    )
    queue_label = models.CharField(max_length=63, blank=True)
    """The label as written; ``queue`` is NULL when it names none (misrouted)."""
    user = models.CharField(max_length=150, blank=True)
    priority_class = models.ForeignKey(
        PriorityClass, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    type = models.CharField(
        max_length=11,
        choices=[(t.value, t.value.title()) for t in WorkloadType],
        default=WorkloadType.TRAINING.value,
    )

    gpus = models.PositiveIntegerField(default=1000)
    cpus = models.PositiveIntegerField(default=0)
    memory_mib = models.PositiveIntegerField(default=0)
    min_members = models.PositiveIntegerField(default=1)
    max_members = models.PositiveIntegerField(default=1)
    elastic = models.BooleanField(default=False)
    shapes = models.JSONField(default=list)
    """``{roles, pods, gpus}`` of members that ask for unlike numbers of GPUs, and ``pods_min`` of those of
    which plans may leave out some; empty where they are alike.
    Such a gang is counted in parts: ``gpus`` is the most that divides those of each pod, ``members`` are
    parts."""
    gpu_classes = models.JSONField(default=list)
    topology = models.JSONField(default=dict)
    image = models.CharField(max_length=511, blank=True)
    """Of the first container that asks for GPUs, else of the first."""
    run_time_limit_s = models.PositiveIntegerField(null=True, blank=True)
    checkpoint_interval_s = models.PositiveIntegerField(null=True, blank=True)
    predicted_p50_s = models.FloatField(null=True, blank=True)
    """As its author says; what was learned is its ``prediction``."""
    predicted_p90_s = models.FloatField(null=True, blank=True)
    held = models.BooleanField(default=False)
    turn = models.JSONField(default=dict)
    """When its author lets it start, as ``turns.Turn.document``; empty: as soon as it can."""

    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    outcome = models.CharField(max_length=9, choices=Outcome.choices, blank=True)
    cause = models.CharField(max_length=14, choices=EndCause.choices, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    """Of the container that ended with an error."""
    cause_said = models.CharField(max_length=300, blank=True)
    """The cluster's own words for it."""
    submitted_at = models.DateTimeField()
    admitted_at = models.DateTimeField(null=True, blank=True)
    first_started_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    """Of the current or last run."""
    checkpointed_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    gpu_class = models.ForeignKey(
        GpuClass, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    members = models.PositiveIntegerField(default=0)
    """Members admitted now."""
    placement = models.JSONField(default=dict)
    """Members by node name."""
    short_since = models.DateTimeField(null=True, blank=True)
    """Since when a gang that starts in stages has members missing whose turn has come."""

    reason = models.CharField(max_length=40, blank=True)
    sentence = models.TextField(blank=True)
    sealed = models.JSONField(null=True, default=None)
    """As ``services.told.sealed_of``; NULL where nobody kept whom the sentence names."""
    numbers = models.JSONField(default=dict)
    until = models.DateTimeField(null=True, blank=True)
    position = models.PositiveIntegerField(null=True, blank=True)
    eviction_count = models.PositiveIntegerField(default=0)
    used_gpu_s = models.FloatField(default=0)
    """GPU-seconds held up to ``held_since``; what it holds since then comes on top."""
    held_since = models.DateTimeField(null=True, blank=True)
    """Since when it holds as much as it does now; NULL where that is since its admission."""
    lost_gpu_s = models.FloatField(default=0)
    virtual_start_at = models.DateTimeField(null=True, blank=True)
    """When it would have started on the nominal quota of its queue alone; NULL before."""
    class_on_own_quota = models.CharField(max_length=63, blank=True)
    """The GPU class that it would have had there."""
    own_pace = models.FloatField(default=1)
    """How many times as long it takes there as on the class that it runs on; 1 where nobody knows."""
    saved_s = models.FloatField(default=0)
    """Seconds of work that checkpoints of runs hold that were evicted."""
    claim = models.JSONField(null=True, default=None)
    """What it was promised while it waits for others to leave, as ``services.ledger.claims`` reads it."""
    taken_gpus = models.PositiveBigIntegerField(default=0)
    """Milli-GPU that were evicted for it since it waits."""
    recent_evictions = models.JSONField(default=list)
    """When Weir evicted it in the day before the last time, ISO, the last included."""
    last_evicted_at = models.DateTimeField(null=True, blank=True)
    last_evicted_for = models.CharField(max_length=383, blank=True)
    """Engine name of the workload that the last eviction made room for; empty where it was for none."""

    stepped_at: datetime | None = None
    """Of its last step, as far as this process made it; not a column."""

    class Meta:
        ordering = ["submitted_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="workload_uid_unique"),
            models.CheckConstraint(
                condition=Q(max_members__gte=models.F("min_members")),
                name="workload_max_at_least_min",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "state", "queue"], name="workload_state_queue"),
            models.Index(fields=["cluster", "user", "state"], name="workload_user_state"),
            models.Index(fields=["cluster", "first_started_at"], name="workload_first_started"),
            models.Index(fields=["cluster", "submitted_at"], name="workload_submitted"),
            models.Index(fields=["cluster", "finished_at"], name="workload_finished"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def place(self) -> int | None:
        """Among those of its queue that wait to start, 1 first, as the plan last told; None of what is held,
        though the next plan has yet to say so."""
        return None if self.held else self.position

    @property
    def requested_gpus(self) -> int:
        """Milli-GPU of the whole gang at its smallest."""
        return self.gpus * self.min_members

    @property
    def pod_count(self) -> int:
        """Pods that hold GPUs now."""
        return self.pods_of(self.members)

    def pods_of(self, members: int) -> int:
        """Of so many members: all that it has where they are parts of unlike ones."""
        if not self.shapes or not members:
            return members
        missing = self.gpus * (self.max_members - members)
        return sum(
            pods_beside(role.members + role.extra, role.extra, role.gpus, missing)
            for role in self.roles
        )

    @property
    def roles(self) -> tuple[Role, ...]:
        """Of unlike members, each named by the milli-GPU of one."""
        return tuple(_role(one) for one in self.shapes)

    @property
    def shapes_now(self) -> list[tuple[dict[str, Any], int | None]]:
        """Its shapes, each with the pods of it that are placed; None where none is, or all have one size."""
        if not self.elastic or self.state not in HOLDING:
            return [(one, None) for one in self.shapes]
        found = by_role(self.roles, self.placement, self.gpus)
        return [(one, found[_role(one).name]) for one in self.shapes]

    @property
    def pods_by_node(self) -> dict[str, int]:
        """Pods by node; of unlike ones as the parts on each node allow."""
        if not self.shapes:
            return dict(self.placement)
        found, loose = members_on(self.roles, self.placement, self.gpus)
        pods = dict.fromkeys(self.placement, 0)
        for _, node, members in found:
            pods[node] += members
        return {node: pods[node] or loose.get(node, 0) for node in pods}

    @property
    def allocated_gpus(self) -> int:
        """Milli-GPU held now."""
        return self.gpus * self.members if self.state in HOLDING else 0

    def held_gpu_s(self, now: datetime) -> float:
        """GPU-seconds of its class that it has held up to ``now``."""
        return self.used_gpu_s + self._held_of_late(now)

    def _held_of_late(self, now: datetime) -> float:
        since = self.held_since
        if since is None and self.state in (State.ADMITTED, State.RUNNING):
            since = self.admitted_at
        if since is None:
            return 0.0
        return self.allocated_gpus / 1000 * max(0.0, (now - since).total_seconds())

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING


class Transition(models.Model):
    """One step of a workload's life, in cluster time; the state timeline is read from these, and what work
    held: so many GPUs from each step to the next. A change of size is a step from a state to itself."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="transitions")
    at = models.DateTimeField()
    from_state = models.CharField(max_length=8, choices=State.choices, blank=True)
    to_state = models.CharField(max_length=8, choices=State.choices)
    reason = models.CharField(max_length=40, blank=True)
    sentence = models.TextField(blank=True)
    sealed = models.JSONField(null=True, default=None)
    """As ``services.told.sealed_of``; NULL where nobody kept whom the sentence names."""
    actor = models.CharField(max_length=150, blank=True)
    """User name, 'engine' or 'cluster'."""
    gpus = models.PositiveIntegerField(default=0)
    """Milli-GPU held after the step."""
    gpu_class = models.ForeignKey(
        GpuClass, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """Of what is held after the step; NULL where nothing is, and in rows of old: that of the workload."""

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["workload", "at"], name="transition_workload_at")]

    def __str__(self) -> str:
        return f"{self.workload}: {self.from_state} → {self.to_state}"


class EditKind(models.TextChoices):
    CHANGED = "changed", "Changed"
    HELD = "held", "Put on hold"
    RELEASED = "released", "Released"
    PRIORITY_SET = "priority_set", "Priority class set"


class WorkloadEdit(models.Model):
    """What somebody did to work that waits, in cluster time, and what became otherwise by it."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="edits")
    at = models.DateTimeField()
    kind = models.CharField(max_length=12, choices=EditKind.choices, default=EditKind.CHANGED)
    actor = models.CharField(max_length=150, blank=True)
    """User name; empty for what was done to the object in the cluster, where nobody knows by whom."""
    before = models.JSONField(null=True, default=None)
    """Column of the workload -> its value before, ``priority_class`` by name; NULL until a cycle saw it."""
    after = models.JSONField(default=dict)
    """The same columns as they are since."""

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.workload}: {self.kind} by {self.actor or 'nobody known'}"


class CheckpointHabit(models.Model):
    """How long the last workloads of a user in a queue went without a checkpoint, as far as they announce it.

    ``recent`` is a list of [uid of a workload, its last intervals in seconds], the latest last; no
    interval is one that ran on without announcing. ``services.checkpoints`` says what follows from it.
    """

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="checkpoint_habits")
    user = models.CharField(max_length=150, blank=True)
    recent = models.JSONField(default=list)

    class Meta:
        ordering = ["queue", "user"]
        constraints = [
            models.UniqueConstraint(fields=["queue", "user"], name="checkpoint_habit_unique")
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.queue}"
