"""Pod Security: what the pods of a namespace that is labelled with a level may ask of their node.

The baseline and restricted levels of Kubernetes' Pod Security Standards (latest) for containers on Linux.
Only pods are judged, as on a real server; the warnings and audit marks that one gives on templates are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workshop.testbed.server.kinds.errors import forbidden
from workshop.testbed.server.kinds.resources import NAMESPACES, PODS, Json
from workshop.testbed.server.store.context import World

from .containers import all_of, listed

ENFORCE = "pod-security.kubernetes.io/enforce"

CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ]
)
SELINUX_TYPES = frozenset(
    ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
)

Check = Callable[[Json], str]
"""From a pod's spec to what is wrong with it; empty when nothing is."""


def check_pod_security(world: World, pod: Json) -> None:
    """Refuse the new `pod` (403) if its namespace's level forbids something that it asks for."""
    namespace = world.store.get(NAMESPACES, "", pod["metadata"].get("namespace", ""))
    labels = (namespace.body["metadata"].get("labels") or {}) if namespace else {}
    level = labels.get(ENFORCE, "privileged")
    checks = {"baseline": BASELINE, "restricted": (*BASELINE, *RESTRICTED)}.get(level, ())
    if found := [why for check in checks if (why := check(pod["spec"]))]:
        said = f'violates PodSecurity "{level}:latest": {", ".join(found)}'
        raise forbidden(PODS, pod["metadata"].get("name", ""), said)


def _host_namespaces(spec: Json) -> str:
    found = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return f"host namespaces ({', '.join(f'{name}=true' for name in found)})" if found else ""


def _host_path(spec: Json) -> str:
    found = [v["name"] for v in spec.get("volumes") or () if "hostPath" in v]
    return f"hostPath volumes ({listed('volume', found)})" if found else ""


def _host_ports(spec: Json) -> str:
    found = [
        c["name"]
        for c in all_of(spec)
        if any(port.get("hostPort") for port in c.get("ports") or ())
    ]
    return f"hostPort ({listed('container', found)} uses hostPorts)" if found else ""


def _host_probes(spec: Json) -> str:
    found = [c["name"] for c in all_of(spec) if any(_hosts(c))]
    return f"probe or lifecycle host ({listed('container', found)} uses hosts)" if found else ""


def _hosts(container: Json) -> Iterator[str]:
    hooks = container.get("lifecycle") or {}
    probes = (container.get(f"{name}Probe") for name in ("liveness", "readiness", "startup"))
    for handler in (*probes, *hooks.values()):
        for kind in ("httpGet", "tcpSocket"):
            yield ((handler or {}).get(kind) or {}).get("host") or ""


def _privileged(spec: Json) -> str:
    found = _those(spec, lambda said: bool(said.get("privileged")))
    said = "must not set securityContext.privileged=true"
    return f"privileged ({listed('container', found)} {said})" if found else ""


def _capabilities(spec: Json) -> str:
    found = _those(spec, lambda said: bool(_added(said) - CAPABILITIES))
    said = "must not include more than the default in securityContext.capabilities.add"
    return f"non-default capabilities ({listed('container', found)} {said})" if found else ""


def _added(context: Json) -> set[str]:
    return set((context.get("capabilities") or {}).get("add") or ())


def _proc_mount(spec: Json) -> str:
    found = _those(spec, lambda said: said.get("procMount", "Default") != "Default")
    return f"procMount ({listed('container', found)} must not set it)" if found else ""


def _profiles(spec: Json) -> str:
    for name in ("seccompProfile", "appArmorProfile"):
        contexts = (_context(part) for part in (spec, *all_of(spec)))
        if any((said.get(name) or {}).get("type") == "Unconfined" for said in contexts):
            return f'{name} (must not set type to "Unconfined")'
    return ""


def _selinux(spec: Json) -> str:
    for part in (spec, *all_of(spec)):
        said = _context(part).get("seLinuxOptions") or {}
        if said.get("type", "") not in SELINUX_TYPES or said.get("user") or said.get("role"):
            return "seLinuxOptions (must not set type, user or role)"
    return ""


def _sysctls(spec: Json) -> str:
    names = {s["name"] for s in _context(spec).get("sysctls") or ()} - SYSCTLS
    return f"forbidden sysctls ({', '.join(sorted(names))})" if names else ""


def _windows(spec: Json) -> str:
    contexts = (_context(part) for part in (spec, *all_of(spec)))
    found = any((said.get("windowsOptions") or {}).get("hostProcess") for said in contexts)
    return "hostProcess (must not set securityContext.windowsOptions.hostProcess=true)" * found


def _escalation(spec: Json) -> str:
    found = _those(spec, lambda said: said.get("allowPrivilegeEscalation") is not False)
    said = "must set securityContext.allowPrivilegeEscalation=false"
    return (
        f"allowPrivilegeEscalation != false ({listed('container', found)} {said})" if found else ""
    )


def _unrestricted(spec: Json) -> str:
    def is_wide(context: Json) -> bool:
        dropped = set((context.get("capabilities") or {}).get("drop") or ())
        return "ALL" not in dropped or bool(_added(context) - {"NET_BIND_SERVICE"})

    found = _those(spec, is_wide)
    said = 'must set securityContext.capabilities.drop=["ALL"]'
    return f"unrestricted capabilities ({listed('container', found)} {said})" if found else ""


def _volumes(spec: Json) -> str:
    kinds = {kind for v in spec.get("volumes") or () for kind in v.keys() - {"name"}} - VOLUMES
    return f"restricted volume types ({', '.join(sorted(kinds))})" if kinds else ""


def _root(spec: Json) -> str:
    whole = _context(spec)
    for container in all_of(spec):
        said = {**whole, **_context(container)}
        if said.get("runAsNonRoot") is not True:
            return (
                "runAsNonRoot != true (pod or container must set securityContext.runAsNonRoot=true)"
            )
        if said.get("runAsUser") == 0:
            return "runAsUser=0 (pod or container must not set runAsUser=0)"
    return ""


def _seccomp(spec: Json) -> str:
    whole = _context(spec)
    kinds = {
        ({**whole, **_context(c)}.get("seccompProfile") or {}).get("type") for c in all_of(spec)
    }
    said = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return (
        f"seccompProfile (pod or container {said})"
        if kinds - {"RuntimeDefault", "Localhost"}
        else ""
    )


def _context(part: Json) -> Json:
    """What a pod or a container says of its security."""
    found: Json = part.get("securityContext") or {}
    return found


def _those(spec: Json, is_wrong: Callable[[Json], bool]) -> list[str]:
    return [c["name"] for c in all_of(spec) if is_wrong(_context(c))]


BASELINE: tuple[Check, ...] = (
    _capabilities,
    _host_namespaces,
    _host_path,
    _host_ports,
    _host_probes,
    _privileged,
    _proc_mount,
    _profiles,
    _selinux,
    _sysctls,
    _windows,
)
RESTRICTED: tuple[Check, ...] = (_escalation, _unrestricted, _volumes, _root, _seccomp)
