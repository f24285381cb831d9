"""A Kubernetes control plane on loopback: etcd, API server, controllers, scheduler, kubelets.

Everything speaks TLS under an authority made at each start, every caller has a token of its own,
RBAC decides. All state is in one folder; whoever opens the folder can stop what runs there, and
what etcd has stored outlives a stop.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from . import access, flags
from .binaries import Binaries
from .certificates import Authority
from .etcd import Etcd
from .processes import Process, end_all

HOST = "127.0.0.1"
READY_S = 60.0
_POLL_S = 0.05
_RARELY_COLLECTED = {"GOGC": "400"}
"""Memory is there, cores are few: a sixth of the API server's time goes into collecting garbage otherwise."""
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_SPAN = 10_000
"""Ports to choose from, below that range."""

ALL = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelets")
"""In the order of their start."""
STORAGE = ("etcd", "kube-apiserver")
"""Enough to store objects and watch them; benchmarks of writes run no more."""


class NotReadyError(Exception):
    """A part did not come up in time."""


class ControlPlane:
    """One control plane in ``folder``; usable as a context manager.

    ``parts`` names what runs, ``extra`` adds flags to a part.
    """

    def __init__(
        self,
        folder: Path,
        binaries: Binaries,
        *,
        parts: Sequence[str] = ALL,
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.folder = folder.resolve()
        self.access: access.Access
        """Valid after ``start``."""
        self._binaries = binaries
        self._parts = tuple(parts)
        self._extra = dict(extra or {})
        self._processes: dict[str, Process] = {}
        self._etcd: Etcd

    def start(self) -> Self:
        """Go on from what is stored; whatever an earlier start left running is ended first.

        Raises NotReadyError or ProcessDiedError, after which nothing runs.
        """
        end_all(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._prepare()
            for part in self._parts:
                self.start_part(part)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start_part(self, part: str) -> None:
        """Start one part, at its old address if it ran before; returns when it is ready."""
        process = self._processes[part]
        process.start(os.environ | _RARELY_COLLECTED)
        until = time.monotonic() + READY_S
        while not self._is_ready(part):
            process.check()
            if time.monotonic() > until:
                raise NotReadyError(f"{part} is not ready after {READY_S:g} s:\n{process.tail()}")
            time.sleep(_POLL_S)

    def stop_part(self, part: str, number: int = signal.SIGTERM) -> None:
        """End one part with a signal and leave the others alone."""
        self._processes[part].stop(number)

    def compact(self) -> None:
        """Have etcd forget history, as the API server has it do every five minutes."""
        self._etcd.compact()

    def _is_ready(self, part: str) -> bool:
        if part == "etcd":
            return self._etcd.is_healthy()
        return part != "kube-apiserver" or self.access.is_answered

    def _prepare(self) -> None:
        folder = self.folder
        authority = Authority(folder / "keys")
        ca = authority.certificate
        api_port, etcd_port, peer_port = _free_ports(3)
        storage, serving = authority.issue("etcd"), authority.issue("kube-apiserver")
        signing = authority.signing_pair("service-accounts")
        self._etcd = Etcd(f"https://{HOST}:{etcd_port}", ca, storage)
        self.access = access.grant(folder, f"https://{HOST}:{api_port}", ca)
        config = folder / "scheduler.yaml"
        config.write_text(flags.scheduler_config(access.kubeconfig_of(folder, "kube-scheduler")))
        tokens = access.token_file(folder)
        manager = access.kubeconfig_of(folder, "kube-controller-manager")
        arguments = {
            "etcd": flags.etcd(folder / "etcd", etcd_port, peer_port, ca, storage),
            "kube-apiserver": flags.api_server(
                api_port, self._etcd.url, ca, serving, storage, signing, tokens
            ),
            "kube-controller-manager": flags.controller_manager(manager, ca, signing),
            "kube-scheduler": flags.scheduler(config),
            "kubelets": ["--kubeconfig", str(access.kubeconfig_of(folder, "kubelets"))],
        }
        self._processes = {
            part: Process(folder, part, self._command(part, arguments[part]))
            for part in self._parts
        }

    def _command(self, part: str, arguments: Sequence[str]) -> list[str]:
        program = [self._binaries.path(part)]
        if part == "kubelets":
            program = [sys.executable, "-m", "workshop.testbed.kubelets"]
        return [*program, *arguments, *self._extra.get(part, ())]


def forget(folder: Path) -> list[str]:
    """End what runs in ``folder`` and remove all that is stored; the names of what was ended."""
    ended = end_all(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return ended


def _free_ports(number: int) -> list[int]:
    """Ports nobody listens on; held together, so that they differ.

    None of those that the kernel gives to outgoing connections: while the API server is away, a client
    that tries again would sooner or later get that very port for its own end, and keep it.
    """
    first = int(_OUTGOING.read_text().split()[0])
    with ExitStack() as stack:
        ports: list[int] = []
        candidates = range(max(1025, first - _SPAN), max(first, _SPAN))
        # Not of the seed: two processes whose tests begin with the same one would choose the same ports.
        for port in random.SystemRandom().sample(candidates, len(candidates)):
            with suppress(OSError):
                stack.enter_context(socket.socket()).bind((HOST, port))
                ports.append(port)
            if len(ports) == number:
                return ports
    raise NotReadyError(f"No port is free between {candidates.start} and {candidates.stop}.")
