"""Program for test_end_to_end: a worker for a cluster of a kubeconfig, until it is killed.

The first start on a database writes the policy: queues ``research`` and ``products``, 8 GPUs each.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")


def main(kubeconfig: str) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)

    from scheduling.models import Cluster
    from tests.scheduling.embedded import embedded_worker
    from tests.scheduling.kube import policy

    if not Cluster.objects.exists():
        cluster = policy("enforce", "", "research", "products", nominal_gpus=8)
        cluster.kubeconfig, cluster.cycle_interval_s = kubeconfig, 0.5
        cluster.save()
    with embedded_worker():
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
