"""What the submit form begins with: what was submitted last, a template, or the whole of other work.

A clone is the manifest itself. The form takes it if what the form makes of it is that manifest again; else
it is put into the box for manifests, where nothing of it is lost.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.accounts.models import User
from portal.teams.access import submittable_queues, visible_workloads
from portal.teams.models import Submitted
from portal.web.workloads import manifest as texts
from portal.web.workloads.fields import duration_text, pairs_text
from portal.web.workloads.forms import SubmitForm
from scheduling.models import Cluster, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import submit as workloads
from scheduling.services.workloads.manifest import SET_BY_SUBMITTING, asked_of
from scheduling.services.workloads.turns import NOT_COPIED

Json = dict[str, Any]
LONGEST_NAME = 58


@dataclass(frozen=True, slots=True)
class Copy:
    """Either values for the form or the text of a manifest; ``note`` says what could not be had."""

    values: Json = field(default_factory=dict)
    text: str = ""
    note: str = ""


def clone_of(user: User, cluster: Cluster, uid: str) -> Copy | None:
    """Of a workload that ``user`` may see: whole for its owner, and for whoever may submit to its queue."""
    seen = visible_workloads(user).filter(cluster=cluster)
    work = seen.select_related("queue", "priority_class").filter(uid=uid).first()
    if work is None:
        return None
    manifest = _manifest_of(user, work)
    if manifest is None:
        note = "Its manifest is not there any more: image, command and environment are yours to fill in."
        return Copy(_values_of(work), note=note)
    manifest["metadata"]["name"] = f"{work.name[:LONGEST_NAME]}-copy"
    for note in NOT_COPIED:
        (manifest["metadata"].get("annotations") or {}).pop(note, None)
    values = values_in(manifest)
    if values is not None and _makes(user, cluster, values, manifest):
        return Copy(values)
    return Copy(text=texts.write(manifest))


def last_of(user: User, cluster: Cluster) -> Json:
    """Image and command of what ``user`` submitted last here; empty before that."""
    last = Submitted.objects.filter(cluster=cluster, user=user).first()
    values = values_in(last.manifest) if last else None
    return {name: values[name] for name in ("image", "command")} if values else {}


def _manifest_of(user: User, work: Workload) -> Json | None:
    """As it was submitted, else as the cluster has it; None for whom it is not, and where it is gone."""
    may = bool(work.user) and work.user == user.get_username()
    if not may and work.queue is not None:
        may = submittable_queues(user).filter(pk=work.queue.pk).exists()
    if not may:
        return None
    row = Submitted.objects.filter(cluster_id=work.cluster_id, uid=work.uid).first()
    if row is not None:
        manifest: Json = copy.deepcopy(row.manifest)
        return manifest
    try:
        return workloads.manifest_of(work)
    except ServiceError:
        return None


def values_in(manifest: Mapping[str, Any]) -> Json | None:
    """The form's values for a Job of one container; None for anything else."""
    try:
        return _values(manifest)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def _values(manifest: Mapping[str, Any]) -> Json | None:
    options = asked_of(manifest)
    if options is None:
        return None
    values: Json = {
        **{
            name: options[name]
            for name in ("name", "queue", "image", "priority_class", "gpus_per_pod")
        },
        "command": shlex.join(options["command"]),
        "pods_min": options["pods_min"],
        "pods_max": options["pods_max"] if options["pods_max"] != options["pods_min"] else "",
        "cpus_per_pod": options["cpus_per_pod"] or "",
        "memory_gib_per_pod": options["memory_gib_per_pod"] or "",
        "run_time_limit": duration_text(options["run_time_limit_s"]),
        "checkpoint_every": duration_text(options["checkpoint_interval_s"]),
        "env": pairs_text(options["env"]),
        "labels": pairs_text(options["own_labels"]),
        "volumes": pairs_text(options["volumes"]),
        "secrets": ", ".join(options["secrets"]),
        **_topology_values(options["topology"]),
        "after": ", ".join(options["after"]),
    }
    return values | {f"class_{i + 1}": name for i, name in enumerate(options["gpu_classes"])}


def _makes(user: User, cluster: Cluster, values: Json, manifest: Json) -> bool:
    """Whether the form makes ``manifest`` of ``values``, but for what Weir itself sets."""
    form = SubmitForm(user, cluster, initial=values)
    draft = form.draft()
    return draft is not None and _bare(draft) == _bare(manifest)


def _bare(manifest: Json) -> Json:
    """Without what submitting sets or an API server fills in, whatever was written."""
    bare = copy.deepcopy(manifest)
    meta = bare["metadata"]
    meta.pop("namespace", None)
    notes = meta.get("annotations") or {}
    meta["annotations"] = {
        name: notes[name] for name in sorted(notes) if name not in SET_BY_SUBMITTING
    }
    return bare


def _values_of(work: Workload) -> Json:
    """What a clone of ``work`` begins with where its manifest cannot be had."""
    values: Json = {
        "name": f"{work.name[:58]}-copy",
        "queue": work.queue.name if work.queue else "",
        "priority_class": work.priority_class.name if work.priority_class else "",
        "gpus_per_pod": max(1, work.gpus // 1000),
        "pods_min": work.min_members,
        "pods_max": work.max_members if work.max_members != work.min_members else None,
        "cpus_per_pod": work.cpus / 1000 or None,
        "memory_gib_per_pod": work.memory_mib / 1024 or None,
        "run_time_limit": duration_text(work.run_time_limit_s),
        "checkpoint_every": duration_text(work.checkpoint_interval_s),
        **_topology_values(work.topology),
    }
    values |= {f"class_{i + 1}": name for i, name in enumerate(work.gpu_classes)}
    return values


def _topology_values(said: Mapping[str, str]) -> Json:
    """What the form says of it: the levels that are required."""
    return {
        "together": said.get("required", ""),
        "segment_size": said.get("segment_size", "") if "segment_required" in said else "",
        "segment_level": said.get("segment_required", ""),
    }
