#!/usr/bin/env python
"""Weir's command line."""

import os
import sys

OF_FILES = frozenset({"explain", "plan", "replay", "scenario"})
"""Commands that start without the portal's parts: the subclasses of ``FileCommand``."""
OF_THE_DATABASE = frozenset({"audit", "cluster", "export-trace", "snapshot", "what-if"})
"""Commands that read what runs here: the subclasses of ``DatabaseCommand``."""


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    settings = "scheduling.management" if command in OF_FILES else "portal.config"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", f"{settings}.settings")
    if command in OF_THE_DATABASE:
        from portal.demo.running import join

        join()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
