"""A secret key for checkouts that are given none."""

import os
import secrets
from pathlib import Path

LEAST_LENGTH = 50
"""Characters, as Django's own check asks; a key that `secrets` makes of 50 bytes has 67."""
LEAST_DIFFERENT = 12
"""Different characters: below that it is a word repeated."""
GIVEAWAYS = ("change", "default", "example", "insecure", "password", "secret")
"""Words that a person typed: no random key in ten million holds one."""


def local_secret_key(path: Path) -> str:
    """The key kept in ``path``, made there (readable by its owner only) on first use.

    Two processes that start at once agree: only the first link succeeds, the other reads it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()


def weakness(key: str) -> str:
    """What makes ``key`` guessable, to follow the setting's name; empty when nothing does."""
    if len(key) < LEAST_LENGTH:
        return f"has {len(key)} characters and needs {LEAST_LENGTH}"
    if len(set(key)) < LEAST_DIFFERENT:
        return f"has {len(set(key))} different characters and needs {LEAST_DIFFERENT}"
    word = next((word for word in GIVEAWAYS if word in key.lower()), None)
    return f"holds the word '{word}', as keys of examples do" if word else ""
