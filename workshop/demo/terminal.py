"""The line by which the demo's admin signs in with `weir` in a second terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from portal.accounts.models import ApiToken, User

USER, TOKEN = "admin", "demo's terminal"
"""Whose sign-in shows everything, and what the token is called on their account's page."""


def sign_in(address: str) -> str:
    """A line for a shell, with a token that takes the place of the one from the start before."""
    user = User.objects.get(username=USER)
    user.api_tokens.filter(name=TOKEN).delete()
    _, plain = ApiToken.issue(user, TOKEN)
    return f"echo {plain} | {_program()} login {address} --token-stdin"


def _program() -> str:
    """`weir` as it is reached from where the demo was started."""
    there = Path(sys.executable).parent / "weir"
    return str(there.relative_to(Path.cwd())) if there.is_relative_to(Path.cwd()) else str(there)
