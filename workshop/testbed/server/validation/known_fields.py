"""Which fields there are. Others are dropped, or refused if the client asks for that."""

from __future__ import annotations

from typing import Any

from workshop.testbed.server.kinds.resources import Json


def _fields(names: str, **parts: str) -> dict[str, str]:
    """Return field -> kind of its value; "" is not looked into."""
    return {**dict.fromkeys(names.split(), ""), **parts}


_KINDS: dict[str, dict[str, str]] = {
    "Job": _fields("apiVersion kind metadata status", spec="JobSpec"),
    "JobSpec": _fields(
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions "
        "managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy "
        "podReplacementPolicy scheduling selector successPolicy suspend ttlSecondsAfterFinished",
        template="Template",
    ),
    "Template": _fields("metadata", spec="PodSpec"),
    "Pod": _fields("apiVersion kind metadata status", spec="PodSpec"),
    "PodSpec": _fields(
        "activeDeadlineSeconds affinity automountServiceAccountToken dnsConfig dnsPolicy "
        "enableServiceLinks ephemeralContainers evictionResponders hostAliases hostIPC "
        "hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets nodeName "
        "nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates "
        "resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates "
        "schedulingGroup securityContext serviceAccount serviceAccountName setHostnameAsFQDN "
        "shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations "
        "topologySpreadConstraints volumes workloadRef",
        containers="Container",
        initContainers="Container",
    ),
    "Container": _fields(
        "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports "
        "readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext "
        "startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty "
        "volumeDevices volumeMounts workingDir"
    ),
}


def drop_unknown(kind: str, body: Json, path: str = "") -> list[str]:
    """Remove fields that `kind` does not have from `body`, in place; return their paths.

    Kinds that are not described keep everything; directives of patches (`$patch`) stay.
    """
    known = _KINDS.get(kind)
    if known is None:
        return []
    unknown = [key for key in body if key not in known and not key.startswith("$")]
    for key in unknown:
        del body[key]
    found = [f"{path}{key}" for key in unknown]
    for key, part in known.items():
        if part and key in body:
            found += _drop_below(part, body[key], f"{path}{key}")
    return found


def _drop_below(kind: str, value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        return drop_unknown(kind, value, f"{path}.")
    if not isinstance(value, list):
        return []
    return [
        fault
        for index, item in enumerate(value)
        if isinstance(item, dict)
        for fault in drop_unknown(kind, item, f"{path}[{index}].")
    ]
