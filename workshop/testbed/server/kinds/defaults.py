"""The values a real server fills in, by kind.

Bodies are filled in place. That is safe even where a patched body shares parts with the stored
one: only what is missing is filled in, and stored parts are complete.
"""

from __future__ import annotations

from collections.abc import Callable

from .quantities import milli, render
from .resources import Json, Resource


def apply_defaults(resource: Resource, body: Json) -> None:
    """Fill in what was left out of `body`, which must not be stored yet."""
    filler = _BY_KIND.get(resource.kind)
    if filler is not None:
        filler(body)


def _fill(target: Json, **values: object) -> None:
    for key, value in values.items():
        if target.get(key) is None:
            target[key] = value


def _container(container: Json) -> None:
    image = str(container.get("image", ""))
    latest = ":" not in image.rsplit("/", 1)[-1] or image.endswith(":latest")
    _fill(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if latest else "IfNotPresent",
    )
    for port in container.get("ports") or ():
        _fill(port, protocol="TCP")
    resources = container["resources"]
    for part in ("limits", "requests"):
        if isinstance(resources, dict):
            _canonical(resources, part)


def pod_requests(spec: Json) -> Json:
    """Return a pod's spec in which what is limited is requested; a template keeps as it was written."""
    return {
        **spec,
        **{
            part: [_requesting(container) for container in spec[part]]
            for part in ("containers", "initContainers")
            if spec.get(part)
        },
    }


def _requesting(container: Json) -> Json:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if all(name in requests for name in limits):
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _canonical(holder: Json, part: str) -> None:
    """Turn numbers among quantities into the strings they are served as."""
    quantities = holder.get(part)
    if isinstance(quantities, dict) and any(not isinstance(q, str) for q in quantities.values()):
        holder[part] = {
            name: render(milli(q)) if isinstance(q, (int, float)) else q
            for name, q in quantities.items()
        }


def pod_spec(spec: Json) -> None:
    """Fill in a pod's spec; `restartPolicy` too, which a Job then refuses."""
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        if isinstance(container, dict):
            _container(container)
    _fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )


def _pod(body: Json) -> None:
    spec = body.setdefault("spec", {})
    pod_spec(spec)
    spec |= pod_requests(spec)
    _fill(spec, enableServiceLinks=True, priority=0, preemptionPolicy="PreemptLowerPriority")
    if not body.get("status"):
        body["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def qos_class(spec: Json) -> str:
    """Return Guaranteed, Burstable or BestEffort, by the rules for cpu and memory."""
    resources = [c.get("resources") or {} for c in spec.get("containers") or ()]
    named = [
        (r.get("requests", {}).get(name), r.get("limits", {}).get(name))
        for r in resources
        for name in ("cpu", "memory")
    ]
    if not any(request or limit for request, limit in named):
        return "BestEffort"
    guaranteed = all(limit and request == limit for request, limit in named)
    return "Guaranteed" if guaranteed else "Burstable"


def _job(body: Json) -> None:
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(
        spec,
        parallelism=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
    )
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.setdefault("spec", {}), dict):
        pod_spec(template["spec"])
    body.setdefault("status", {})


def generate_job_selector(body: Json) -> None:
    """Give a new Job its own labels and the selector that goes with them."""
    spec, metadata = body["spec"], body["metadata"]
    if spec.get("manualSelector"):
        return
    uid, name = metadata["uid"], metadata["name"]
    template = spec["template"]
    labels = {
        **((template.get("metadata") or {}).get("labels") or {}),
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    if spec.get("selector") is None:
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _namespace(body: Json) -> None:
    metadata = body["metadata"]
    own = {"kubernetes.io/metadata.name": metadata.get("name", "")}
    metadata["labels"] = {**(metadata.get("labels") or {}), **own}
    body.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    status = body.setdefault("status", {})
    _fill(status, phase="Active")


def _node(body: Json) -> None:
    body.setdefault("spec", {})
    status = body.setdefault("status", {})
    for part in ("capacity", "allocatable"):
        _canonical(status, part)
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _event(body: Json) -> None:
    _fill(body, type="Normal", source={}, reportingComponent="", reportingInstance="")
    _fill(body, firstTimestamp=None, lastTimestamp=None, eventTime=None)


def _priority_class(body: Json) -> None:
    _fill(body, value=0, preemptionPolicy="PreemptLowerPriority")


def _quota(body: Json) -> None:
    _canonical(body.setdefault("spec", {}), "hard")
    body.setdefault("status", {})


def _budget(body: Json) -> None:
    body.setdefault("spec", {})
    status = body.setdefault("status", {})
    _fill(status, disruptionsAllowed=0, currentHealthy=0, desiredHealthy=0, expectedPods=0)


def _admission_policy(body: Json) -> None:
    spec = body.setdefault("spec", {})
    _fill(spec, failurePolicy="Fail")
    _match_resources(spec.setdefault("matchConstraints", {}))


def _admission_binding(body: Json) -> None:
    if match := body.setdefault("spec", {}).get("matchResources"):
        _match_resources(match)


def _match_resources(match: Json) -> None:
    _fill(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in match.get("resourceRules") or ():
        _fill(rule, scope="*")


def _definition(body: Json) -> None:
    """Names are never contested here, so a definition is served at once."""
    status = body.setdefault("status", {})
    if isinstance(body.get("spec"), dict):
        _fill(status, acceptedNames=body["spec"].get("names"))
    conditions = [{"type": kind, "status": "True"} for kind in ("NamesAccepted", "Established")]
    _fill(status, conditions=conditions)


_BY_KIND: dict[str, Callable[[Json], None]] = {
    "Pod": _pod,
    "Job": _job,
    "CustomResourceDefinition": _definition,
    "Namespace": _namespace,
    "Node": _node,
    "Event": _event,
    "PriorityClass": _priority_class,
    "ResourceQuota": _quota,
    "PodDisruptionBudget": _budget,
    "MutatingAdmissionPolicy": _admission_policy,
    "MutatingAdmissionPolicyBinding": _admission_binding,
    "ValidatingAdmissionPolicy": _admission_policy,
    "ValidatingAdmissionPolicyBinding": _admission_binding,
}
