"""Pod Security labels of a namespace: which pods it takes, and that a controller's are judged as well."""

from __future__ import annotations

from typing import Any

import pytest

from .api import Api, eventually, job, pod

ENFORCE = "pod-security.kubernetes.io/enforce"


def level(api: Api, name: str) -> None:
    api.patch("namespaces", api.namespace, {"metadata": {"labels": {ENFORCE: name}}})


def refusal(api: Api, body: Any) -> str:
    """What refuses the pod, once the level is in force: admission reads a copy that follows the object."""
    refused = eventually(
        lambda: (
            a if (a := api.call("POST", api.path("pods"), body, dryRun="All")).code == 403 else 0
        )
    )
    assert refused.body["reason"] == "Forbidden"
    return str(refused.body["message"])


def accepted_soon(api: Api, body: Any) -> None:
    eventually(lambda: api.call("POST", api.path("pods"), body, dryRun="All").code == 201)


def secured(**context: Any) -> Any:
    """A pod whose container says so much of its security."""
    body = pod("w")
    body["spec"]["containers"][0]["securityContext"] = context
    return body


SAFE = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
HOST_PATH = {"name": "root", "hostPath": {"path": "/"}}
PORT = {"name": "main", "image": "work", "ports": [{"containerPort": 80, "hostPort": 80}]}
PROBE = {"httpGet": {"port": 80, "host": "10.0.0.1"}}
BREACHES = {
    "privileged": secured(privileged=True),
    "host network": pod("w", hostNetwork=True),
    "host processes": pod("w", hostPID=True),
    "host memory": pod("w", hostIPC=True),
    "host files": pod("w", volumes=[HOST_PATH]),
    "host ports": pod("w", containers=[PORT]),
    "probe of another host": pod(
        "w", containers=[{"name": "main", "image": "work", "livenessProbe": PROBE}]
    ),
    "init container": pod(
        "w",
        initContainers=[{"name": "i", "image": "work", "securityContext": {"privileged": True}}],
    ),
    "capabilities": secured(capabilities={"add": ["SYS_ADMIN"]}),
    "raw network": secured(capabilities={"add": ["NET_RAW"]}),
    "no seccomp": secured(seccompProfile={"type": "Unconfined"}),
    "no AppArmor": secured(appArmorProfile={"type": "Unconfined"}),
    "sysctls": pod("w", securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    "SELinux": pod("w", securityContext={"seLinuxOptions": {"type": "spc_t"}}),
}
UNRESTRICTED = {
    "nothing said": {},
    "escalation": {**SAFE, "allowPrivilegeEscalation": True},
    "root": {**SAFE, "runAsNonRoot": False},
    "user 0": {**SAFE, "runAsUser": 0},
    "capabilities kept": {**SAFE, "capabilities": {}},
    "no profile": {k: v for k, v in SAFE.items() if k != "seccompProfile"},
}


@pytest.mark.parametrize("breach", BREACHES)
def test_baseline_refuses_what_reaches_for_the_node(api: Api, breach: str) -> None:
    level(api, "baseline")
    said = refusal(api, BREACHES[breach])
    assert said.startswith('pods "w" is forbidden: violates PodSecurity "baseline:latest": ')

    level(api, "privileged")
    accepted_soon(api, BREACHES[breach])


def test_refusal_says_what_and_where(api: Api) -> None:
    level(api, "baseline")
    body = pod("w", hostNetwork=True, hostPID=True, volumes=[HOST_PATH])
    body["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert refusal(api, body) == (
        'pods "w" is forbidden: violates PodSecurity "baseline:latest": '
        'host namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volume "root"), '
        'privileged (container "main" must not set securityContext.privileged=true)'
    )


def test_baseline_takes_what_most_work_looks_like(api: Api) -> None:
    level(api, "baseline")
    refusal(api, BREACHES["privileged"])
    body = secured(runAsUser=0, capabilities={"add": ["CHOWN"]})
    body["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {"medium": "Memory"}}]
    api.create("pods", body)


@pytest.mark.parametrize("breach", UNRESTRICTED)
def test_restricted_takes_only_who_gives_up_every_privilege(api: Api, breach: str) -> None:
    level(api, "restricted")
    said = refusal(api, secured(**UNRESTRICTED[breach]))
    assert 'violates PodSecurity "restricted:latest": ' in said
    accepted_soon(api, secured(**SAFE))


def test_namespace_without_a_label_takes_all(api: Api) -> None:
    api.create("pods", BREACHES["privileged"])


@pytest.mark.controllers
def test_template_is_taken_and_its_pods_are_refused(api: Api) -> None:
    level(api, "baseline")
    refusal(api, BREACHES["privileged"])
    body = job("j")
    body["spec"]["template"]["spec"]["hostNetwork"] = True
    api.create("jobs", body)
    said = eventually(
        lambda: [e["message"] for e in api.get("events")["items"] if e["reason"] == "FailedCreate"]
    )
    assert 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)' in said[0]
    assert api.get("pods")["items"] == []
