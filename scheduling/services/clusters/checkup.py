"""What a cluster lacks for Weir, in plain words with a remedy each.

Reads, and asks the API server what this account may do; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.utils import timezone
from kubernetes.config import ConfigException

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.connection.client import ApiError, Client, NotFoundError, UnreachableError
from scheduling.cluster.guardrails import rights as access
from scheduling.cluster.guardrails.manifests import ENGINE, MEMBER_ROLE
from scheduling.cluster.guardrails.rights import Need
from scheduling.cluster.picture.compose import count_devices
from scheduling.cluster.vocabulary.devices import Devices
from scheduling.cluster.vocabulary.quantities import quantity
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.engine.reasons.wording import plural
from scheduling.models import Cluster, ClusterMode, GpuClass, Queue, Standing
from scheduling.services.clusters import guardrails, tokens
from scheduling.services.queues.knobs import levels_of

Json = dict[str, Any]

OLDEST = (1, 30)
"""The first version that serves ValidatingAdmissionPolicies as v1."""
SUPPORTED = (1, 36), (1, 37)
"""The oldest and the newest that the tests run on: ``workshop/testbed/control_plane/build`` pins them. The
oldest is also the first that lets a suspended Job change its resources."""
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MANIFESTS = {
    "observe": "docker/kubernetes/observe.yaml",
    "enforce": "docker/kubernetes/enforce.yaml",
}


class Grade(StrEnum):
    GOOD = "good"
    ADVICE = "advice"
    """Weir runs without it."""
    MISSING = "missing"
    """Weir does not run, or not in this mode, without it."""


MEND = "Mend the kubeconfig or the files that the cluster's row names."
IN_NO_POD = "The account of Weir's pod reaches it: ask where the engine runs, or connect it by a kubeconfig."


OF_ENGINE = (
    "What enforcing needs is granted to the account of the engine, which is not asked from here."
)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked at; ``remedy`` is empty when nothing is to be done."""

    grade: Grade
    topic: str
    sentence: str
    remedy: str = ""


def check(cluster: Cluster) -> list[Item]:
    """Everything that was looked at on ``cluster``, ending at the first step that nothing works without."""
    try:
        client = Client.connect(cluster)
    except (ConfigException, OSError) as error:
        said = f"No connection can be made: {str(error).rstrip('.')}."
        by_row = cluster.api_url or cluster.kubeconfig
        return [Item(Grade.MISSING, "connection", said, MEND if by_row else IN_NO_POD)]
    try:
        return list(_look(cluster, client))
    finally:
        client.close()


def _look(cluster: Cluster, client: Client) -> Iterator[Item]:
    try:
        version = client.request("GET", "/version", tries=2, timeout_s=10)
    except UnreachableError as error:
        yield Item(
            Grade.MISSING,
            "connection",
            f"The API server does not answer: {error.message}.",
            "Check address, CA and network from this machine, then try again.",
        )
        return
    except ApiError as error:
        yield Item(
            Grade.MISSING,
            "connection",
            f"The API server lets nobody in with these credentials: {error.message}.",
            "Renew the token or certificate of Weir's account.",
        )
        return
    yield from _version(version)
    yield from _tokens(cluster)
    yield from _permissions(cluster, client)
    yield from _kinds(client)
    yield from _operators(cluster, client)
    try:
        yield from _nodes(cluster, client)
        yield from _guardrails(cluster, client)
    except ApiError as error:
        yield Item(
            Grade.MISSING, "reading", f"Not everything could be read: {error.message}.",
            "Grant the permissions named above, then check again.",
        )  # fmt: skip


def _tokens(cluster: Cluster) -> Iterator[Item]:
    for ending in tokens.ending(cluster, timezone.now()):
        sentence = f"The token of {ending.account} ends on {ending.at:%Y-%m-%d at %H:%M} UTC."
        yield Item(Grade.ADVICE, "connection", sentence, f"Renew it: {ending.renewal}")


