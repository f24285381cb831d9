"""Program: README's commands from a bare clone in a bare Debian, as its newcomer sees them.

``python -m tests.fresh SUITE [--full] [--seed NUMBER]``, as root. A run shows: the first line is Weir's; the
demo answers with the overview, then with pages that are reached from there, none of them with a fault of the
server's; Ctrl-C ends it and leaves no process. With --full every test follows, with --seed in the order that
it draws.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fresh.pages import Visitor
from tests.fresh.roots import NoRootError, end_all, environment, fresh, inside, running

SOURCE = Path(__file__).resolve().parents[2]
SUITES = ("bookworm", "trixie", "sid")
PAGES = 30
MOST_S = 3600
END_S = 120  # seconds, on a machine with other load too
LEFT_OUT = 77
"""Exit code where no root can be made, which says nothing of Weir; automake's for a test left out."""
FOREIGN = ("debconf:", "dpkg", "WARNING:", "Traceback")
"""How lines begin that a newcomer can't make anything of."""


class UnwantedError(Exception):
    """What is not as README says."""


class Shown:
    """A command whose lines are shown with the seconds since it began, and kept."""

    def __init__(self, command: Sequence[str]) -> None:
        self.lines: list[str] = []
        self._since = time.monotonic()
        self.process = subprocess.Popen(
            command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    def say(self, text: str) -> None:
        sys.stdout.write(f"{self.seconds:7.1f} s  {text}\n")
        sys.stdout.flush()

    def interrupt(self) -> None:
        """As Ctrl-C in its terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self, timeout: float | None = None) -> int:
        status = self.process.wait(timeout)
        self._reader.join(timeout=5)
        return status

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            self.say(line.rstrip())


def demo(root: Path) -> None:
    """``make demo`` until its pages were walked. Raises UnwantedError."""
    port = _free_port()
    shown = Shown(inside(root, "make", "demo", f"PORT={port}"))
    visitor = Visitor(f"http://127.0.0.1:{port}")
    page = _first_page(shown, visitor)
    shown.say("— the overview is there")
    walked = []
    for path, status in visitor.walk(page, PAGES):
        walked.append((path, status))
        shown.say(f"— {status} {path}")
    shown.interrupt()
    try:
        shown.wait(END_S)
    except subprocess.TimeoutExpired:
        raise UnwantedError(f"Ctrl-C did not end the demo within {END_S} s") from None
    left = running(root)
    shown.say(f"— ended, {len(left)} processes are left")
    _judge(shown.lines, walked, left)


def _first_page(shown: Shown, visitor: Visitor) -> str:
    """The body of the overview, as soon as it answers."""
    while shown.seconds < MOST_S:
        if shown.process.poll() is not None:
            raise UnwantedError(f"make demo ended with {shown.process.returncode}")
        status, page = visitor.sign_in("admin", "weir")
        if status >= 500:
            raise UnwantedError(f"the first page answers {status}")
        if status == 200 and "Sign out" in page:
            return page
        time.sleep(0.5)
    raise UnwantedError(f"no page within {MOST_S} s")


def _judge(lines: list[str], walked: list[tuple[str, int]], left: dict[int, str]) -> None:
    if not lines[0].startswith("Weir: "):
        raise UnwantedError(f"the first line is not Weir's: {lines[0]!r}")
    if strange := next((line for line in lines if line.startswith(FOREIGN)), ""):
        raise UnwantedError(f"a line that is not Weir's: {strange!r}")
    if faults := [f"{path} ({status})" for path, status in walked if not 0 < status < 500]:
        raise UnwantedError(f"pages that failed: {', '.join(faults)}")
    if len(walked) < PAGES:
        raise UnwantedError(f"{len(walked)} pages are reached from the overview, expected {PAGES}")
    if left:
        raise UnwantedError(f"processes that the demo left: {', '.join(left.values())}")


def every_test(root: Path, seed: str) -> None:
    """``make test``, in the order that ``seed`` draws if there is one. Raises UnwantedError."""
    status = Shown(inside(root, "make", "test", f"SEED={seed}")).wait()
    if status:
        raise UnwantedError(f"make test ended with {status}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fresh")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--full", action="store_true", help="every test as well")
    parser.add_argument("--seed", default="", help="of the order of the tests")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with fresh(asked.suite, SOURCE) as root:
            try:
                demo(root)
                if asked.full:
                    every_test(root, asked.seed)
            finally:
                end_all(root)
    except NoRootError as error:
        sys.stderr.write(f"Debian {asked.suite}: left out, {error}\n")
        return LEFT_OUT
    except UnwantedError as error:
        sys.stderr.write(f"Debian {asked.suite}: {error}\n")
        return 1
    sys.stdout.write(f"Debian {asked.suite}: README's commands work.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
