"""How lists and maps of the served kinds merge: by key, as sets, or as one value.

Names of fields are enough to tell, because no two served kinds use one name in two ways.
"""

from __future__ import annotations

STRATEGIC_KEYS: dict[str, str] = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "env": "name",
    "volumes": "name", "imagePullSecrets": "name", "schedulingGates": "name",
    "resourceClaims": "name", "ports": "containerPort", "volumeMounts": "mountPath",
    "volumeDevices": "devicePath", "hostAliases": "ip", "topologySpreadConstraints": "topologyKey",
    "conditions": "type", "addresses": "type", "ownerReferences": "uid",
    "podIPs": "ip", "secrets": "name", "variables": "name", "matchConditions": "name",
}  # fmt: skip
"""Lists that a strategic merge patch merges item by item, and the key of an item."""

STRATEGIC_SETS = frozenset({"finalizers", "podCIDRs"})
"""Lists of plain values that a strategic merge patch adds to."""

APPLY_KEYS: dict[str, tuple[str, ...]] = {
    **{name: (key,) for name, key in STRATEGIC_KEYS.items() if name != "ports"},
    "ports": ("containerPort", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
"""Lists that server-side apply owns item by item."""

APPLY_SETS = frozenset({"finalizers", "podCIDRs"})

ATOMIC = frozenset(
    {
        "nodeSelector", "selector", "requiredDuringSchedulingIgnoredDuringExecution", "secretRef",
        "labelSelector", "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef",
        "involvedObject", "roleRef", "namespaceSelector", "objectSelector", "paramRef",
    }
)  # fmt: skip
"""Maps that server-side apply owns as one value."""
