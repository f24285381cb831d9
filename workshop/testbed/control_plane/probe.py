"""One question to a server of ours: is it ready?"""

from __future__ import annotations

import ssl
import urllib.request


def answers(url: str, context: ssl.SSLContext, token: str = "") -> bool:
    """Whether a GET of ``url`` is answered with 200 within two seconds."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - https of our own
    try:
        with urllib.request.urlopen(request, context=context, timeout=2) as answer:  # noqa: S310
            return answer.status == 200
    except OSError:
        return False
