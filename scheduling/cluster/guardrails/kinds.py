"""The kinds that admission policies judge: what is queued, and what would carry GPUs past the queues."""

from __future__ import annotations

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.adapters.cel import TEMPLATE, PolicyKind, count, gpus_of

KINDS: tuple[PolicyKind, ...] = tuple(adapter.policy for adapter in ADAPTERS)
"""Kinds that are queued."""

_CRON = "object.spec.jobTemplate"
CARRIERS: tuple[PolicyKind, ...] = (
    PolicyKind(
        "CronJob",
        "cronjobs",
        "batch",
        "v1",
        f"[{_CRON}.spec.template.spec]",
        f"has({_CRON}.spec.suspend) && {_CRON}.spec.suspend == true",
        "Set spec.jobTemplate.spec.suspend: true",
        gpus=f"{count(f'{_CRON}.spec.parallelism', 1)} * {gpus_of(f'{_CRON}.spec.template.spec')}",
        limit_s=f"{_CRON}.spec.activeDeadlineSeconds",
        meta=f"{_CRON}.metadata",
    ),
    *(
        PolicyKind(
            name,
            f"{name.lower()}s",
            group,
            "v1",
            f"[{TEMPLATE}]",
            "",
            f"GPU work cannot wait in a {name}. Use {instead}.",
        )
        for name, group, instead in (
            ("StatefulSet", "apps", "a Deployment or a LeaderWorkerSet"),
            ("ReplicaSet", "apps", "a Deployment"),
            ("ReplicationController", "", "a Deployment"),
            ("DaemonSet", "apps", "a Job of its own for each node"),
        )
    ),
)
"""Kinds that are not queued and make pods or Jobs which could be."""
