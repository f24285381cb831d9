"""The chart, rendered with the values of an organisation."""

from __future__ import annotations

import copy
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/weir"
NAMESPACE = "weir-system"
Json = dict[str, Any]
Values = dict[str, Any]

EXTERNAL: Values = {"registry": "registry.example.org/gpus", "secret": {"existing": "weir-secrets"}}
PROXIED: Values = {**EXTERNAL, "site": "gpus.example.org", "trustedProxies": ["10.0.0.0/8"]}
SETS: dict[str, Values] = {
    "trial": {"registry": "r.example.org", "trial": {"enabled": True}, "size": "trial"},
    "external": EXTERNAL,
    "values-in-place": {
        "registry": "r.example.org",
        "secret": {
            "values": {
                "WEIR_SECRET_KEY": "k" * 60,
                "DATABASE_URL": "postgres://weir:pw@db.example.org/weir",
                "WEIR_BROKER_URL": "rediss://:pw@redis.example.org:6379/0",
            }
        },
        "config": {"values": {"WEIR_LOG_LEVEL": "INFO"}},
    },
    "ingress": {
        **PROXIED,
        "ingress": {"enabled": True, "className": "nginx", "tls": {"clusterIssuer": "letsencrypt"}},
        "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
        "streams": {
            "audit": "syslog+udp://log.example.org",
            "security": "syslog+tls://log.example.org",
            "usage": "https://in.example.org/x",
        },
        "tracing": {"endpoint": "http://collector.monitoring:4318"},
    },
    "gateway": {
        **PROXIED,
        "gateway": {"enabled": True, "parentRefs": [{"name": "edge", "namespace": "gateways"}]},
    },
    "large": {
        **PROXIED,
        "size": "large",
        "ingress": {"enabled": True},
        "web": {"replicas": 6, "resources": {"requests": {"cpu": "3"}}},
        "engine": {"replicas": 2, "clusters": [["fra1", "ams1"], ["sin1"]]},
        "studies": {"replicas": 3},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "trustedCertificates": {"configMap": "our-bundle", "key": "ca.pem"},
    },
    "observer": {
        **EXTERNAL,
        "rights": {"engine": "observe", "portal": False},
        "podDisruptionBudgets": False,
        "networkPolicies": {"databaseCidrs": ["10.1.0.0/24"], "redisCidrs": ["10.2.0.0/24"]},
    },
    "air-gapped": {
        "registry": "mirror.inside/weir",
        "trial": {"enabled": True, "storageClass": "fast"},
        "image": {"digest": "sha256:" + "a" * 64, "pullSecrets": ["mirror"]},
        "monitoring": {"enabled": True},
        "config": {"existing": "our-settings"},
    },
}
"""What organisations differ in; each set is rendered, validated and applied."""


@cache
def tools() -> Path:
    """The folder with helm and promtool, built where they are not there yet."""
    done = subprocess.run(
        [ROOT / "deploy/tools/install.sh"], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(done.stdout.strip())


def helm(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tools() / "helm", *words],
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def template(values: Values, *options: str, namespace: str = NAMESPACE) -> list[Json]:
    """What the chart makes of ``values``."""
    done = helm(
        "template", "weir", str(CHART), "--namespace", namespace, "--values", "-", *options,
        text=yaml.safe_dump(values),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


@cache
def _rendered(name: str) -> list[Json]:
    return template(SETS[name])


def rendered(name: str) -> list[Json]:
    """A set of ``SETS``, for this test alone."""
    return copy.deepcopy(_rendered(name))


def refusal(values: Values) -> str:
    """What helm says of values that it does not take."""
    done = helm("template", "weir", str(CHART), "--values", "-", text=yaml.safe_dump(values))
    assert done.returncode != 0, "these values were taken"
    return done.stderr


def of_kind(objects: list[Json], kind: str) -> dict[str, Json]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def pods(objects: list[Json]) -> dict[str, Json]:
    """Name -> pod template of everything that runs pods."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]
        for one in objects
        if one["kind"] in ("Deployment", "StatefulSet", "Job")
    }
