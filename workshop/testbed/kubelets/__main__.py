"""`python -m workshop.testbed.kubelets --kubeconfig FILE`: simulate nodes until interrupted."""

from __future__ import annotations

import logging
import signal
import threading

from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.kubeconfig import configuration_from
from scheduling.files.arguments import REFUSED
from workshop.arguments import OneLineParser, factor, seconds

from .fleet import Fleet


def main() -> None:
    """Act for every node labelled as simulated in the cluster that the kubeconfig names."""
    parser = OneLineParser(prog="python -m workshop.testbed.kubelets")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--context", default="")
    parser.add_argument("--startup", type=seconds, default=1.0, help="seconds until a pod runs")
    parser.add_argument("--pace", type=factor, default=1.0, help="how much faster work is done")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        client = Client(configuration_from(arguments.kubeconfig, arguments.context))
    except ConfigException as error:
        parser.exit(REFUSED, f"{error}\n")
    fleet = Fleet(client, arguments.startup, arguments.pace)
    fleet.start()
    stop.wait()
    fleet.stop()


if __name__ == "__main__":
    main()
