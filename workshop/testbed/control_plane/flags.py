"""The command lines of the control plane's programs, and why they differ from the defaults."""

from __future__ import annotations

from pathlib import Path

import yaml

from .certificates import Pair

_HOST = "127.0.0.1"
_ISSUER = "https://kubernetes.default.svc"
_RATE, _BURST = 500, 1000
"""Requests a second of controllers and scheduler; the defaults (20 and 50) starve a Job queue."""
_SERVES_NOBODY = (f"--bind-address={_HOST}", "--secure-port=0")
"""Nobody asks controllers and scheduler for health or metrics here, so they listen nowhere."""


def etcd(folder: Path, port: int, peer_port: int, ca: Path, pair: Pair) -> list[str]:
    """One member; it answers only who has a certificate of ours."""
    client, peer = f"https://{_HOST}:{port}", f"https://{_HOST}:{peer_port}"
    tls = [
        f"--{prefix}{name}"
        for prefix in ("", "peer-")
        for name in (
            f"trusted-ca-file={ca}",
            f"cert-file={pair.certificate}",
            f"key-file={pair.key}",
            "client-cert-auth=true",
        )
    ]
    return [
        f"--data-dir={folder}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync=true",  # survives the end of processes, not of the machine: enough here
        "--log-level=warn",
        *tls,
    ]


def api_server(
    port: int, etcd_url: str, ca: Path, serving: Pair, client: Pair, signing: Pair, tokens: Path
) -> list[str]:
    """RBAC, token file, service account tokens; room for many clients at once."""
    return [
        f"--bind-address={_HOST}",
        f"--advertise-address={_HOST}",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",  # no Service leads here, and loopback would be refused
        f"--etcd-servers={etcd_url}",
        f"--etcd-cafile={ca}",
        f"--etcd-certfile={client.certificate}",
        f"--etcd-keyfile={client.key}",
        f"--client-ca-file={ca}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--token-auth-file={tokens}",
        # As most clusters have it: what pods may do is for Pod Security to say.
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={signing.certificate}",
        f"--service-account-signing-key-file={signing.key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        # Pods would wait for their namespace's account and get its token mounted; nothing runs in them.
        "--disable-admission-plugins=ServiceAccount",
        "--max-requests-inflight=5000",
        "--max-mutating-requests-inflight=2500",
    ]


def controller_manager(kubeconfig: Path, ca: Path, signing: Pair) -> list[str]:
    """Each controller acts in its own name, as in a cluster; one instance needs no election."""
    return [
        f"--kubeconfig={kubeconfig}",
        *_SERVES_NOBODY,
        "--leader-elect=false",
        # It looks through each policy for mistakes of types, for whoever reads its status, at half a core.
        "--controllers=*,-validatingadmissionpolicy-status-controller",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={signing.key}",
        f"--root-ca-file={ca}",
        f"--kube-api-qps={_RATE}",
        f"--kube-api-burst={_BURST}",
        "--concurrent-job-syncs=10",
        "--concurrent-namespace-syncs=20",
        # A simulated node is missed sooner than the 50 s of a real one.
        "--node-monitor-period=1s",
        "--node-monitor-grace-period=12s",
    ]


def scheduler(config: Path) -> list[str]:
    return [f"--config={config}", *_SERVES_NOBODY]


def scheduler_config(kubeconfig: Path) -> str:
    """Packs GPUs: the default spreads pods, which tears the nodes that gangs need whole."""
    resources = [{"name": "nvidia.com/gpu", "weight": 10}, {"name": "cpu", "weight": 1}]
    return _scheduler_config(kubeconfig, "default-scheduler", "MostAllocated", resources, 2)


def spreading_scheduler_config(kubeconfig: Path, name: str) -> str:
    """As Kubernetes ships it, but that what spreads pods counts GPUs: pods that ask for ``name``."""
    resources = [{"name": "nvidia.com/gpu", "weight": 1}]
    return _scheduler_config(kubeconfig, name, "LeastAllocated", resources, 10)


def _scheduler_config(
    kubeconfig: Path,
    name: str,
    scoring: str,
    resources: list[dict[str, object]],
    most_backoff_s: int,
) -> str:
    fit = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeResourcesFitArgs",
        "scoringStrategy": {"type": scoring, "resources": resources},
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": _RATE, "burst": _BURST},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": most_backoff_s,
        "profiles": [
            {"schedulerName": name, "pluginConfig": [{"name": "NodeResourcesFit", "args": fit}]}
        ],
    }
    return yaml.safe_dump(config, sort_keys=False)
