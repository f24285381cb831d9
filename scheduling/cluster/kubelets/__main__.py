"""`python -m scheduling.cluster.kubelets --kubeconfig FILE`: simulate nodes until interrupted."""

from __future__ import annotations

import argparse
import logging
import signal
import threading

from scheduling.cluster.client import Client, configuration_from

from .fleet import Fleet


def main() -> None:
    """Act for every node labelled as simulated in the cluster that the kubeconfig names."""
    parser = argparse.ArgumentParser(prog="python -m scheduling.cluster.kubelets")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--context", default="")
    parser.add_argument("--startup", type=float, default=1.0, help="seconds until a pod runs")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    fleet = Fleet(
        Client(configuration_from(arguments.kubeconfig, arguments.context)), arguments.startup
    )
    fleet.start()
    stop.wait()
    fleet.stop()


if __name__ == "__main__":
    main()
