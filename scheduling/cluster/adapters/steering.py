"""Where pods may run: what an admission writes into a pod spec, and what stood there before.

A kind whose templates take an affinity is sent to the planned hosts. One that takes only a node
selector (JobSet's webhook refuses the rest) is sent to the class and, where the plan stays inside
one, to the topology domain or the single host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduling.cluster.adapters import affinity
from scheduling.cluster.adapters.base import Admission, ClassSpec
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.runtimes import Runtime
from scheduling.cluster.vocabulary.runtimes import of as runtime_of

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def own_of(pod: Json, original: Json | None) -> Json:
    """Where a person wants ``pod`` to run: what stands there less what Weir put in.

    ``kept`` is what was found before the last admission, and what that put in.
    """
    now = _read(pod)
    if original is None:
        return now
    put = original.get("put") or {}
    tolerated = _toleration(put.get("tolerates"))
    return {
        "terms": _without(now["terms"], original["terms"], put),
        "preferred": [p for p in now["preferred"] if not _is_ours(p) or p in original["preferred"]],
        "selector": _unselected(now["selector"], original["selector"], put.get("selector") or {}),
        "tolerations": [
            t for t in now["tolerations"] if t != tolerated or t in original["tolerations"]
        ],
    }


def bounded(own: Json, runtime: Runtime) -> Json:
    """Where pods may run that their author wants at ``own``: their runtime class has a say as well."""
    return {
        **own,
        "selector": {**runtime.selector, **own["selector"]},
        "tolerations": [*own["tolerations"], *runtime.tolerations],
    }


def original_of(pod: Json, original: Json | None, names: Sequence[str], *, swaps: bool) -> Json:
    """What a person wrote of all that admissions overwrite.

    ``names`` are the GPU resources; what containers ask for is kept only where another one of them
    takes its place (``swaps``) or has taken it.
    """
    own, resources = (
        own_of(pod, original),
        _unswapped(pod, (original or {}).get("resources"), names),
    )
    return {**own, "resources": resources} if swaps or resources != _resources(pod) else own


def _read(pod: Json) -> Json:
    rules = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    return {
        "terms": (rules.get(REQUIRED) or {}).get("nodeSelectorTerms") or [],
        "preferred": rules.get(PREFERRED) or [],
        "selector": pod.get("nodeSelector") or {},
        "tolerations": pod.get("tolerations") or [],
    }


def _without(terms: list[Json], originals: list[Json], put: Json) -> list[Json]:
    """``terms`` without the expressions that an admission added; those of the ``kept`` term that one was
    made of stay, and one with nothing else in it goes."""
    ours = [_is(key, value) for key, value in (put.get("terms") or {}).items()]
    before, found = [_expressions(term) for term in originals], []
    for term in terms:
        stands = _expressions(term)
        made_of = next((e for e in before if all(each in stands for each in e)), [])
        own = [e for e in stands if e in made_of or not (e in ours or _is_host(e, put))]
        found.append({**term, "matchExpressions": own})
    return [term for term in found if term["matchExpressions"] or term.get("matchFields")]


def _expressions(term: Json) -> list[Json]:
    return term.get("matchExpressions") or []


def _is_host(expression: Json, put: Json) -> bool:
    named = expression.get("key"), expression.get("operator")
    return bool(put.get("hosts")) and named == (labels.HOSTNAME, "In")


def _is_ours(preferred: Json) -> bool:
    """Of the form in which pods are sent to planned hosts that they may leave."""
    stands = _expressions(preferred.get("preference") or {})
    return preferred.get("weight") == 100 and [_is_host(e, {"hosts": True}) for e in stands] == [
        True
    ]


def _unselected(selector: Json, before: Json, put: Json) -> Json:
    ours = {key for key, value in put.items() if selector.get(key) == value}
    back = {key: before[key] for key in ours & before.keys()}
    return {key: value for key, value in selector.items() if key not in ours} | back


def _containers(pod: Json) -> list[Json]:
    return [*(pod.get("containers") or []), *(pod.get("initContainers") or [])]


def _resources(pod: Json) -> list[Json]:
    return [container.get("resources") or {} for container in _containers(pod)]


def _unswapped(pod: Json, originals: list[Json] | None, names: Sequence[str]) -> list[Json]:
    """What the containers ask for by a person's word: what is ``kept``, unless it was edited since."""
    stands = _resources(pod)
    if originals is None:
        return stands
    alike = [[_swapped(each, names, "") for each in found] for found in (stands, originals)]
    return originals if alike[0] == alike[1] else stands


