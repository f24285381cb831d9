"""What the server serves: one row per resource.

Everything generic (paths, discovery, storage, deletion) reads these rows; only defaults,
validation, printed columns and controllers know kinds by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One served resource and the ways in which a real server treats it specially."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    counts_generation: bool = False
    returns_deleted: bool = False
    """DELETE answers with the object instead of a Status."""
    orphans_by_default: bool = False
    """DELETE without a propagationPolicy leaves dependents alone."""
    unconditional_update: bool = True
    """PUT may leave out metadata.resourceVersion."""
    create_on_update: bool = False
    stored: bool = True
    """False: a question (a review) that is answered and kept nowhere."""

    @property
    def singular(self) -> str:
        """Return the lower-case kind."""
        return self.kind.lower()

    @property
    def group_version(self) -> str:
        """Return what stands in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Return the name messages use: `jobs.batch`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """Return the kind messages use: `Job.batch`, `Pod`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def has_status(self) -> bool:
        """Return whether `/status` is written apart."""
        return "status" in self.subresources


NAMESPACES = Resource(
    "", "v1", "namespaces", "Namespace", namespaced=False, short_names=("ns",),
    subresources=("status", "finalize"),
)  # fmt: skip
NODES = Resource(
    "", "v1", "nodes", "Node", namespaced=False, short_names=("no",), subresources=("status",)
)
PODS = Resource(
    "", "v1", "pods", "Pod", short_names=("po",), categories=("all",),
    subresources=("status", "binding", "eviction", "log"), counts_generation=True,
    returns_deleted=True,
)  # fmt: skip
EVENTS = Resource("", "v1", "events", "Event", short_names=("ev",), create_on_update=True)
RESOURCE_QUOTAS = Resource(
    "", "v1", "resourcequotas", "ResourceQuota", short_names=("quota",), subresources=("status",),
    returns_deleted=True,
)  # fmt: skip
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange", short_names=("limits",))
SERVICE_ACCOUNTS = Resource(
    "", "v1", "serviceaccounts", "ServiceAccount", short_names=("sa",), returns_deleted=True
)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", short_names=("cm",))
JOBS = Resource(
    "batch", "v1", "jobs", "Job", categories=("all",), subresources=("status",),
    counts_generation=True, orphans_by_default=True,
)  # fmt: skip
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False,
    short_names=("pc",), counts_generation=True,
)  # fmt: skip
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
PERSISTENT_VOLUMES = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", namespaced=False, short_names=("pv",),
    subresources=("status",), returns_deleted=True,
)  # fmt: skip
VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short_names=("pvc",),
    subresources=("status",), returns_deleted=True,
)  # fmt: skip
STORAGE_CLASSES = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False, short_names=("sc",)
)
LEASES = Resource(
    "coordination.k8s.io", "v1", "leases", "Lease",
    unconditional_update=False, create_on_update=True,
)  # fmt: skip
BUDGETS = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short_names=("pdb",),
    subresources=("status",), counts_generation=True, unconditional_update=False,
)  # fmt: skip
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")

CLUSTER_ROLES = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False
)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
ADMISSION_POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy", namespaced=False, subresources=("status",), counts_generation=True,
)  # fmt: skip
ADMISSION_POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding", namespaced=False, counts_generation=True,
)  # fmt: skip
MUTATING_POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies",
    "MutatingAdmissionPolicy", namespaced=False, counts_generation=True,
)  # fmt: skip
MUTATING_POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding", namespaced=False, counts_generation=True,
)  # fmt: skip
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
    namespaced=False, stored=False,
)  # fmt: skip
DEPLOYMENTS = Resource(
    "apps", "v1", "deployments", "Deployment", short_names=("deploy",), categories=("all",),
    subresources=("status",), counts_generation=True,
)  # fmt: skip
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
    namespaced=False, short_names=("crd", "crds"), subresources=("status",),
    counts_generation=True, unconditional_update=False,
)  # fmt: skip
DEVICE_CLASSES = Resource(
    "resource.k8s.io",
    "v1",
    "deviceclasses",
    "DeviceClass",
    namespaced=False,
    counts_generation=True,
)
RESOURCE_SLICES = Resource(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False,
    counts_generation=True,
)  # fmt: skip
CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"
)

RESOURCES: tuple[Resource, ...] = (
    NAMESPACES, NODES, PODS, EVENTS, RESOURCE_QUOTAS, LIMIT_RANGES, SERVICE_ACCOUNTS, CONFIG_MAPS,
    JOBS, PRIORITY_CLASSES, RUNTIME_CLASSES, PERSISTENT_VOLUMES, VOLUME_CLAIMS, STORAGE_CLASSES,
    LEASES, BUDGETS, ROLES, ROLE_BINDINGS,
    CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS,
    MUTATING_POLICIES, MUTATING_POLICY_BINDINGS, ACCESS_REVIEWS,
    DEPLOYMENTS, DEFINITIONS, DEVICE_CLASSES, RESOURCE_SLICES, CLAIM_TEMPLATES,
)  # fmt: skip

BY_PATH: dict[tuple[str, str, str], Resource] = {
    (r.group, r.version, r.plural): r for r in RESOURCES
}
GROUPS: dict[str, str] = {r.group: r.version for r in RESOURCES if r.group}
"""Served API groups and their one version, in the order of the table."""
