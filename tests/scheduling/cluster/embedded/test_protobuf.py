"""Protobuf that is not as expected."""

from __future__ import annotations

import pytest

from .conftest import Cluster

KIND = "application/vnd.kubernetes.protobuf"


def _envelope(kind: str, raw: bytes) -> bytes:
    meta = b"\x0a\x02v1\x12" + bytes([len(kind)]) + kind.encode()
    return b"k8s\x00\x0a" + bytes([len(meta)]) + meta + b"\x12" + bytes([len(raw)]) + raw


def test_config_map_is_read(cluster: Cluster) -> None:
    raw = b"\x0a\x03\x0a\x01a" + b"\x12\x06\x0a\x01k\x12\x01v"
    path = cluster.api.path("configmaps")
    cluster.api.call("POST", path, _envelope("ConfigMap", raw), KIND).expect(201)
    assert cluster.api.get("configmaps", "a")["data"] == {"k": "v"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"hello", 400),
        (_envelope("ConfigMap", b"\x0a\x7f"), 400),
        (_envelope("ConfigMap", b"\xfa\x01\x01x"), 415),
        (_envelope("Dance", b""), 415),
    ],
)
def test_what_cannot_be_read_is_refused(cluster: Cluster, body: bytes, code: int) -> None:
    cluster.api.call("POST", cluster.api.path("configmaps"), body, KIND).expect(code)
