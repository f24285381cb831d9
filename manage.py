#!/usr/bin/env python
"""Weir's command line."""

import os
import sys
from importlib import import_module

OF_FILES = frozenset({"explain", "plan", "replay", "scenario"})
"""Commands that start without settings and the portal's parts: the subclasses of ``FileCommand``."""
OF_THE_DATABASE = frozenset({"audit", "cluster", "export-trace", "snapshot", "what-if"})
"""Commands that read what runs here: the subclasses of ``DatabaseCommand``."""


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command in OF_FILES:
        import_module(f"scheduling.management.commands.{command}").Command().run_from_argv(sys.argv)
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    if command in OF_THE_DATABASE:
        from portal.demo.running import join

        join()
    if command == "demo":
        import_module("portal.demo.management.commands.demo").Command().move_in(sys.argv)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