def give_back(pod: Json, original: Json) -> None:
    """Let ``pod`` (edited in place) run where the person who wrote it said."""
    rules: Json = {}
    if original["terms"]:
        rules[REQUIRED] = {"nodeSelectorTerms": original["terms"]}
    if original["preferred"]:
        rules[PREFERRED] = original["preferred"]
    others = {k: rule for k, rule in (pod.get("affinity") or {}).items() if k != "nodeAffinity"}
    _set(pod, "affinity", {**others, **({"nodeAffinity": rules} if rules else {})})
    _set(pod, "nodeSelector", original["selector"])
    _set(pod, "tolerations", original["tolerations"])
    if "resources" in original:
        for container, resources in zip(_containers(pod), original["resources"], strict=True):
            _set(container, "resources", resources)


def _set(part: Json, key: str, value: Any) -> None:
    """Nothing and an empty value mean the same."""
    if value or part.get(key):
        part[key] = value
    if not value:
        part.pop(key, None)


def to_hosts(pod: Json, original: Json, admission: Admission, *, fixed: bool) -> None:
    """Send ``pod`` (edited in place) to the class and the planned hosts; ``original`` remembers by what.

    Pods of a gang that may grow (not ``fixed``) prefer those hosts: where they may run cannot be
    changed any more when more of them are made. So do pods whose author or runtime class keeps them from
    one of the hosts, and those of work for which kube-scheduler found planned hosts unfit before: it finds
    them another node of the class.
    """
    fixed = fixed and not admission.is_loose and _is_free(pod, original, admission)
    put = dict(sorted(admission.gpu_class.node_labels.items()))
    preferred = list(original["preferred"])
    if not fixed:
        put |= dict(sorted(admission.domain.items()))
        hosts = {"matchExpressions": [_in(labels.HOSTNAME, sorted(admission.nodes))]}
        preferred.append({"weight": 100, "preference": hosts})
    narrow = [_is(key, value) for key, value in put.items()]
    narrow += [_in(labels.HOSTNAME, sorted(admission.nodes))] if fixed else []
    terms = [
        {**term, "matchExpressions": _joined(_expressions(term), narrow)}
        # A term that asks for nothing would match no node.
        for term in original["terms"] or ([{}] if narrow else [])
    ]
    rules: Json = {REQUIRED: {"nodeSelectorTerms": terms}} if terms else {}
    if preferred:
        rules[PREFERRED] = preferred
    pod["affinity"] = {**(pod.get("affinity") or {}), "nodeAffinity": rules}
    original.setdefault("put", {}).update(terms=put, hosts=fixed)


def _joined(own: list[Json], narrow: list[Json]) -> list[Json]:
    return [*own, *(expression for expression in narrow if expression not in own)]


def _is_free(pod: Json, original: Json, admission: Admission) -> bool:
    """Whether its author and its runtime class let ``pod`` run on every planned node."""
    own = bounded(original, runtime_of(pod, admission.runtimes))
    return all(
        affinity.allows(own["selector"], own["terms"], name, values)
        for name, values in admission.labels.items()
    )


def to_class(pod: Json, original: Json, admission: Admission) -> None:
    """Send ``pod`` (edited in place) to the class, and to the one domain or host of the plan unless its
    author or runtime class keeps it from there; ``original`` remembers by what."""
    put = {**admission.gpu_class.node_labels, **admission.domain}
    if _is_free(pod, original, admission):
        put |= admission.liked_domain
        if len(admission.nodes) == 1 and not admission.is_loose:
            put[labels.HOSTNAME] = next(iter(admission.nodes))
    pod["nodeSelector"] = {**put, **original["selector"]}
    original.setdefault("put", {}).update(selector=put)


def tolerate(pod: Json, original: Json, gpu_class: ClassSpec) -> None:
    """GPU nodes are commonly tainted with their resource's name to keep other pods away."""
    ours = _toleration(gpu_class.resource_name)
    tolerations = original["tolerations"]
    pod["tolerations"] = tolerations if ours in tolerations else [*tolerations, ours]
    original.setdefault("put", {}).update(tolerates=gpu_class.resource_name)


def _toleration(resource_name: str | None) -> Json:
    return {"key": resource_name, "operator": "Exists", "effect": "NoSchedule"}


def swap_resource(pod: Json, original: Json, admission: Admission) -> None:
    """Ask for as many of the admitted class's resource as the person asked of another class's."""
    wanted = admission.gpu_class.resource_name
    for container, resources in zip(_containers(pod), original["resources"], strict=True):
        container["resources"] = _swapped(resources, admission.resource_names, wanted)


def _swapped(resources: Json, names: Sequence[str], wanted: str) -> Json:
    return {
        part: {wanted if name in names else name: amount for name, amount in amounts.items()}
        if part in ("limits", "requests")
        else amounts
        for part, amounts in resources.items()
    }


def _is(key: str, value: str) -> Json:
    return _in(key, [value])


def _in(key: str, values: list[str]) -> Json:
    return {"key": key, "operator": "In", "values": values}
