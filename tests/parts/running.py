"""Weir as separate processes, each started as its container would be and killed as one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.parts.deployment import Service
from workshop.testbed.parts import children_of

ROOT = Path(__file__).resolve().parents[2]


class Running:
    """The processes of a deployment. ``port`` is what the web server listens on in place of 8000."""

    def __init__(self, folder: Path, environment: Mapping[str, str], port: int) -> None:
        self.folder, self.port = folder, port
        venv = Path(sys.executable).parent
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("WEIR_")},
            **environment,
            "PATH": f"{venv}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.services: dict[str, Service] = {}

    def run(self, command: Sequence[str]) -> str:
        """A command that ends by itself; what it wrote."""
        done = subprocess.run(
            self._here(command), cwd=ROOT, env=self.environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, service: Service) -> None:
        """In a session of its own, so that what it starts ends with it, as in a container."""
        self.services[service.name] = service
        with (self.folder / f"{service.name}.log").open("ab") as log:
            self.processes[service.name] = subprocess.Popen(
                self._here(service.command), cwd=ROOT, env=self.environment, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip

    def revive(self) -> None:
        """Start again what has ended by itself, as ``restart: unless-stopped`` of compose.yaml has it.

        A Celery worker ends when its broker goes at the moment at which it acknowledges a message.
        """
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                print(f"{name} ended with {process.returncode} and is started again")  # noqa: T201
                self.start(self.services[name])

    def kill(self, name: str) -> None:
        """SIGKILL to all of it at once."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_children(self, name: str) -> int:
        """SIGKILL to what the service has started, not to itself; how many those were."""
        children = children_of(self.processes[name].pid)
        for child in children:
            os.kill(child, signal.SIGKILL)
        return len(children)

    def stop(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def logs(self) -> str:
        """The end of each."""
        names = sorted(path.stem for path in self.folder.glob("*.log"))
        return "\n".join(f"== {name}\n{self.log(name)[-3000:]}" for name in names)

    def _here(self, command: Sequence[str]) -> list[str]:
        """The same on a machine that others use as well: loopback, a free port, a folder of its own."""
        swapped = {"0.0.0.0": "127.0.0.1", "8000": str(self.port)}  # noqa: S104 - it is replaced
        words = [swapped.get(word, word) for word in command]
        # What lies in this tree stays where it is, though the tree may be in that folder.
        return [
            word if word.startswith(str(ROOT)) else word.replace("/tmp/", f"{self.folder}/")  # noqa: S108
            for word in words
        ]
