"""From what should stand on the cluster to what does: compare, then repair by server-side apply.

Comparing reads only, so it serves observe mode as well and a settled cluster is never written to. A
field is ours when our manifest names it; whatever else stands on an object is its other managers'.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduling.cluster.connection.client import (
    ApiError,
    Client,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from scheduling.cluster.guardrails.manifests import ENGINE, key_of, keys_of
from scheduling.cluster.guardrails.personas import NAME as PARAMETERS
from scheduling.cluster.guardrails.personas import READERS
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import milli
from scheduling.models import GuardrailState

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GuardrailKind:
    """Where objects of a kind are found. ``stays``: given back instead of deleted when unwanted.
    ``optional``: not wanted of an API server that does not serve it. ``only``: the one name of them that
    Weir looks at, whose fields it takes from whoever wrote them.
    """

    name: str
    root: str
    plural: str
    namespaced: bool = False
    stays: bool = False
    optional: bool = False
    only: str = ""

    @property
    def list_path(self) -> str:
        return f"{self.root}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        scope = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.root}{scope}/{self.plural}/{name}"


KINDS: tuple[GuardrailKind, ...] = (
    # Deleting a namespace would delete all that people keep in it.
    GuardrailKind("Namespace", "/api/v1", "namespaces", stays=True),
    GuardrailKind(
        "RoleBinding", "/apis/rbac.authorization.k8s.io/v1", "rolebindings", namespaced=True
    ),
    GuardrailKind("PriorityClass", "/apis/scheduling.k8s.io/v1", "priorityclasses"),
    GuardrailKind("ResourceQuota", "/api/v1", "resourcequotas", namespaced=True),
    GuardrailKind("LimitRange", "/api/v1", "limitranges", namespaced=True),
    GuardrailKind("ConfigMap", "/api/v1", "configmaps", namespaced=True, only=PARAMETERS),
    GuardrailKind(
        "MutatingAdmissionPolicy",
        "/apis/admissionregistration.k8s.io/v1",
        "mutatingadmissionpolicies",
        optional=True,
    ),
    GuardrailKind(
        "MutatingAdmissionPolicyBinding",
        "/apis/admissionregistration.k8s.io/v1",
        "mutatingadmissionpolicybindings",
        optional=True,
    ),
    GuardrailKind(
        "ValidatingAdmissionPolicy",
        "/apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
    ),
    GuardrailKind(
        "ValidatingAdmissionPolicyBinding",
        "/apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
    ),
)
"""In the order in which they are made; unwanted ones go in the opposite order."""
BY_NAME = {kind.name: kind for kind in KINDS}

QUANTITIES = ("spec.hard.", "spec.limits[")
"""Where in our manifests amounts stand."""
LEARNS_S = 0.1
"""An API server learns of new rights by its own watch."""
NOT_OURS = "It is there, and Weir does not keep it yet."
NOT_OFFERED = "It is there, and nobody offered it to Weir: "


@dataclass(frozen=True, slots=True)
class Finding:
    """One object. ``fields`` are the paths where it differs; ``wanted`` is None for unwanted ones."""

    kind: str
    namespace: str
    name: str
    standing: GuardrailState
    fields: tuple[str, ...] = ()
    detail: str = ""
    wanted: Json | None = None
    ours: bool = False
    """It carries our mark, so its fields of ours may be taken back from whoever changed them."""

    @property
    def path(self) -> str:
        return BY_NAME[self.kind].path(self.namespace, self.name)


def survey(client: Client, wanted: Sequence[Json]) -> list[Finding]:
    """How every wanted object stands, then the unwanted ones of ours. Reads only.

    Raises ApiError when the cluster does not answer or refuses the reading of a kind.
    """
    marked = {kind.name: found for kind in KINDS if (found := _marked(client, kind)) is not None}
    findings = [_judge(client, body, marked) for body in wanted if body["kind"] in marked]
    keys = keys_of(wanted)
    for kind in reversed(KINDS):
        for key, obj in sorted(marked.get(kind.name, {}).items(), key=lambda item: _going(item[0])):
            if key not in keys and not _stays(obj):
                findings.append(Finding(*key, GuardrailState.UNWANTED, ours=True))
    return findings


def _going(key: tuple[str, str, str]) -> tuple[bool, tuple[str, str, str]]:
    """The engine's own rights in a namespace go last."""
    return (key[2] == ENGINE, key)


def _stays(obj: Json) -> bool:
    """It goes already, or is a reader of parameters, which does nothing where there are none.

    Once the last policy that reads ConfigMaps is gone, an API server (seen in 1.36) stops following
    them, and one that is made later sees the parameters of back then until the server is restarted.
    """
    meta = obj["metadata"]
    return bool(meta.get("deletionTimestamp")) or meta["name"].startswith(READERS)


def repair(
    client: Client, findings: Iterable[Finding], *, check: Callable[[], None]
) -> list[Finding]:
    """Bring what is out of step into it; the findings as they stand then.

    ``check`` is called before every write and may raise to stop. What the API server refuses is
    reported in its finding and stops nothing else.
    """
    done: list[Finding] = []
    patience = Patience()
    for finding in findings:
        after = _repaired(client, finding, check, patience)
        if after is not None:
            done.append(after)
    return done


