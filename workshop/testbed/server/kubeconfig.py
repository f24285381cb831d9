"""The file with which clients find the server."""

from __future__ import annotations

import yaml

from workshop.testbed.server.kinds.resources import Json


def kubeconfig(url: str, token: str | None = None, namespace: str = "default") -> Json:
    """Return a kubeconfig for the server at `url`, as a dict."""
    user: Json = {"token": token} if token else {}
    context = {"cluster": "weir-embedded", "user": "weir", "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "weir-embedded", "cluster": {"server": url}}],
        "users": [{"name": "weir", "user": user}],
        "contexts": [{"name": "weir-embedded", "context": context}],
        "current-context": "weir-embedded",
    }


def kubeconfig_yaml(url: str, token: str | None = None, namespace: str = "default") -> str:
    """Return the same as the text of a file."""
    return yaml.safe_dump(kubeconfig(url, token, namespace), sort_keys=False)
