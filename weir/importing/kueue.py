"""ClusterQueues, Cohorts, ResourceFlavors, Topologies and LocalQueues of Kueue (v1beta1 and v1beta2).

What Kueue says of a cohort is its own quota beside that of its queues; a queue of Weir holds what its queues
hold, so nominal quotas are added up from below. Cohorts without a parent share nothing with each other, which
limits of 0 say at the top. Topologies are levels of the cluster's policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from weir.faults import Fault
from weir.importing.findings import NO_GPUS, Findings, Names, plain, without_empty

Object = Mapping[str, Any]
Figures = dict[str, float]
SHARED_BELOW = "each has a queue below that shares what it holds"
KINDS = ("ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "LocalQueue")
GPU = re.compile(
    r"nvidia\.com/(gpu|mig-).*|amd\.com/gpu.*|gpu\.intel\.com/.*|habana\.ai/gaudi.*|google\.com/tpu"
)
LIMITS = (("borrowingLimit", "borrowing_limit"), ("lendingLimit", "lending_limit"))
HOSTNAME = "kubernetes.io/hostname"
ONE_TOPOLOGY = "the cluster has one topology: write all levels into its policy"
SCALE = {"": 1.0, "m": 0.001, "k": 1e3, "M": 1e6}
OF_QUEUES = {
    "preemption": "one rule for all: guarantees are taken back, by the cluster's policy",
    "queueingStrategy": "one order for all: the cluster's policy",
    "flavorFungibility": "a workload names the classes that it takes",
    "admissionChecks": "none; quota is given on this cluster's own nodes",
    "admissionChecksStrategy": "none; quota is given on this cluster's own nodes",
    "admissionScope": "use over time orders queues everywhere: the cluster's policy",
    "namespaceSelector": "who may submit is who belongs to the queue's team",
    "stopPolicy": "stop the queue on its page once it is made",
    "concurrentAdmissionPolicy": "none",
}  # fmt: skip
"""Fields of a ClusterQueue that say something Weir's queues do not."""
OF_FLAVORS = {
    "nodeTaints": "taints of nodes are read from the nodes",
    "tolerations": "tolerations are the workload's own",
}
OF_KINDS = {
    "WorkloadPriorityClass": "make the priority class on the page of priority classes",
    "AdmissionCheck": "none",
}


def translate(objects: Sequence[Any]) -> Findings:
    """Raises Fault where there is no ClusterQueue, or cohorts hang in a circle."""
    reader = _KueueReader(list(_flat(objects)))
    if not reader.kinds["ClusterQueue"]:
        raise Fault(
            "There is no ClusterQueue in it.",
            "Write it with: kubectl get"
            " clusterqueues,cohorts,resourceflavors,topologies,localqueues -A -o yaml",
        )
    return reader.read()


def _flat(objects: Sequence[Any]) -> Iterator[Object]:
    """The objects of documents and of lists in them."""
    for obj in objects:
        if isinstance(obj, Mapping) and isinstance(obj.get("items"), list):
            yield from _flat(obj["items"])
        elif isinstance(obj, Mapping) and obj.get("kind"):
            yield obj


