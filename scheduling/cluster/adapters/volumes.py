"""Which volumes a pod spec mounts that may be bound to some nodes: claims by name, and classes of those that
are made with the pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def of(spec: Mapping[str, Any], namespace: str) -> Json:
    """``claims`` are PersistentVolumeClaims as namespace/name, ``classes`` StorageClasses by name, empty for
    the cluster's default; whichever there are."""
    volumes = [volume for volume in spec.get("volumes") or [] if isinstance(volume, dict)]
    claims = {
        f"{namespace}/{name}"
        for volume in volumes
        if (name := (volume.get("persistentVolumeClaim") or {}).get("claimName"))
    }
    classes = {
        str((made.get("spec") or {}).get("storageClassName") or "")
        for volume in volumes
        if (made := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"))
    }
    found = {"claims": sorted(claims), "classes": sorted(classes)}
    return {name: each for name, each in found.items() if each}


def that_bind(spec: Mapping[str, Any]) -> list[Json]:
    """Those volumes of a pod spec alone."""
    kinds = ("persistentVolumeClaim", "ephemeral")
    return [v for v in spec.get("volumes") or [] if any(kind in v for kind in kinds)]
