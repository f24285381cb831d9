"""What a command ends with when it can't do what was asked, and the exit code of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import click

from weir.printing import safe

REFUSED, NOT_SIGNED_IN, NOT_FOUND, UNREACHABLE, DIFFERS = 1, 3, 4, 5, 6
"""Exit codes; 0 is done, 2 a command that is not understood."""


class Fault(click.ClickException):
    """A sentence and a remedy. ``code`` is the server's own word for it, ``fields`` the faults by field."""

    def __init__(
        self,
        sentence: str,
        remedy: str = "",
        *,
        code: str = "",
        fields: Mapping[str, Any] | None = None,
        exit_code: int = REFUSED,
    ) -> None:
        super().__init__(sentence)
        self.remedy, self.code, self.fields = remedy, code, fields or {}
        self.exit_code = exit_code  # type: ignore[misc] # click declares it of the class

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"weir: {safe(self.message)}", err=True)
        for name, said in self.fields.items():
            for sentence in said if isinstance(said, list) else [said]:
                click.echo(f"  {safe(name)}: {safe(sentence)}", err=True)
        if self.remedy:
            click.echo(f"  {safe(self.remedy)}", err=True)
