"""What every command shares: how it reads its arguments, how it speaks, and how it refuses."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser, SystemCheckError

from scheduling.files import arguments, plain
from scheduling.files.arguments import REFUSED

MOST_FAULTS = 20
"""Lines that are printed of a broken file."""
NO_ROOM = "The input asks for more memory than there is; give fewer nodes, members or workloads"


class Parser(CommandParser):
    """Refuses in one line."""

    def error(self, message: str) -> NoReturn:
        if not self.called_from_command_line:
            super().error(message)
        self.exit(REFUSED, arguments.refusal(self.prog, message))


class WeirCommand(BaseCommand):
    """Names come from people and clusters: ``say`` is the one door by which they reach a terminal."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = Parser  # Django lets nobody choose the class
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Raises CommandError with one line."""
        try:
            with self.origin():
                return super().execute(*args, **options)
        except SystemCheckError:
            raise
        except MemoryError as error:
            raise CommandError(NO_ROOM, returncode=REFUSED) from error
        except CommandError as error:
            raise CommandError(plain(str(error)), returncode=error.returncode) from error

    def origin(self) -> AbstractContextManager[Any]:
        """By which way what it announces comes about."""
        from scheduling.services import events  # commands of files read none of the database

        return events.coming_from(events.Origin(via="command"))

    def say(self, line: str = "") -> None:
        """One line to standard output."""
        self.stdout.write(plain(line))

    def note(self, line: str) -> None:
        """One line to standard error."""
        self.stderr.write(plain(line))

    def refuse(self, lines: Iterable[str]) -> NoReturn:
        """Say what is wrong with the input, a line for each fault, and end with exit code 2."""
        rows = list(lines)
        for line in rows[:MOST_FAULTS]:
            self.note(line)
        if len(rows) > MOST_FAULTS:
            self.note(f"and {len(rows) - MOST_FAULTS:,} more")
        sys.exit(REFUSED)


class FileCommand(WeirCommand):
    """Reads files and no database, so it starts without the portal's parts: see ``manage.py``."""

    requires_system_checks: list[str] = []

    def origin(self) -> AbstractContextManager[Any]:
        return nullcontext()


def refusal(message: str) -> CommandError:
    """For what somebody typed: exit code 2."""
    return CommandError(message, returncode=REFUSED)
