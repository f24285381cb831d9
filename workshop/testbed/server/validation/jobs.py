"""Jobs: what a new one must say, and what an existing one may change (as on 1.36)."""

from __future__ import annotations

from workshop.testbed.server.kinds.errors import (
    Cause,
    immutable,
    invalid_value,
    required,
    unsupported,
)
from workshop.testbed.server.kinds.resources import Json

from .names import labels_faults
from .pods import pod_spec_faults

_COUNTS = (
    "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
    "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_FIXED = (
    "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy",
    "successPolicy",
)  # fmt: skip
_TEMPLATE = "spec.template"


def job_faults(body: Json) -> list[Cause]:
    """Return what is wrong with a Job."""
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return [required("spec.template.spec.containers")]
    found = [
        invalid_value(f"spec.{name}", spec[name], "must be greater than or equal to 0")
        for name in _COUNTS
        if spec.get(name) is not None and spec[name] < 0
    ]
    found += _mode_faults(spec) + _selector_faults(body, spec) + _template_faults(spec)
    return found + _failure_policy_faults(spec)


def _mode_faults(spec: Json) -> list[Cause]:
    mode = spec.get("completionMode")
    if mode not in ("NonIndexed", "Indexed"):
        return [unsupported("spec.completionMode", mode, ("Indexed", "NonIndexed"))]
    if mode == "Indexed" and spec.get("completions") is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    return []


def _failure_policy_faults(spec: Json) -> list[Cause]:
    """A Job that judges how pods end has to see them end: no restarts, no early replacement."""
    if not spec.get("podFailurePolicy"):
        return []
    found = []
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy != "Never":
        hint = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(invalid_value(f"{_TEMPLATE}.spec.restartPolicy", policy, hint))
    if spec.get("podReplacementPolicy") != "Failed":
        given = spec.get("podReplacementPolicy")
        found.append(unsupported("spec.podReplacementPolicy", given, ("Failed",)))
    return found


def _selector_faults(body: Json, spec: Json) -> list[Cause]:
    if spec.get("manualSelector") and spec.get("selector") is None:
        return [required("spec.selector")]
    uid = body["metadata"].get("uid")
    generated = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    legacy = {"matchLabels": {"controller-uid": uid}}
    if not spec.get("manualSelector") and spec.get("selector") not in (generated, legacy, None):
        hint = "`selector` not auto-generated"
        return [invalid_value("spec.selector", spec.get("selector"), hint)]
    return []


def _template_faults(spec: Json) -> list[Cause]:
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    found = pod_spec_faults(pod, f"{_TEMPLATE}.spec")
    labels = (template.get("metadata") or {}).get("labels")
    found += labels_faults(labels, f"{_TEMPLATE}.labels")
    if pod.get("restartPolicy") not in ("OnFailure", "Never"):
        hint = 'valid values: "OnFailure", "Never"'
        found.append(required(f"{_TEMPLATE}.spec.restartPolicy", hint))
    return found


def job_update_faults(new: Json, old: Json) -> list[Cause]:
    """Return what may not change from `old` to `new`."""
    ours, theirs = new["spec"], old["spec"]
    found = [
        immutable(f"spec.{name}", ours.get(name))
        for name in _FIXED
        if ours.get(name) != theirs.get(name)
    ]
    return found + _completions_faults(ours, theirs) + _template_update_faults(ours, old)


def _completions_faults(ours: Json, theirs: Json) -> list[Cause]:
    """Indexed Jobs grow and shrink by changing completions and parallelism to the same number."""
    completions = ours.get("completions")
    if completions == theirs.get("completions"):
        return []
    if theirs.get("completionMode") != "Indexed":
        return [immutable("spec.completions", completions)]
    if completions != ours.get("parallelism"):
        hint = "can only be modified in tandem with spec.parallelism"
        return [invalid_value("spec.completions", completions, hint)]
    return []


def _template_update_faults(ours: Json, old: Json) -> list[Cause]:
    theirs = old["spec"]
    template, previous = ours["template"], theirs["template"]
    if template is previous or template == previous:
        return []
    if not _is_mutable(old):
        return [immutable(_TEMPLATE, "the pod template")]
    if _fixed_part(template) == _fixed_part(previous):
        return []
    return [immutable(f"{_TEMPLATE}.spec", "the pod's spec")]


def _is_mutable(job: Json) -> bool:
    """Return whether a Job is suspended, has no active pods, and its controller knows of both."""
    status = job.get("status") or {}
    conditions = status.get("conditions") or ()
    noted = any(c["type"] == "Suspended" and c["status"] == "True" for c in conditions)
    seen = noted or not status.get("startTime")
    return bool(job["spec"].get("suspend")) and seen and not status.get("active")


def _fixed_part(template: Json) -> Json:
    """Return a template's spec without what a suspended Job may change.

    Free are the metadata, and of the spec node selector, node affinity, tolerations, scheduling
    gates and the resources of containers.
    """
    spec = dict(template.get("spec") or {})
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        spec.pop(key, None)
    affinity = dict(spec.pop("affinity", None) or {})
    affinity.pop("nodeAffinity", None)
    for key in ("containers", "initContainers"):
        spec[key] = [
            {name: value for name, value in container.items() if name != "resources"}
            for container in spec.get(key) or ()
        ]
    return {"spec": spec, "affinity": affinity}
