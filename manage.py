#!/usr/bin/env python
"""Weir's command line."""

import os
import sys
from importlib import import_module
from importlib.util import find_spec

OF_FILES = {
    "explain": "scheduling", "plan": "scheduling", "replay": "workshop", "scenario": "workshop",
}  # fmt: skip
"""Where commands are that start without settings and the portal: the subclasses of ``FileCommand``."""
OF_THE_DATABASE = frozenset({
    "audit", "cluster", "doctor", "export-trace", "first-admin", "rotate-keys", "snapshot", "what-if",
})  # fmt: skip
"""Commands that read what runs here: the subclasses of ``DatabaseCommand``."""


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    has_workshop = find_spec("workshop") is not None  # what is deployed has none
    if command in OF_FILES and (has_workshop or OF_FILES[command] != "workshop"):
        module = import_module(f"{OF_FILES[command]}.management.commands.{command}")
        module.Command().run_from_argv(sys.argv)
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    if has_workshop and command in OF_THE_DATABASE:
        from workshop.demo.running import join

        join()
    if has_workshop and command == "demo":
        import_module("workshop.management.commands.demo").Command().move_in(sys.argv)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