def _version(version: Json) -> Iterator[Item]:
    number = (_whole(version.get("major", "")), _whole(version.get("minor", "")))
    name = version.get("gitVersion", "?")
    if number < OLDEST:
        yield Item(
            Grade.MISSING,
            "version",
            f"Kubernetes {name} is older than {_dotted(OLDEST)}, the oldest that Weir enforces on.",
            "Upgrade the control plane. Observing works without.",
        )
    elif number < SUPPORTED[0]:
        yield Item(
            Grade.ADVICE,
            "version",
            f"Kubernetes {name} is older than {_dotted(SUPPORTED[0])}, the oldest that Weir is tested on."
            " A suspended Job cannot change the resource it asks for.",
            "Upgrade before you enforce: work may then start on a class of another resource.",
        )
    elif number > SUPPORTED[1]:
        yield Item(
            Grade.ADVICE,
            "version",
            f"Kubernetes {name} is newer than {_dotted(SUPPORTED[1])}, the newest that Weir is tested on.",
            "Read CHANGELOG.md of the newest release before you enforce.",
        )
    else:
        yield Item(Grade.GOOD, "version", f"Kubernetes {name}.")


def _whole(text: str) -> int:
    """Managed services write the minor version as ``31+``."""
    digits = "".join(c for c in text if c.isdigit())
    return int(digits or 0)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _permissions(cluster: Cluster, client: Client) -> Iterator[Item]:
    absent = {access.resource_of(a.list_path) for a in ADAPTERS if not _serves(client, a.list_path)}
    observing = [n for n in access.observing() if (n.group, n.resource) not in absent]
    enforcing = [n for n in access.enforcing() if (n.group, n.resource) not in absent]
    if taken := _engine_namespace(cluster):
        working = (replace(n, namespace=taken) for n in access.working())
        enforcing += [n for n in working if (n.group, n.resource) not in absent]
    yield from _refused(client, observing, "observe")
    if is_asked_as_portal(cluster):
        yield Item(Grade.ADVICE, "permissions", OF_ENGINE, _where_engine_runs())
        return
    if cluster.mode == ClusterMode.ENFORCE:
        yield from _refused(client, enforcing, "enforce")
        return
    lacking = [need for need in enforcing if not all(_may(client, need, v) for v in need.verbs)]
    if lacking:
        sentence = f"{len(lacking)} permissions that enforcing needs are not granted yet."
        yield Item(Grade.ADVICE, "permissions", sentence, f"Apply {MANIFESTS['enforce']}.")


def is_asked_as_portal(cluster: Cluster) -> bool:
    """Pods of one installation have accounts of their own: from the web server's nobody sees what the engine
    may."""
    by_row = cluster.api_url or cluster.kubeconfig
    return not by_row and tokens.account_of_pod() == tokens.PORTAL


def _where_engine_runs() -> str:
    space = settings.WEIR_ACCOUNTS_NAMESPACE
    return f"Ask it: kubectl -n {space} exec deployment/weir-engine -- python manage.py doctor"


def _engine_namespace(cluster: Cluster) -> str:
    """One of the namespaces in which the engine is bound to its role; it has the same rights in each."""
    bound = cluster.guardrails.filter(kind="RoleBinding", name=ENGINE, standing=Standing.IN_STEP)
    return bound.order_by("namespace").values_list("namespace", flat=True).first() or ""


def _refused(client: Client, needs: Iterable[Need], mode: str) -> Iterator[Item]:
    asked = 0
    refused: list[Item] = []
    for need in needs:
        lacking = [verb for verb in need.verbs if not _may(client, need, verb)]
        asked += len(need.verbs)
        if lacking:
            where = f" in {need.namespace}" if need.namespace else ""
            sentence = f"Weir may not {_listed(lacking)} {need.qualified}{where} {need.why}."
            remedy = f"Apply {MANIFESTS[mode]}."
            refused.append(Item(Grade.MISSING, "permissions", sentence, remedy))
    yield from refused or [Item(Grade.GOOD, "permissions", f"All {asked} to {mode} are granted.")]


def _may(client: Client, need: Need, verb: str) -> bool:
    asked = {"group": need.group, "resource": need.resource, "verb": verb}
    if need.namespace:
        asked["namespace"] = need.namespace
    if need.names:
        asked["name"] = need.names[0]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    return bool(client.create(REVIEW, review)["status"].get("allowed"))


