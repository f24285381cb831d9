"""How admission policies read the kinds that hold work, in CEL: each adapter declares its own.

Policies are evaluated in the API server, where none of our code runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.cluster.vocabulary import vendors


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """How admission policies read a kind of object, in CEL.

    ``pod_specs`` is the list of its pods' specs, ``waits`` whether it is created waiting, and
    ``remedy`` says how to make it so. One without ``waits`` has no way to, and may not ask for GPUs:
    ``remedy`` says what to use. ``gpus`` counts those of all its pods together, and ``limit_s`` is the
    field that bounds its run time in seconds, where it has one. ``meta`` holds labels and annotations.
    """

    name: str
    resource: str
    group: str
    version: str
    pod_specs: str
    waits: str
    remedy: str
    gpus: str = "0"
    limit_s: str = ""
    resources: tuple[str, ...] = ()
    """Places besides pod specs that state what its pods ask for."""
    patches: str = ""
    """Whether POD holds for the spec ``s`` of any of the pods that it patches."""
    meta: str = "object.metadata"

    @property
    def written_by(self) -> list[str]:
        """Resources whose update may change its metadata: with the status of Kubernetes' own kinds too, not
        with that of custom ones, whose groups have dots."""
        own = [] if "." in self.group else [f"{self.resource}/status"]
        return [self.resource, *own]

    @property
    def qualified(self) -> str:
        """What an owner reference tells it by: its group (of the core its version) and name."""
        return f"{self.group or self.version}/{self.name}"

    def any_pod(self, condition: str) -> str:
        """Whether ``condition`` holds for the spec ``s`` of any of its pods."""
        own = f"variables.podSpecs.exists(s, {condition})"
        return f"({own} || {self.patches.replace('POD', condition)})" if self.patches else own


Waits = tuple[str, str]
"""Whether it is created waiting, and how to make it so."""


def policy_kind(
    name: str, resource: str, api_version: str, *, pods: str, waits: Waits, **more: Any
) -> PolicyKind:
    """Of a kind with that plural; ``pods`` is the list of their specs, ``more`` the rest of its fields."""
    group, _, version = api_version.rpartition("/")
    return PolicyKind(name, resource, group, version, pods, *waits, **more)


def is_there(path: str, root: str) -> str:
    """Whether every part of ``path`` below ``root`` is there."""
    parts, known = path.split("."), root.count(".") + 1
    return " && ".join(f"has({'.'.join(parts[:i])})" for i in range(known + 1, len(parts) + 1))


def is_noted(meta: str, note: str) -> str:
    """Whether ``meta`` has an annotation of that name which says something."""
    notes = f"{meta}.annotations"
    return f"(has({meta}) && has({notes}) && '{note}' in {notes} && {notes}['{note}'] != '')"


def count(path: str, default: int) -> str:
    """The whole number at ``path``, at least 0."""
    return f"[has({path}) ? int({path}) : {default}, 0].max()"


IS_GPU = "(r in variables.gpuResources || (r.contains('/') && r.matches(variables.gpuShape)))"
"""Whether ``r`` is a resource of a GPU class, or called as GPUs are."""


def gpu_variables(resources: Sequence[str]) -> dict[str, str]:
    """The variables that IS_GPU reads; ``resources`` are those of GPU classes."""
    return {"gpuResources": listed(resources), "gpuShape": f"'{vendors.shape()}'"}


def listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in sorted(set(names))) + "]"


def limits_of(resources: str) -> str:
    """GPUs that the limits in ``resources`` allow."""
    limits = f"{resources}.limits"
    each = f"quantity(string({limits}[r])).asInteger()"
    return f"(has({limits}) ? {limits}.filter(r, {IS_GPU}).map(r, {each}).sum() : 0)"


def gpus_of(spec: str) -> str:
    """GPUs of a pod: init containers run before the others, those that are restarted always beside them."""
    own = f"(has(c.resources) ? {limits_of('c.resources')} : 0)"
    always = "(has(c.restartPolicy) && c.restartPolicy == 'Always')"
    first = f"{spec}.initContainers"
    main = f"(has({spec}.containers) ? {spec}.containers.map(c, {own}).sum() : 0)"
    before = f"([0] + {first}.filter(c, !{always}).map(c, {own})).max()"
    beside = f"{first}.filter(c, {always}).map(c, {own}).sum()"
    return f"(has({first}) ? {beside} + [{main}, {before}].max() : {main})"


SUSPEND = ("has(object.spec.suspend) && object.spec.suspend == true", "Set spec.suspend: true")
TEMPLATE = "object.spec.template.spec"
DEADLINE = "object.spec.activeDeadlineSeconds"