class _KueueReader:
    def __init__(self, objects: Sequence[Object]) -> None:
        self.found = Findings()
        self.names = Names(self.found)
        self.kinds: dict[str, dict[str, Object]] = {kind: {} for kind in KINDS}
        self.local: dict[str, list[str]] = {}
        """ClusterQueue -> namespaces that submit to it."""
        for obj in objects:
            self._sort(obj)

    def _sort(self, obj: Object) -> None:
        kind, name = str(obj["kind"]), _name(obj)
        if kind == "LocalQueue":
            namespace = str((obj.get("metadata") or {}).get("namespace", "default"))
            places = self.local.setdefault(str(_spec(obj).get("clusterQueue")), [])
            if namespace not in places:
                places.append(namespace)
        elif kind in self.kinds:
            self.kinds[kind][name] = _spec(obj)
        else:
            self.found.leave(f"{kind} {name}", "the object", OF_KINDS.get(kind, "none"))

    def read(self) -> Findings:
        below: dict[str, list[str]] = {}
        cohorts = self.kinds["Cohort"]
        for spec in self.kinds["ClusterQueue"].values():
            if cohort := _cohort(spec):
                cohorts.setdefault(cohort, {})
        for name, spec in list(cohorts.items()):
            self._above(name, spec, below)
        tops = [name for name, spec in cohorts.items() if not _parent(spec)]
        self.found.queues += [self._cohort(name, below) for name in tops]
        for name, spec in self.kinds["ClusterQueue"].items():
            if not _cohort(spec):
                self.found.queues.append(self._queue(name, spec))
        for queue in self.found.queues:
            self._close(queue)
        self._classes()
        self._levels()
        for name in self.local.keys() - self.kinds["ClusterQueue"].keys():
            self.found.leave(
                f"LocalQueues of {name}", "the object", "its ClusterQueue is not in the file"
            )
        return self.found

    def _above(self, name: str, spec: Object, below: dict[str, list[str]]) -> None:
        """``name`` among the children of its parent, which is there too. Raises Fault of a circle."""
        if parent := _parent(spec):
            below.setdefault(parent, []).append(name)
        seen = [name]
        while parent := _parent(self.kinds["Cohort"].setdefault(seen[-1], {})):
            if parent in seen:
                raise Fault(
                    f"Cohorts hang in a circle: {' below '.join([*seen, parent])}.",
                    "Take the parent of one away, as Kueue asks too.",
                )
            seen.append(parent)

    def _cohort(self, name: str, below: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        spec, at = self.kinds["Cohort"][name], f"Cohort {name}"
        queue = {"name": self.names.give(name, at), **self._figures(at, spec)}
        queues = [self._cohort(child, below) for child in below.get(name, ())]
        queues += [
            self._queue(child, of)
            for child, of in self.kinds["ClusterQueue"].items()
            if _cohort(of) == name
        ]
        total: Figures = dict(queue["nominal"])
        for child in queues:
            for gpu_class, gpus in child.get("nominal", {}).items():
                total[gpu_class] = plain(total.get(gpu_class, 0) + gpus)
        weights = _weights(spec, total, at)
        return without_empty({**queue, "nominal": total, "weight": weights, "queues": queues})

    def _queue(self, name: str, spec: Object) -> dict[str, Any]:
        at, places = f"ClusterQueue {name}", self.local.get(name, [])
        figures = self._figures(at, spec)
        weights = _weights(spec, figures["nominal"], at)
        queue = {"name": self.names.give(name, at), **figures, "weight": weights}
        for key in sorted(OF_QUEUES.keys() & spec.keys()):
            if spec[key] not in ({}, [], None, "None", "BestEffortFIFO"):
                self.found.leave(at, f"spec.{key}", OF_QUEUES[key])
        if len(places) == 1:
            queue["namespace"] = places[0]
        elif places:
            queue["queues"] = [
                {"name": self.names.give(place, f"LocalQueue of {place}"), "namespace": place}
                for place in places
            ]
            self.found.leave(at, f"{len(places)} namespaces", SHARED_BELOW)
        else:
            self.found.leave(at, "no LocalQueue", "give the queue a namespace")
        return without_empty(queue)

    def _figures(self, at: str, spec: Object) -> dict[str, Any]:
        """Its own quota of each class: {nominal, borrowing_limit, lending_limit}."""
        figures: dict[str, Figures] = {"nominal": {}, "borrowing_limit": {}, "lending_limit": {}}
        for flavor, resource in _cells(spec):
            name = str(resource.get("name"))
            if not GPU.fullmatch(name):
                self.found.leave(at, f"quota of {name}", NO_GPUS)
                continue
            gpu_class = self._class(flavor, name)
            figures["nominal"][gpu_class] = quantity(resource.get("nominalQuota", 0), at)
            for key, word in LIMITS:
                if resource.get(key) is not None:
                    figures[word][gpu_class] = quantity(resource[key], at)
        return figures

    def _class(self, flavor: str, resource: str) -> str:
        """The class of a flavor; a flavor that holds several kinds of GPU has one for each but its first."""
        for made in self.found.classes:
            if made["flavor"] == flavor and made["resource_name"] == resource:
                return str(made["name"])
        first = not any(made["flavor"] == flavor for made in self.found.classes)
        name = flavor if first else f"{flavor}-{resource.partition('/')[2]}"
        self.found.classes.append({"name": name, "resource_name": resource, "flavor": flavor})
        return name

    def _classes(self) -> None:
        """Each class with the labels of its flavor's nodes."""
        flavors = self.kinds["ResourceFlavor"]
        for made in self.found.classes:
            flavor = made.pop("flavor")
            at = f"ResourceFlavor {flavor}"
            if flavor not in flavors:
                self.found.leave(
                    at, "its node labels", "it is not in the file; say them of the class"
                )
            made["node_labels"] = dict(flavors.get(flavor, {}).get("nodeLabels") or {})
            for key in sorted(OF_FLAVORS.keys() & flavors.get(flavor, {}).keys()):
                self.found.leave(at, f"spec.{key}", OF_FLAVORS[key])
        used = {_flavor for spec in self._all() for _flavor, _ in _cells(spec)}
        for flavor in flavors.keys() - used:
            self.found.leave(f"ResourceFlavor {flavor}", "the object", "no queue has quota of it")

    def _levels(self) -> None:
        """Of the first Topology; a cluster has one, and the host is a level of every one."""
        for name, spec in self.kinds["Topology"].items():
            keys = [str(level.get("nodeLabel")) for level in spec.get("levels") or ()]
            levels = "; ".join(key for key in keys if key != HOSTNAME)
            self.found.topology_levels = self.found.topology_levels or levels
            if levels != self.found.topology_levels:
                self.found.leave(f"Topology {name}", "its levels", ONE_TOPOLOGY)

    def _all(self) -> list[Object]:
        return [*self.kinds["ClusterQueue"].values(), *self.kinds["Cohort"].values()]

    def _close(self, top: dict[str, Any]) -> None:
        """Nothing is borrowed or lent across the top."""
        for word in ("borrowing_limit", "lending_limit"):
            top[word] = dict.fromkeys(top.get("nominal", {}), 0)


def quantity(amount: Any, at: str) -> float:
    """A Kubernetes quantity as a number. Raises Fault that names the object."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zA-Z]*)", str(amount))
    if found is None or found[2] not in SCALE:
        raise Fault(f"{at}: {amount!r} is no amount of GPUs.", "Write a number, such as 8.")
    return plain(float(found[1]) * SCALE[found[2]])


def _weights(spec: Object, classes: Iterable[str], at: str) -> Figures:
    weight = (spec.get("fairSharing") or {}).get("weight")
    return {} if weight is None else dict.fromkeys(classes, quantity(weight, at))


def _cells(spec: Object) -> Iterator[tuple[str, Object]]:
    for group in spec.get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for resource in flavor.get("resources") or ():
                yield str(flavor.get("name")), resource


def _name(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name"))


def _spec(obj: Object) -> Object:
    spec = obj.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _cohort(spec: Object) -> str:
    return str(spec.get("cohortName") or spec.get("cohort") or "")


def _parent(spec: Object) -> str:
    return str(spec.get("parentName") or spec.get("parent") or "")
