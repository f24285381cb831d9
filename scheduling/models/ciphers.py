"""How secrets lie encrypted in the database: a copy of it gives none away."""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings


def cipher(purpose: str) -> MultiFernet:
    """Of the secret key, and of those before it that ``SECRET_KEY_FALLBACKS`` still names; another for each
    purpose."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_key_of(purpose, secret)) for secret in keys])


def _key_of(purpose: str, secret: str) -> bytes:
    digest = hashlib.sha256(f"{purpose}:{secret}".encode()).digest()
    return base64.urlsafe_b64encode(digest)