def _listed(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _kinds(client: Client) -> Iterator[Item]:
    served = [a.kind for a in ADAPTERS if _serves(client, a.list_path)]
    absent = [a.kind for a in ADAPTERS if a.kind not in served]
    yield Item(Grade.GOOD, "kinds", f"Work may be of kind {', '.join(served)}.")
    if absent:
        yield Item(
            Grade.ADVICE,
            "kinds",
            f"The cluster has no {', '.join(absent)}.",
            "Install the operators of those that people use; Weir takes them up by itself.",
        )
    if not _serves(client, "/apis/resource.k8s.io/v1/deviceclasses"):
        yield Item(
            Grade.ADVICE,
            "kinds",
            "Dynamic resource allocation is not served; GPUs are counted as extended resources.",
            "Nothing to do, unless GPU classes are to be backed by DeviceClasses.",
        )


def _operators(cluster: Cluster, client: Client) -> Iterator[Item]:
    """Whether the operators of kinds that are installed may make what belongs to work that was let in."""
    kinds = [
        a for a in ADAPTERS if "." in a.api_version.split("/")[0] and _serves(client, a.list_path)
    ]
    if not kinds or (accounts := _accounts(client)) is None:
        return
    names = ", ".join(adapter.kind for adapter in kinds)
    if accounts:
        sentence = f"What operators make for {names} is taken from {', '.join(accounts)}."
        yield Item(Grade.GOOD, "operators", sentence)
        return
    yield Item(
        Grade.MISSING if cluster.mode == ClusterMode.ENFORCE else Grade.ADVICE,
        "operators",
        f"No operator may make pods of GPU work, and the cluster has {names}.",
        f"Bind their accounts to the ClusterRole weir-operator, as {MANIFESTS['enforce']} shows.",
    )


def _accounts(client: Client) -> list[str] | None:
    """Accounts of operators that hold the right; None without the right to look."""
    root = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    try:
        subjects = client.get(f"{root}/{access.OPERATORS}").get("subjects") or []
    except NotFoundError:
        return []
    except ApiError:
        return None
    return [f"{s.get('namespace', '')}/{s['name']}".lstrip("/") for s in subjects]


def _serves(client: Client, list_path: str) -> bool:
    root, _, plural = list_path.rpartition("/")
    try:
        found = client.get(root)
    except NotFoundError:
        return False
    return any(resource["name"] == plural for resource in found.get("resources") or [])


def _nodes(cluster: Cluster, client: Client) -> Iterator[Item]:
    nodes = _with_devices(client.get("/api/v1/nodes")["items"], count_devices(client))
    classes = list(cluster.gpu_classes.all())
    if not classes:
        yield Item(
            Grade.MISSING, "GPU classes", "The cluster has no GPU class, so nothing can be shared.",
            f"Run manage.py cluster classes {cluster.name}, which finds them by the nodes' labels.",
        )  # fmt: skip
    for gpu_class in classes:
        yield _class(gpu_class, nodes)
    yield from _unclaimed(classes, nodes)
    yield from _topology(nodes, levels_of(cluster))
    if not Queue.objects.filter(cluster=cluster, parent__isnull=False).exists():
        yield Item(
            Grade.MISSING, "queues", "There is no queue below the root, so no work is routed.",
            "Add queues on the page Quotas.",
        )  # fmt: skip


def _with_devices(nodes: list[Json], counted: Devices) -> list[Json]:
    """``nodes`` with their devices among what they offer."""
    for node in nodes:
        offers = node.setdefault("status", {}).setdefault("allocatable", {})
        for name, amount in counted.offered(node["metadata"]["name"]).items():
            offers.setdefault(name, str(amount // 1000))
    return nodes


def _class(gpu_class: GpuClass, nodes: list[Json]) -> Item:
    labelled = [n for n in nodes if _carries(n, gpu_class.node_labels)]
    wanted = ", ".join(f"{k}={v}" for k, v in gpu_class.node_labels.items()) or "no label at all"
    if not labelled:
        return Item(
            Grade.MISSING, "nodes", f"No node of class {gpu_class.name} is there: none has {wanted}.",
            "Label the nodes, or change the labels of the class.",
        )  # fmt: skip
    counts = [c for n in labelled if (c := _count(n, gpu_class.resource_name))]
    if not counts:
        return Item(
            Grade.MISSING,
            "nodes",
            f"{plural(len(labelled), 'node')} with {wanted}, but none offers {gpu_class.resource_name}.",
            "Run the device plugin on them, or correct the class's resource name.",
        )
    sentence = f"{gpu_class.name}: {sum(counts)} GPUs on {_nodes_in_words(len(counts))}."
    return Item(Grade.GOOD, "nodes", sentence)


def _nodes_in_words(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _unclaimed(classes: list[GpuClass], nodes: list[Json]) -> Iterator[Item]:
    """Nodes with GPUs of which Weir knows nothing, and nodes that two classes claim at once."""
    names = {c.resource_name for c in classes}
    lost, torn = [], []
    for node in nodes:
        mine = [
            c for c in classes if _carries(node, c.node_labels) and _count(node, c.resource_name)
        ]
        if not mine and any(_count(node, name) for name in names):
            lost.append(node["metadata"]["name"])
        if len({c.resource_name for c in mine}) < len(mine):
            torn.append(node["metadata"]["name"])
    if lost:
        yield Item(
            Grade.ADVICE, "nodes", f"{_some(lost)} have GPUs that belong to no class.",
            "Add a class for them, or label them.",
        )  # fmt: skip
    if torn:
        yield Item(
            Grade.MISSING, "nodes", f"{_some(torn)} belong to two classes of one resource.",
            "Make the labels of those classes exclude each other.",
        )  # fmt: skip


def _topology(nodes: list[Json], levels: Levels) -> Iterator[Item]:
    for level, keys in levels.labels.items():
        bare = [
            n["metadata"]["name"]
            for n in nodes
            if not any(key in (n["metadata"].get("labels") or {}) for key in keys)
        ]
        if bare:
            yield Item(
                Grade.ADVICE, "topology", f"{_some(bare)} name no {level}.",
                f"Label them {keys[0]}, or gangs cannot be kept together by {level}.",
            )  # fmt: skip


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more nodes" if len(names) > 3 else f"Nodes {shown}"


def _carries(node: Json, wanted: Mapping[str, str]) -> bool:
    held = node["metadata"].get("labels") or {}
    return all(held.get(key) == value for key, value in wanted.items())


def _count(node: Json, resource_name: str) -> int:
    return int(
        quantity(((node.get("status") or {}).get("allocatable") or {}).get(resource_name, 0))
    )


def _guardrails(cluster: Cluster, client: Client) -> Iterator[Item]:
    findings = guardrails.look(cluster, client)
    out = [f for f in findings if f.standing != Standing.IN_STEP]
    look = f"Look with manage.py cluster guardrails {cluster.name}."
    if findings and not out:
        yield Item(Grade.GOOD, "guardrails", f"All {len(findings)} stand as they should.")
    elif out and cluster.mode == ClusterMode.ENFORCE:
        sentence = f"Out of step: {len(out)} of {len(findings)}; the engine repairs them."
        yield Item(Grade.ADVICE, "guardrails", sentence, look)
    elif out:
        sentence = f"Enforcing would write {len(out)} of {len(findings)}."
        yield Item(Grade.ADVICE, "guardrails", sentence, look)
    if any(f.kind == "RoleBinding" for f in findings) and not _has_member_role(client):
        yield Item(
            Grade.MISSING if cluster.mode == ClusterMode.ENFORCE else Grade.ADVICE,
            "guardrails",
            f"Teams are bound to the ClusterRole {MEMBER_ROLE}, which is not there.",
            f"Apply {MANIFESTS['enforce']}.",
        )


def _has_member_role(client: Client) -> bool:
    """Whether the role is there; without the right to look, the benefit of the doubt."""
    try:
        client.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{MEMBER_ROLE}")
    except NotFoundError:
        return False
    except ApiError:
        return True
    return True
