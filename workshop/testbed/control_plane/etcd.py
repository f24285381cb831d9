"""etcd's own API: its health, and compaction at will."""

from __future__ import annotations

import json
import ssl
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .certificates import Pair
from .probe import answers

Json = dict[str, Any]
_FIRST_KEY = "AA=="
"""The least key, in base64: any read tells the revision."""


@dataclass(frozen=True, slots=True)
class Etcd:
    """etcd at ``url``, spoken to as JSON over HTTPS with a client certificate."""

    url: str
    ca: Path
    client: Pair

    def is_healthy(self) -> bool:
        return answers(f"{self.url}/health", self._context())

    def compact(self) -> None:
        """Forget all versions but the latest of everything: older ones cannot be watched from."""
        revision = self._call("kv/range", {"key": _FIRST_KEY})["header"]["revision"]
        self._call("kv/compaction", {"revision": revision, "physical": True})

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.client.certificate, self.client.key)
        return context

    def _call(self, path: str, body: Json) -> Json:
        url, data = f"{self.url}/v3/{path}", json.dumps(body).encode()
        request = urllib.request.Request(url, data)  # noqa: S310 - https of our own
        with urllib.request.urlopen(  # noqa: S310 - the same
            request, context=self._context(), timeout=10
        ) as answer:
            return json.load(answer)
