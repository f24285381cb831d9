"""A secret key for checkouts that are given none."""

import os
import secrets
from pathlib import Path


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
