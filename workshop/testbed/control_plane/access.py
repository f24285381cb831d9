"""Access to the API server: tokens, kubeconfigs, and one file that says where it is."""

from __future__ import annotations

import json
import secrets
import ssl
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from .probe import answers

CONTEXT = "weir-real"
_FILE = "access.json"
_USERS = {
    "admin": ("weir-admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kubelets": ("weir-kubelets", "system:masters"),
}
"""Whose token is whose: user and group. Default RBAC knows the two of Kubernetes."""


@dataclass(frozen=True, slots=True)
class Access:
    """How an administrator reaches the API server."""

    url: str
    token: str
    ca_file: str
    kubeconfig: str
    context: str = CONTEXT

    @property
    def is_answered(self) -> bool:
        """Whether the API server is there and ready."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError:
            return False
        return answers(f"{self.url}/readyz", context, self.token)


def grant(folder: Path, url: str, ca: Path) -> Access:
    """Make tokens and write them: the API server's list, a kubeconfig each, the administrator's."""
    tokens = {who: secrets.token_urlsafe(24) for who in _USERS}
    _write(token_file(folder), _token_lines(tokens))
    for who, token in tokens.items():
        _write(kubeconfig_of(folder, who), yaml.safe_dump(_kubeconfig(url, ca, who, token)))
    kubeconfig = kubeconfig_of(folder, "admin")
    access = Access(url, tokens["admin"], str(ca), str(kubeconfig))
    _write(folder / _FILE, json.dumps(asdict(access)))
    return access


def read(folder: Path) -> Access | None:
    """What the last start wrote in ``folder``; None if there was none."""
    try:
        return Access(**json.loads((folder / _FILE).read_text()))
    except (OSError, ValueError):
        return None


def token_file(folder: Path) -> Path:
    return folder / "tokens.csv"


def kubeconfig_of(folder: Path, who: str) -> Path:
    return folder / ("kubeconfig" if who == "admin" else f"{who}.kubeconfig")


def _token_lines(tokens: dict[str, str]) -> str:
    lines = []
    for who, token in tokens.items():
        user, group = _USERS[who]
        lines.append(f"{token},{user},{user}" + (f",{group}" if group else ""))
    return "\n".join(lines) + "\n"


def _kubeconfig(url: str, ca: Path, who: str, token: str) -> dict[str, Any]:
    cluster = {"server": url, "certificate-authority": str(ca)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": who, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": who}}],
        "current-context": CONTEXT,
    }


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
