"""What every kind shares whose pods come from templates: one role a template, gangs of GPU pods.

Members of a workload are its pods that carry GPUs; a head or launcher without GPUs comes along
unplanned. The engine plans members of one size: roles that ask for different numbers of GPUs are a
fault, said with its remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from scheduling.cluster import labels
from scheduling.cluster.adapters import fitting, merging, notes, originals, sizing, steering
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.base import Admission, ClassSpec, Observed
from scheduling.cluster.adapters.originals import Original
from scheduling.cluster.devices import Claims
from scheduling.cluster.quantities import MOST, instant, whole
from scheduling.cluster.runtimes import NO_RUNTIMES, Runtimes
from scheduling.cluster.runtimes import of as runtime_of

Json = dict[str, Any]

MIXED = (
    "Its pods ask for {amounts} GPUs, and Weir plans members of one size. Give every pod the same"
    " number of GPUs, or none to those that only lead."
)


LARGEST_GANG = 150_000
"""As many pods as Kubernetes is built for (kubernetes.io, "Considerations for large clusters")."""
TOO_MANY = (
    "It asks for {pods:,} pods at once, and no cluster has more than {most:,}. Ask for fewer."
)
NOT_HERE = (
    "It is managed by {controller}, which nothing here starts or stops, so Weir holds no GPUs for it. Make it"
    " anew without managedBy to run it here, or take its queue label off."
)
NO_PODS = "It asks for no pods. Ask for at least one."


@dataclass(slots=True)
class Role:
    """Pods made from one template. ``template`` may be edited in place by ``steer``.

    ``resize`` sets how many there are, where plans may; ``lowest`` and ``highest`` are the bounds where the
    object itself states them. ``restore`` sets it where only what a person raised is to be taken back.
    """

    name: str
    count: int
    template: Json
    resize: Callable[[int], None] | None = None
    lowest: int | None = None
    highest: int | None = None
    restore: Callable[[int], None] | None = None
    spare: int = 0
    """Pods among them that an autoscaler of its own may leave out."""

    @property
    def pod(self) -> Json:
        """Its pods' spec."""
        spec: Json = self.template["spec"]
        return spec


