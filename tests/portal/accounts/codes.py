"""An app for one-time codes, written from RFC 6238 and not from the code under test."""

import base64
import hashlib
import hmac
import time


def code_of(secret: str, *, steps_ago: int = 0) -> str:
    step = int(time.time()) // 30 - steps_ago
    digest = hmac.new(base64.b32decode(secret), step.to_bytes(8, "big"), hashlib.sha1).digest()
    at = digest[-1] & 15
    return f"{(int.from_bytes(digest[at : at + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06}"