@dataclass(slots=True)
class Patience:
    """How long a pass waits until the API server knows of namespaces and rights that this pass made."""

    left_s: float = 3.0
    fresh: set[str] = field(default_factory=set)
    """Namespaces that were taken up in this pass, or in which the engine got its rights."""

    def note(self, finding: Finding) -> None:
        if finding.kind == "Namespace" or finding.name == ENGINE:
            self.fresh.add(finding.namespace or finding.name)

    def waits(self, finding: Finding) -> bool:
        """Whether it is worth another try, a moment later."""
        if finding.namespace not in self.fresh or self.left_s <= 0:
            return False
        self.left_s -= LEARNS_S
        time.sleep(LEARNS_S)
        return True


def _marked(client: Client, kind: GuardrailKind) -> dict[tuple[str, str, str], Json] | None:
    """Those that carry our mark; None where an optional kind is not served."""
    try:
        named = {"fieldSelector": f"metadata.name={kind.only}"} if kind.only else {}
        found = client.get(kind.list_path, labelSelector=f"{labels.MANAGED}=true", **named)
    except NotFoundError:
        # Applying one of another kind will say that the server does not know it.
        return None if kind.optional else {}
    # Items of a list carry no kind of their own.
    items = [{**obj, "kind": kind.name} for obj in found.get("items") or []]
    return {key_of(obj): obj for obj in items}


def _judge(client: Client, manifest: Json, marked: dict[str, dict[Any, Json]]) -> Finding:
    key = key_of(manifest)
    live = marked[key[0]].get(key)
    ours = live is not None
    if live is None:
        try:
            live = client.get(BY_NAME[key[0]].path(*key[1:]))
        except NotFoundError:
            return Finding(*key, GuardrailState.MISSING, wanted=manifest)
    if not ours and key[0] == "PriorityClass":
        return _judge_foreign_priority(key, manifest, live)
    fields = tuple(differences(manifest, live))
    if fields and not ours:
        return Finding(*key, GuardrailState.MISSING, fields, _not_ours(key, live), wanted=manifest)
    standing = GuardrailState.DRIFTED if fields else GuardrailState.IN_STEP
    return Finding(*key, standing, fields=fields, wanted=manifest, ours=ours)


def _not_ours(key: tuple[str, str, str], live: Json) -> str:
    said = live["metadata"].get("labels") or {}
    if key[0] != "Namespace" or said.get(labels.OFFERED) == "true":
        return NOT_OURS
    return NOT_OFFERED + labels.offering(key[2])


def _judge_foreign_priority(key: tuple[str, str, str], manifest: Json, live: Json) -> Finding:
    """A PriorityClass that others made stays theirs: nothing in it that matters can be changed."""
    if live.get("value") == manifest["value"]:
        return Finding(*key, GuardrailState.IN_STEP, detail="kept by others", wanted=manifest)
    detail = (
        f"Others made it with value {live.get('value')}, and a value cannot be changed. Delete it and "
        f"Weir makes it with {manifest['value']}, or give Weir's class of that name their value."
    )
    return Finding(*key, GuardrailState.REFUSED, fields=("value",), detail=detail, wanted=manifest)


def differences(wanted: Any, live: Any, path: str = "") -> list[str]:
    """Paths of the fields of ``wanted`` that ``live`` lacks or has otherwise.

    Maps may hold more than is wanted; lists are compared whole, item by item.
    """
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [
            found
            for key, value in wanted.items()
            if not (path == "" and key in ("apiVersion", "kind"))
            for found in differences(value, live.get(key), f"{path}.{key}" if path else key)
        ]
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        pairs = enumerate(zip(wanted, live, strict=True))
        return [f for i, (a, b) in pairs for f in differences(a, b, f"{path}[{i}]")]
    return [] if wanted == live or _same_amount(wanted, live, path) else [path]


def _same_amount(wanted: Any, live: Any, path: str) -> bool:
    """The server writes quantities in its own way: 1000 as 1k."""
    if not path.startswith(QUANTITIES) or live is None:
        return False
    try:
        return milli(str(wanted)) == milli(str(live))
    except ValueError:
        return False


def _repaired(
    client: Client, finding: Finding, check: Callable[[], None], patience: Patience
) -> Finding | None:
    if finding.standing in (GuardrailState.IN_STEP, GuardrailState.REFUSED):
        return finding
    check()
    try:
        if finding.wanted is None:
            _let_go(client, finding)
            return None
        _apply(client, finding, finding.wanted, patience)
    except ApiError as error:
        return replace(finding, standing=GuardrailState.REFUSED, detail=error.message)
    patience.note(finding)
    return replace(finding, standing=GuardrailState.IN_STEP, fields=(), detail="", ours=True)


def _apply(client: Client, finding: Finding, wanted: Json, patience: Patience) -> None:
    force = finding.ours or bool(BY_NAME[finding.kind].only)
    while True:
        try:
            client.apply(finding.path, wanted, force=force)
        except (ForbiddenError, InvalidError):
            if not patience.waits(finding):
                raise
        else:
            return


def _let_go(client: Client, finding: Finding) -> None:
    kind = BY_NAME[finding.kind]
    if kind.stays:
        bare = {"apiVersion": "v1", "kind": finding.kind, "metadata": {"name": finding.name}}
        client.apply(finding.path, bare, force=False)
        return
    try:
        client.delete(finding.path)
    except NotFoundError:
        return
