"""Runs command lines one after the other in one process of bounded memory, and says how each ended.

``python tests/security/attacker.py`` reads lists of words as JSON, one a line: ``manage.py …`` or
``-m MODULE …``. One start of Django serves a hundred attacks.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import runpy
import sys
import time
import traceback
from pathlib import Path

MOST_BYTES = 4 << 30
"""Address space, of which the libraries reserve most without touching it."""


def run(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    import manage

    sys.argv = words
    manage.main()


def attempt(words: list[str]) -> dict[str, object]:
    out, err, began_s = io.StringIO(), io.StringIO(), time.process_time()
    environment = dict(os.environ)
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run(words)
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            code = 1
            traceback.print_exc()
        finally:
            os.environ.clear()
            os.environ.update(environment)
    return {
        "code": code,
        "out": out.getvalue(),
        "err": err.getvalue(),
        "cpu_s": time.process_time() - began_s,
        "resident_mib": most_resident_mib(),
    }


def most_resident_mib() -> float:
    """Of this program alone: what getrusage tells begins with the size of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def main() -> None:
    sys.path.insert(0, str(Path.cwd()))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = sys.stdout
    for line in sys.stdin:
        answers.write(json.dumps(attempt(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