class RoleAdapter:
    """An Adapter made of a few answers: where the roles are, how it is suspended, how it ends."""

    kind: str
    api_version: str
    plural: str
    takes_affinity = True
    """Templates of a suspended object take a node affinity, else a node selector only."""
    swaps_resources = False
    """They take another resource name as well."""
    is_mirrored_whole = True
    has_helpers = False
    """It makes pods besides those of its roles."""
    ends: ClassVar[Mapping[str, str]] = {"Complete": "succeeded", "Failed": "failed"}
    """Condition -> outcome."""
    controller = ""
    """What ``managedBy`` calls the kind's own controller."""

    # what a kind answers

    def roles(self, obj: Json) -> list[Role]:
        """Its templates in a fixed order. Raises ValueError with the remedy when it does not say."""
        raise NotImplementedError

    def is_suspended(self, obj: Json) -> bool:
        return bool(obj["spec"].get("suspend"))

    def set_suspended(self, obj: Json, suspended: bool) -> None:
        obj["spec"]["suspend"] = suspended

    def time_limit_s(self, obj: Json) -> int | None:
        limit: int | None = obj["spec"].get("activeDeadlineSeconds")
        return limit

    def managed_by(self, obj: Json) -> str:
        """Who runs it, where it says; the kind's own controller leaves others' alone."""
        return str(obj["spec"].get("managedBy") or "")

    def done(self, obj: Json, pods: Sequence[Json]) -> int:
        """Members that have done their part and are not missed; ``pods`` are those that are members."""
        return sum(pods_of.phase(pod) == "Succeeded" for pod in pods)

    def later(self, obj: Json, parts: Sequence[Json]) -> Mapping[str, bool]:
        """Names of roles whose pods start after those of others -> whether they may be there by now.
        ``parts`` are the objects that it made."""
        return {}

    def unsettled(self, obj: Json) -> int:
        """Pods that may still come or be there, although none is seen."""
        return 0

    def owner_name(self, pod: Json) -> str | None:
        return None

    def outcome(self, obj: Json) -> tuple[str, datetime | None]:
        status = obj.get("status") or {}
        for condition in status.get("conditions") or []:
            if condition.get("status") == "True" and condition["type"] in self.ends:
                ended = status.get("completionTime") or condition.get("lastTransitionTime")
                return self.ends[condition["type"]], instant(ended)
        return "", None

    # what follows from the answers

    @property
    def resource(self) -> str:
        return self.kind

    @property
    def list_path(self) -> str:
        return f"/apis/{self.api_version}/{self.plural}"

    def path(self, namespace: str, name: str = "") -> str:
        base = f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"
        return f"{base}/{name}" if name else base

    def trim(self, obj: Json) -> Json:
        """Only what a server keeps by itself goes, and what was copied of another object's admission: the
        rest is sent back with each write."""
        obj["metadata"].pop("managedFields", None)
        originals.disown(obj)
        return obj

    def is_over(self, obj: Json) -> bool:
        return bool(obj["metadata"].get("deletionTimestamp") or self.outcome(obj)[0])

    def queued(self, manifest: Json) -> Json:
        manifest.setdefault("spec", {})
        self.set_suspended(manifest, True)
        return manifest

    def observe(
        self,
        obj: Json,
        pods: Sequence[Json],
        classes: Sequence[ClassSpec],
        claims: Claims = pods_of.NO_CLAIMS,
        runtimes: Runtimes = NO_RUNTIMES,
        parts: Sequence[Json] = (),
    ) -> Observed:
        meta, said = obj["metadata"], notes.of(obj)
        outcome, finished = self.outcome(obj)
        return Observed(
            generation=int(meta.get("generation", 0)),
            run_time_limit_s=_bounded(self.time_limit_s(obj)),
            suspended=self.is_suspended(obj),
            deleting=bool(meta.get("deletionTimestamp")),
            run_by=self._run_by(obj),
            outcome=outcome,
            finished=finished,
            started=pods_of.last_start(filter(pods_of.is_ready, pods)),
            pods_left=max(sum(not pods_of.is_over(p) for p in pods), self.unsettled(obj)),
            **notes.identity(self.kind, obj),
            **self._demand(obj, pods, classes, claims, runtimes, parts),
            **notes.wishes(said, pods),
            **notes.state(said, classes),
        )

    def admission(self, obj: Json, admission: Admission) -> Json:
        def admit(new: Json) -> None:
            original = originals.of(obj)
            self.set_suspended(new, False)
            counted = sizing.counted_of(self.roles(new), admission.resource_names, admission.claims)
            lowest, highest = self._bounds(obj, counted, original)
            original.gpus = sizing.member_gpus(counted, admission)
            for role in counted:
                own = self._original(role, original, admission)
                if original.gpus:
                    self.steer(new, role, own, admission, fixed=lowest == highest)
                else:
                    self.give_back(new, role, own)
                original.roles[role.name] = own
            original.sizes = original.full(counted)
            sizing.set_size(counted, admission.members)
            new["metadata"]["annotations"] |= notes.mark(original, admission)

        return merging.edited(obj, admit)

    def suspension(self, obj: Json, evicted_by: int | None) -> Json:
        def suspend(new: Json) -> None:
            self.set_suspended(new, True)
            new["metadata"]["annotations"] |= notes.unmark(evicted_by)

        return merging.edited(obj, suspend)

    def restoration(self, obj: Json, resource_names: Sequence[str], claims: Claims) -> Json:
        def restore(new: Json) -> None:
            original = originals.of(obj)
            for role in self.roles(new):
                if kept := original.roles.get(role.name):
                    own = steering.original_of(role.pod, kept, resource_names, swaps=False)
                    self.give_back(new, role, own)
            counted = sizing.counted_of(self.roles(new), resource_names, claims)
            sizing.set_size(counted, sum(original.full(counted).values()))
            new["metadata"]["annotations"][labels.ORIGINAL] = None

        return merging.edited(obj, restore)

    def resize(self, obj: Json, admission: Admission) -> Json:
        def size(new: Json) -> None:
            original = originals.of(obj)
            counted = sizing.counted_of(self.roles(new), admission.resource_names, admission.claims)
            if sum(role.count for role in counted) == admission.members:
                return
            sizing.set_size(counted, admission.members)
            sizing.take_back(counted, original.sizes)
            counted = sizing.counted_of(self.roles(new), admission.resource_names, admission.claims)
            if sum(role.count for role in counted) > admission.members:
                self.set_suspended(new, True)
                new["metadata"]["annotations"] |= notes.unmark(None)
                return
            new["metadata"]["annotations"] |= {
                **notes.mark(original, admission),
                labels.ADMITTED_AT: notes.of(obj).get(labels.ADMITTED_AT),
            }

        return merging.edited(obj, size)

    def steer(
        self, new: Json, role: Role, original: Json, admission: Admission, *, fixed: bool
    ) -> None:
        """Send a role's pods to where the plan has them; ``new`` is edited in place."""
        if self.takes_affinity:
            steering.to_hosts(role.pod, original, admission, fixed=fixed)
        else:
            steering.to_class(role.pod, original, admission)
        steering.tolerate(role.pod, original, admission.gpu_class)
        if "resources" in original:
            steering.swap_resource(role.pod, original, admission)

    def give_back(self, new: Json, role: Role, original: Json) -> None:
        """Take back what ``steer`` does."""
        steering.give_back(role.pod, original)

    def _original(self, role: Role, original: Original, admission: Admission) -> Json:
        asks = pods_of.asked(role.pod)
        swaps = self.swaps_resources and not (
            admission.gpu_class.resource_name in asks
            or asks.keys().isdisjoint(admission.resource_names)
        )
        kept = original.roles.get(role.name)
        return steering.original_of(role.pod, kept, admission.resource_names, swaps=swaps)

    def _bounds(self, obj: Json, counted: Sequence[Role], original: Original) -> tuple[int, int]:
        """(min, max) members of the gang."""
        sizes = original.full(counted)
        highest = sum(sizes.values())
        movable = [role for role in counted if role.resize is not None]
        if len(movable) != 1:
            return highest, highest
        role = movable[0]
        rest = highest - sizes[role.name]
        if role.lowest is not None and role.highest is not None:
            return rest + role.lowest, rest + max(role.lowest, role.highest)
        lowest = whole(notes.of(obj).get(labels.MIN_MEMBERS))
        return min(max(1, highest if lowest is None else lowest), highest), highest

    def _demand(
        self,
        obj: Json,
        pods: Sequence[Json],
        classes: Sequence[ClassSpec],
        claims: Claims,
        runtimes: Runtimes,
        parts: Sequence[Json],
    ) -> Json:
        names = tuple(c.resource_name for c in classes)
        roles = self.roles(obj)
        counted, original = sizing.counted_of(roles, names, claims), originals.of(obj)
        asks = [pods_of.asked(role.pod, claims, runtimes) for role in counted]
        amounts = {pods_of.gpus_among(each, names) for each in asks}
        fits = [
            self._classes(obj, role, self._own(role, original, runtimes), classes, each)
            for role, each in zip(counted, asks, strict=True)
        ]
        lowest, highest = self._bounds(obj, counted, original)
        later = self.later(obj, parts)
        members = min(LARGEST_GANG, sum(role.count for role in counted))
        mixed = any(amounts) and (self.has_helpers or len(counted) < len(roles))
        mine = [p for p in pods if pods_of.gpus(p["spec"], names, claims)] if mixed else pods
        return {
            "priority_class": priority_class(obj["metadata"], [role.pod for role in roles]),
            "gpus": max(amounts),
            "cpus": int(asks[0].get("cpu", 0)),
            "memory_mib": int(asks[0].get("memory", 0)),
            "min_members": min(max(1, lowest), LARGEST_GANG),
            "max_members": min(max(1, highest), LARGEST_GANG),
            "members": members,
            "members_wanted": max(0, members - self.done(obj, mine)),
            "spare": sum(role.spare for role in counted),
            "undue": sum(role.count for role in counted if not later.get(role.name, True)),
            "staged": bool(later),
            "sized": original.members,
            "admitted_gpus": original.gpus,
            "gpu_classes": fitting.in_all(fits),
            "fault": self._managed_fault(obj)
            or self.fault(obj, amounts)
            or size_fault(highest)
            or _claims_fault(roles, claims)
            or fitting.fault(amounts, asks, fits)
            or notes.fault(notes.of(obj)),
            **pods_of.presence(mine),
        }

    def _classes(
        self,
        obj: Json,
        role: Role,
        own: Json,
        classes: Sequence[ClassSpec],
        asks: Mapping[str, int],
    ) -> tuple[str, ...]:
        plain = pods_of.asked(role.pod) if role.pod.get("resourceClaims") else asks
        return fitting.fitting_classes(
            asks,
            own,
            classes,
            notes.of(obj).get(labels.GPU_CLASSES, ""),
            # A claim is made for its device class alone.
            swaps=self.swaps_resources and any(c.resource_name in plain for c in classes),
        )

    def _own(self, role: Role, original: Original, runtimes: Runtimes) -> Json:
        """Where its author wants its pods, and their runtime class."""
        own = steering.own_of(role.pod, original.roles.get(role.name))
        return steering.bounded(own, runtime_of(role.pod, runtimes))

    def _run_by(self, obj: Json) -> str:
        named = self.managed_by(obj)
        return "" if named == self.controller else named

    def _managed_fault(self, obj: Json) -> str:
        named = self._run_by(obj)
        return NOT_HERE.format(controller=named[:63]) if named else ""

    def fault(self, obj: Json, amounts: Set[int]) -> str:
        """Why it cannot be planned, with the remedy; ``amounts`` of milli-GPU its members ask for."""
        return mixed(amounts)


def _bounded(limit_s: int | None) -> int | None:
    return None if limit_s is None else min(limit_s, MOST)


def _claims_fault(roles: Sequence[Role], claims: Claims) -> str:
    return next((fault for r in roles if (fault := pods_of.claims_fault(r.pod, claims))), "")


def size_fault(pods: int) -> str:
    """Why a gang of so many cannot be planned, with the remedy; empty when it can."""
    if pods > LARGEST_GANG:
        return TOO_MANY.format(pods=pods, most=LARGEST_GANG)
    return "" if pods else NO_PODS


def mixed(amounts: Set[int]) -> str:
    """What to do about members of different sizes (milli-GPU); empty when they are alike."""
    if len(amounts) < 2:
        return ""
    listed = " and ".join(f"{amount / 1000:g}" for amount in sorted(amounts))
    return MIXED.format(amounts=listed)


def priority_class(meta: Json, pods: Iterable[Json]) -> str:
    """The class that the object's label names, else the first that one of its pod specs does."""
    label = (meta.get("labels") or {}).get(labels.PRIORITY_CLASS)
    named = (pod.get("priorityClassName") for pod in pods)
    return label or next((name for name in named if name), "")
