"""What every kind shares whose pods come from templates: one role a template, gangs of GPU pods.

Members of a workload are its pods that carry GPUs; a head or launcher without GPUs comes along
unplanned. Roles that ask for different numbers of GPUs are counted in parts (``unlike``), and the pods of
each are sent to the places of its own members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any, ClassVar

from scheduling.cluster.adapters import (
    faults,
    fitting,
    merging,
    needs,
    notes,
    originals,
    sizing,
    steering,
    turns,
    unlike,
)
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.base import Admission, ClassSpec, Sighting
from scheduling.cluster.adapters.cel import PolicyKind
from scheduling.cluster.adapters.demand import Demand, RolePods, counts, named_by, priority_class
from scheduling.cluster.adapters.originals import Original
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.vocabulary import endings, labels, limit_ranges
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.cluster.vocabulary.limit_ranges import Defaults
from scheduling.cluster.vocabulary.quantities import MOST, instant
from scheduling.cluster.vocabulary.runtimes import NO_RUNTIMES, Runtimes
from scheduling.cluster.vocabulary.runtimes import of as runtime_of

Json = dict[str, Any]


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
    pod_label = ""
    makes_queued = False
    policy: PolicyKind
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
        """What the kind's own field limits a run to; None for a kind that has no such field."""
        return None

    def helpers(self, obj: Json) -> list[Json]:
        """Specs of what it makes beside the pods of its roles: no members, so they may have no GPUs."""
        return []

    def managed_by(self, obj: Json) -> str:
        """The controller that runs it, where it says; the kind's own controller leaves others' alone."""
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

    def failure_words(self, obj: Json) -> tuple[str, str]:
        """(reason, message) of its failure, as its controller says them."""
        return endings.failure_words(obj) or ("", "")

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
        demand: Demand | None = None,
    ) -> Sighting:
        meta, said = obj["metadata"], notes.of(obj)
        demand = demand or self.demand_of(obj, classes, claims, runtimes)
        names = tuple(c.resource_name for c in classes)
        mine = (
            [p for p in pods if pods_of.gpus(p["spec"], names, claims)] if demand.is_mixed else pods
        )
        each = unlike.weights(mine, demand.part, names, claims)
        done = self.done(obj, mine) if each is None else unlike.over(mine, each)
        outcome, finished = self.outcome(obj)
        return Sighting(
            generation=int(meta.get("generation", 0)),
            run_time_limit_s=self._limit_s(obj),
            suspended=self.is_suspended(obj),
            deleting=bool(meta.get("deletionTimestamp")),
            run_by=self._run_by(obj),
            outcome=outcome,
            finished=finished,
            ending=self._ending(obj, outcome, pods, parts),
            started=pods_of.last_start(filter(pods_of.is_ready, pods)),
            pods_left=max(
                unlike.not_over(mine, each), unlike.not_over(pods, None), self.unsettled(obj)
            ),
            **notes.identity(self.kind, obj),
            **demand.fields,
            **counts(demand, self.later(obj, parts), done),
            **pods_of.presence(mine, each),
            **notes.wishes(said, pods),
            **notes.state(said, classes),
        )

    def admission(self, obj: Json, admission: Admission) -> Json:
        def admit(new: Json) -> None:
            original = originals.of(obj)
            self.set_suspended(new, False)
            counted = sizing.counted_of(self.roles(new), admission.resource_names, admission.claims)
            sizes = original.full(counted)
            lowest, highest = sizing.between(sizing.spans(counted, sizes, notes.of(obj)))
            sized = sizing.sized_role(counted) if lowest < highest else None
            is_unlike = sizing.are_unlike(counted, admission)
            original.gpus = sizing.member_gpus(counted, admission)
            original.limit_s = self._limit_s(obj)
            for role in counted:
                own = self._original(role, original, admission)
                if original.gpus:
                    gpus = sizing.member_gpus([role], admission)
                    theirs = unlike.of_size(admission, gpus)
                    may_grow = sized is role or (sized is not None and not is_unlike)
                    self.steer(new, role, own, theirs, fixed=not may_grow)
                else:
                    self.give_back(new, role, own)
                original.roles[role.name] = own
            original.sizes = sizes
            members = sizing.pods_in(counted, sizes, admission)
            sizing.set_size(counted, members)
            new["metadata"]["annotations"] |= notes.mark(original, admission, members)

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
                if original_role := original.roles.get(role.name):
                    own = steering.original_of(role.pod, original_role, resource_names, swaps=False)
                    self.give_back(new, role, own)
            counted = sizing.counted_of(self.roles(new), resource_names, claims)
            sizing.set_size(counted, sum(original.full(counted).values()))
            new["metadata"]["annotations"][labels.ORIGINAL] = None

        return merging.edited(obj, restore)

    def resize(self, obj: Json, admission: Admission) -> Json:
        def size(new: Json) -> None:
            original = originals.of(obj)
            counted = sizing.counted_of(self.roles(new), admission.resource_names, admission.claims)
            members = sizing.pods_in(counted, original.full(counted), admission)
            if sum(role.count for role in counted) == members:
                return
            sizing.set_size(counted, members)
            sizing.take_back(counted, original.sizes)
            counted = sizing.counted_of(self.roles(new), admission.resource_names, admission.claims)
            if sum(role.count for role in counted) > members:
                self.set_suspended(new, True)
                new["metadata"]["annotations"] |= notes.unmark(None)
                return
            new["metadata"]["annotations"] |= {
                **notes.mark(original, admission, members),
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
        asks = pods_of.requests_of(role.pod)
        swaps = self.swaps_resources and not (
            admission.gpu_class.resource_name in asks
            or asks.keys().isdisjoint(admission.resource_names)
        )
        original_role = original.roles.get(role.name)
        return steering.original_of(role.pod, original_role, admission.resource_names, swaps=swaps)

    def filled(self, obj: Json, defaults: Defaults) -> Json:
        return limit_ranges.filled(obj, lambda made: [r.pod for r in self.roles(made)], defaults)

    def demand_of(
        self,
        obj: Json,
        classes: Sequence[ClassSpec],
        claims: Claims = pods_of.NO_CLAIMS,
        runtimes: Runtimes = NO_RUNTIMES,
    ) -> Demand:
        names = tuple(c.resource_name for c in classes)
        roles, original = self.roles(obj), originals.of(obj)
        counted = sizing.counted_of(roles, names, claims)
        members = [self._member(role, original, claims, runtimes) for role in counted]
        gpus = [pods_of.gpus_among(member.asks, names) for member in members]
        part, sizes = unlike.part_of(gpus), original.full(counted)
        weights = [each // part if part else 1 for each in gpus]
        spans = sizing.spans(counted, sizes, notes.of(obj))
        between = sizing.between(spans, weights)
        pods = [(role.name, span) for role, span in zip(counted, spans, strict=True)]
        let_in = original.members
        if part and let_in is not None:
            let_in = sizing.parts_of(let_in, spans, weights)
        shapes = unlike.shapes_of(pods, gpus, members, names)
        fits = [self._classes(obj, member, classes) for member in members]
        fields = {
            **self._priorities(obj, roles),
            "gpus": max(gpus),
            "sized": let_in,
            "admitted_gpus": original.gpus,
            "admitted_limit_s": original.limit_s,
            "gpu_classes": fitting.in_all(fits),
            **needs.fields(members, obj["metadata"], names),
            "shapes": shapes,
            **unlike.fields(shapes, original.gpus),
            "image": pods_of.image_of(counted[0].pod),
            "fault": self._first_fault(obj, members, fits, between[1], names, claims),
        }
        parts = [
            RolePods(role.name, role.count, role.spare, each)
            for role, each in zip(counted, weights, strict=True)
        ]
        is_mixed = any(gpus) and (self.has_helpers or len(counted) < len(roles))
        return Demand(parts, between, is_mixed, fields, part)

    def _member(
        self, role: Role, original: Original, claims: Claims, runtimes: Runtimes
    ) -> needs.Member:
        own = steering.own_of(role.pod, original.roles.get(role.name))
        return needs.Member(
            role.pod,
            role.template.get("metadata") or {},
            steering.bounded(own, runtime_of(role.as_run, runtimes)),
            pods_of.requests_of(role.as_run, claims, runtimes),
        )

    def _priorities(self, obj: Json, roles: Sequence[Role]) -> Json:
        pods = [role.pod for role in roles]
        return {
            "priority_class": priority_class(obj["metadata"], pods),
            "pod_priority_classes": named_by([*pods, *self.helpers(obj)]),
        }

    def _first_fault(
        self,
        obj: Json,
        members: Sequence[needs.Member],
        fits: Sequence[tuple[str, ...]],
        most: int,
        names: Sequence[str],
        claims: Claims,
    ) -> str:
        asks = [member.asks for member in members]
        amounts = {pods_of.gpus_among(each, names) for each in asks}
        return (
            faults.managed(self._run_by(obj))
            or self.fault(obj, amounts)
            or faults.size(most)
            or faults.claims((member.spec for member in members), claims)
            or fitting.fault(amounts, asks, fits, names)
            or faults.helpers(self.helpers(obj), names)
            or turns.fault(notes.of(obj))
        )

    def _classes(
        self, obj: Json, member: needs.Member, classes: Sequence[ClassSpec]
    ) -> tuple[str, ...]:
        """Those that fit. A claim is made for its device class alone, so it is not swapped."""
        claimed = bool(member.spec.get("resourceClaims"))
        plain = pods_of.requests_of(member.spec) if claimed else member.asks
        return fitting.fitting_classes(
            member.asks,
            member.own,
            classes,
            notes.of(obj).get(labels.GPU_CLASSES, ""),
            swaps=self.swaps_resources and any(c.resource_name in plain for c in classes),
        )

    def _limit_s(self, obj: Json) -> int | None:
        limit = notes.least_s(self.time_limit_s(obj), notes.own_limit_s(notes.of(obj)))
        return None if limit is None else min(limit, MOST)

    def _ending(
        self, obj: Json, outcome: str, pods: Sequence[Json], parts: Sequence[Json]
    ) -> endings.Ending | None:
        """A limit that was reached says more than its pods, which were told to go; else they say more than
        that something failed. What it made says why for those whose own words do not."""
        if outcome == "succeeded":
            return None
        if not outcome:
            return pods_of.harm(pods)
        words = filter(None, map(endings.failure_words, parts))
        said = [endings.of_words(*each) for each in (self.failure_words(obj), *words)]
        return endings.first([pods_of.harm(pods), *said])

    def _run_by(self, obj: Json) -> str:
        named = self.managed_by(obj)
        return "" if named == self.controller else named

    def fault(self, obj: Json, amounts: Set[int]) -> str:
        """Why it cannot be planned, with the remedy; ``amounts`` of milli-GPU its members ask for."""
        return faults.mixed(amounts)
