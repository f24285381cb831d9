"""What a cluster lacks for Weir, in plain words with a remedy each.

Reads, and asks the API server what this account may do; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.utils import timezone
from kubernetes.config import ConfigException

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.connection.client import ApiError, Client, NotFoundError, UnreachableError
from scheduling.cluster.guardrails import rights as access
from scheduling.cluster.guardrails.manifests import ENGINE, MEMBER_ROLE
from scheduling.cluster.guardrails.reconcile import NOT_OFFERED, Finding
from scheduling.cluster.guardrails.rights import Need
from scheduling.cluster.vocabulary.labels import offering
from scheduling.models import Cluster, ClusterMode, GuardrailState
from scheduling.services.clusters import guardrails, tokens
from scheduling.services.clusters.checkup_nodes import nodes_items
from scheduling.services.clusters.gaps import Grade, Item

Json = dict[str, Any]

OLDEST = (1, 30)
"""The first version that serves ValidatingAdmissionPolicies as v1."""
SUPPORTED = (1, 36), (1, 37)
"""The oldest and the newest that the tests run on: ``workshop/testbed/control_plane/build`` pins them. The
oldest is also the first that lets a suspended Job change its resources."""
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
MANIFESTS = {
    "observe": "docker/kubernetes/observe.yaml",
    "enforce": "docker/kubernetes/enforce.yaml",
}


MEND = "Mend the kubeconfig or the files that the cluster's row names."
IN_NO_POD = "The account of Weir's pod reaches it: ask where the engine runs, or connect it by a kubeconfig."


OF_ENGINE = "The rights that enforcing needs are those of the engine's account, which is not asked from here."


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
        yield from nodes_items(cluster, client)
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
    bound = cluster.guardrails.filter(
        kind="RoleBinding", name=ENGINE, standing=GuardrailState.IN_STEP
    )
    return bound.order_by("namespace").values_list("namespace", flat=True).first() or ""


def _refused(client: Client, needs: Iterable[Need], mode: str) -> Iterator[Item]:
    count = 0
    refused: list[Item] = []
    for need in needs:
        lacking = [verb for verb in need.verbs if not _may(client, need, verb)]
        count += len(need.verbs)
        if lacking:
            where = f" in {need.namespace}" if need.namespace else ""
            sentence = f"Weir may not {_listed(lacking)} {need.qualified}{where} {need.why}."
            remedy = f"Apply {MANIFESTS[mode]}."
            refused.append(Item(Grade.MISSING, "permissions", sentence, remedy))
    yield from refused or [Item(Grade.GOOD, "permissions", f"All {count} to {mode} are granted.")]


def _may(client: Client, need: Need, verb: str) -> bool:
    attributes = {"group": need.group, "resource": need.resource, "verb": verb}
    if need.namespace:
        attributes["namespace"] = need.namespace
    if need.names:
        attributes["name"] = need.names[0]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
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
        sentence = f"Objects that operators make for {names} are taken from {', '.join(accounts)}."
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


def _guardrails(cluster: Cluster, client: Client) -> Iterator[Item]:
    findings = guardrails.look(cluster, client)
    yield from _unoffered(cluster, client, findings)
    out = [f for f in findings if f.standing != GuardrailState.IN_STEP]
    look = f"Look with manage.py cluster guardrails {cluster.name}."
    if findings and not out:
        yield Item(Grade.GOOD, "guardrails", f"All {len(findings)} stand as they should.")
    elif out and cluster.mode == ClusterMode.ENFORCE:
        sentence = f"Out of step: {len(out)} of {len(findings)}; the engine repairs them."
        yield Item(Grade.ADVICE, "guardrails", sentence, look)
    elif out:
        sentence = f"Enforcing would write {len(out)} of {len(findings)}."
        yield Item(Grade.ADVICE, "guardrails", sentence, look)
    if any(f.kind == "RoleBinding" for f in findings) and not _stands(
        client, f"{ROLES}/{MEMBER_ROLE}"
    ):
        yield Item(
            Grade.MISSING if cluster.mode == ClusterMode.ENFORCE else Grade.ADVICE,
            "guardrails",
            f"Teams are bound to the ClusterRole {MEMBER_ROLE}, which is not there.",
            f"Apply {MANIFESTS['enforce']}.",
        )


def _unoffered(cluster: Cluster, client: Client, findings: Iterable[Finding]) -> Iterator[Item]:
    """Namespaces of queues that an account with the rights of enforce.yaml may not take."""
    names = [f.name for f in findings if f.detail.startswith(NOT_OFFERED)]
    enforced = cluster.mode == ClusterMode.ENFORCE
    if not names or (enforced and not _stands(client, f"{POLICIES}/{ENGINE}")):
        return
    command = offering(*names)
    yield Item(
        Grade.MISSING if enforced else Grade.ADVICE,
        "namespaces",
        f"These namespaces exist, and Weir may not manage them before they are offered: {', '.join(names)}.",
        f"Look at what runs there, then offer them: {command}",
        command,
    )


def _stands(client: Client, path: str) -> bool:
    """Without the right to look, the benefit of the doubt."""
    try:
        client.get(path)
    except NotFoundError:
        return False
    except ApiError:
        return True
    return True
