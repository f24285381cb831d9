"""Where the portal is and the token to it: a file of the person's own, or the environment."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click
import yaml

from weir.faults import NOT_SIGNED_IN, Fault

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Account:
    """``cluster`` is the one that commands mean unless they name another; empty: the only one there is."""

    server: str
    token: str
    cluster: str = ""
    ca_file: str = ""


def path() -> Path:
    return Path(os.environ.get("WEIR_CONFIG") or Path(click.get_app_dir("weir")) / "account.yaml")


def load() -> Account:
    """Raises Fault where nobody is signed in."""
    server, token = os.environ.get("WEIR_SERVER", ""), os.environ.get("WEIR_TOKEN", "")
    entry = _stored()
    if server and token:
        return Account(
            checked(server),
            token,
            os.environ.get("WEIR_CLUSTER", ""),
            os.environ.get("WEIR_CA_FILE", ""),
        )
    if entry is None:
        raise Fault("Nobody is signed in.", "Run: weir login URL", exit_code=NOT_SIGNED_IN)
    return entry


def _stored() -> Account | None:
    try:
        return Account(**yaml.safe_load(path().read_text()))
    except FileNotFoundError:
        return None
    except (OSError, TypeError, yaml.YAMLError) as error:
        raise Fault(
            f"{path()} can't be read.", "Run weir login again.", exit_code=NOT_SIGNED_IN
        ) from error


def keep(account: Account) -> None:
    """Into a file that nobody else may read, whole or not at all."""
    where = path()
    where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = where.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        yaml.safe_dump(asdict(account), file)
    new.replace(where)


def forget() -> bool:
    """Whether there was anything to forget."""
    known = path().exists()
    path().unlink(missing_ok=True)
    return known


def checked(server: str) -> str:
    """The address without what follows the host and port. Raises Fault: a token is not sent in the clear."""
    parts = urlsplit(server if "//" in server else f"https://{server}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Fault(f"{server} is no address.", "Write one such as https://weir.example.org.")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise Fault(
            "The token would go over the network unencrypted.",
            "Use the https address of the portal.",
        )
    return f"{parts.scheme}://{parts.netloc}"
