"""`python -m workshop.benches.worker.database KUBECONFIG LOAD`: tables and policy, without a worker.

In a process of its own, as where Weir runs: the worker does not carry what it takes to make tables.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .work import Load


def main(kubeconfig: str, load: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from workshop.benches.worker.policy import write_policy

    write_policy(Load.read(load), kubeconfig)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
