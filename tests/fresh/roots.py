"""Bare roots of Debian, and processes in them: debootstrap, chroot, mounts that end with their process.

What this machine needs to reach its mirrors (proxies, authorities, pip's configuration) is copied into each
root when it is made; none of it is known here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT = Path(os.environ.get("WEIR_FRESH", "/var/cache/weir-fresh"))
"""Pristine roots by suite, and what pip and apt downloaded: a run begins with a copy and removes it."""
PACKAGES = "ca-certificates,git,make,python3"
OF_THE_NETWORK = re.compile(
    r"(https?|ftp|all|no)_proxy|PIP_\w+|\w*(CERT|CA_BUNDLE|CAINFO)\w*", re.IGNORECASE
)
"""Names of variables by which programs reach a network."""
COPIED = ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", "root/.config/pip", "root/.pip")
AUTHORITIES = "usr/local/share/ca-certificates"
SOURCE = "root/weir"


class NoRootError(Exception):
    """A root cannot be made here, with the remedy."""


@contextmanager
def fresh(suite: str, source: Path) -> Iterator[Path]:
    """A root of ``suite`` with a clone of ``source``'s last commit; removed in the end.

    Raises NoRootError.
    """
    root = KEPT / f"{suite}.{os.getpid()}"
    try:
        copy_pristine(suite, root)
        clone = ("git", "clone", "--quiet", "--depth", "1")
        _run(*clone, f"file://{source}", root / SOURCE)
        yield root
    finally:
        end_all(root)
        shutil.rmtree(root, ignore_errors=True)


def copy_pristine(suite: str, root: Path) -> None:
    """A root of ``suite`` that reaches what this machine reaches. Raises NoRootError."""
    _run("cp", "--archive", "--reflink=auto", _pristine(suite), root)
    _hand_over(root)


def inside(root: Path, *command: str) -> list[str]:
    """``command`` in the clone of ``root``; what it mounts nobody else sees, and it goes with it."""
    suite = root.name.partition(".")[0]
    lent = {"pip": "root/.cache/pip", f"apt-{suite}": "var/cache/apt/archives"}
    steps = ["set -e", "mount -t proc proc $0/proc", "mount --rbind /dev $0/dev", "cd $0"]
    for name, place in lent.items():
        (KEPT / name).mkdir(parents=True, exist_ok=True)
        (root / place).mkdir(parents=True, exist_ok=True)
        steps.append(f"mount --bind {KEPT / name} $0/{place}")
    steps.append('exec chroot $0 env --chdir=/root/weir "$@"')
    return ["unshare", "--mount", "sh", "-c", "; ".join(steps), str(root), *command]


def environment() -> dict[str, str]:
    """Of a newcomer: no more than what reaches the network, and where programs are."""
    given = {name: value for name, value in os.environ.items() if OF_THE_NETWORK.fullmatch(name)}
    return {
        **given,
        "HOME": "/root",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }


def running(root: Path) -> dict[int, str]:
    """Process -> its command line, of every process whose root is ``root``."""
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(each / "root")) == root:
                words = (each / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(each.name)] = words.decode(errors="replace").strip()
        except OSError:
            continue  # it ended while it was looked at
    return {process: words for process, words in found.items() if words}


def end_all(root: Path) -> None:
    for process in running(root):
        try:
            os.kill(process, 9)
        except ProcessLookupError:
            continue


def _pristine(suite: str) -> Path:
    if os.geteuid():
        raise NoRootError(
            "A bare root is made by debootstrap and entered by chroot: run this as root"
        )
    folder = KEPT / suite
    if folder.exists():
        return folder
    if not shutil.which("debootstrap"):
        if not shutil.which("apt-get"):
            raise NoRootError("debootstrap is missing: install it")
        _run("apt-get", "update", "-qq")
        _run("apt-get", "install", "-y", "-qq", "debootstrap")
    half = KEPT / f"{suite}.half"
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    options = ("--variant=minbase", f"--include={PACKAGES}")
    # What it mounts ends with it: killed, it would leave this machine's own /proc in a folder to be removed.
    _run("unshare", "--mount", "debootstrap", *options, suite, half, *_mirror())
    half.rename(folder)
    return folder


def _mirror() -> list[str]:
    """The archive from which this machine's own packages come; else debootstrap's."""
    asked = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian")
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    return told[:1]


def _hand_over(root: Path) -> None:
    """This machine's way to the network."""
    for name in COPIED:
        there, here = Path("/", name), root / name
        if there.is_dir():
            shutil.copytree(there, here, dirs_exist_ok=True)
        elif there.exists():
            here.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there, here)
    told = subprocess.run(
        ["apt-config", "dump", "--format", '%F "%v";%n', "Acquire"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    lines = [line for line in told.splitlines() if re.match(r"Acquire::(https?|ftp)::", line)]
    # A mirror may be a copy of some day; what is in it is signed all the same.
    lines.append('Acquire::Check-Valid-Until "false";')
    (root / "etc/apt/apt.conf.d/90network").write_text("".join(f"{line}\n" for line in lines))
    if any(Path("/", AUTHORITIES).glob("*.crt")):
        shutil.copytree(Path("/", AUTHORITIES), root / AUTHORITIES, dirs_exist_ok=True)
        _run("chroot", root, "update-ca-certificates")


def _run(*command: str | Path) -> None:
    """Raises NoRootError with the last lines of what it said."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False,
        env={**_without_temporary_folder(), "DEBIAN_FRONTEND": "noninteractive"},
    )  # fmt: skip
    if done.returncode:
        sys.stderr.write(done.stdout[-2000:])
        raise NoRootError(f"{command[0]} ended with {done.returncode}; the lines above say why")


def _without_temporary_folder() -> dict[str, str]:
    """This machine's, if it has one of its own, is not there in a root."""
    return {name: value for name, value in os.environ.items() if name != "TMPDIR"}
