"""Traces whose work an experiment may live: those of the folder that whoever operates Weir lets be used, and
files that are sent. Read within bounds; what is wrong is told by file and line, and nothing of it is used."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings

from scheduling.services.errors import ServiceError
from scheduling.simulation.traces import ENDINGS, Trace, TraceError, read_trace
from scheduling.simulation.traces.model import TraceFault

SENT_AS = ENDINGS
"""What the name of a file that is sent ends in."""
MOST_SENT = 700 * 1024
"""Bytes of a file that is sent, packed or not: a body has more room than that by the width of base64."""
MOST_UNPACKED = 16 * 1024 * 1024
MOST_KEPT = 64 * 1024 * 1024
"""Bytes of a file of the folder."""
FAULTS = 3
"""So many are told."""


def trace_names() -> list[str]:
    """Names of the traces that may be used, in order: files, and folders with a trace of the same name."""
    folder = _folder()
    if folder is None:
        return []
    return sorted(entry.name for entry in folder.iterdir() if _is_trace(entry))


def _folder() -> Path | None:
    folder: Path | None = settings.WEIR_LAB_TRACES
    return folder if folder is not None and folder.is_dir() else None


def _is_trace(entry: Path) -> bool:
    if entry.is_dir():
        return any((entry / f"{entry.name}{ending}").is_file() for ending in ENDINGS)
    return entry.name.endswith(ENDINGS) and entry.is_file()


def of_kept(name: str) -> Trace:
    """Raises ServiceError for a name that is not listed, or a file that is broken."""
    folder = _folder()
    if folder is None or name not in trace_names():
        names = ", ".join(trace_names()) or "none: send a file"
        raise _fault("There is no such trace.", f"Choose one of those that are kept ({names}).")
    file = folder / name
    if file.is_dir():
        file = next(file / f"{name}{end}" for end in ENDINGS if (file / f"{name}{end}").is_file())
    stat = file.stat()
    if stat.st_size > MOST_KEPT:
        raise _fault(f"{name} is too large.", f"Cut it to {MOST_KEPT >> 20} MiB.")
    return _read_kept(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=2)
def _read_kept(file: Path, _changed_ns: int, _size: int) -> Trace:
    return _read(file)


def of_sent(name: str, content: bytes) -> Trace:
    """``name`` says by its ending what it is. Raises ServiceError."""
    plain = Path(name).name
    if not plain.endswith(ENDINGS) or plain != name or len(name) > 120:
        raise _fault(
            "No reader is known for a file of that name.", f"Let it end in {', '.join(ENDINGS)}."
        )
    _check_size(content, plain.endswith(".gz"))
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"sent{next(end for end in _longest_first() if plain.endswith(end))}"
        file.write_bytes(content)
        return replace(_read(file, told_as=plain), name=plain, files=())


def _longest_first() -> list[str]:
    return sorted(ENDINGS, key=len, reverse=True)


def _check_size(content: bytes, is_packed: bool) -> None:
    if not content:
        raise _fault("The file is empty.", "Choose another one.")
    if len(content) > MOST_SENT:
        raise _fault(
            "The file is too large to be sent.",
            f"Pack it, cut it to {MOST_SENT >> 10} KiB, or have it put into the folder of kept traces.",
        )
    if is_packed and _unpacked(content) > MOST_UNPACKED:
        raise _fault(
            "The file unpacks to too much.", f"Cut it to {MOST_UNPACKED >> 20} MiB unpacked."
        )


def _unpacked(content: bytes) -> int:
    """Bytes, counted no further than one beyond the bound; what is damaged is the reader's to tell."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        return len(unpacker.decompress(content, MOST_UNPACKED + 1))
    except zlib.error:
        return 0


def _read(file: Path, told_as: str = "") -> Trace:
    try:
        trace = read_trace(file)
    except TraceError as error:
        name = told_as or file.name
        lines = [_fault_in_words(replace(fault, file=name)) for fault in error.faults[:FAULTS]]
        more = len(error.faults) - FAULTS
        rest = f" And {more} more." if more > 0 else ""
        raise _fault(f"{'; '.join(lines)}.{rest}", "Mend it; nothing of it was used.") from error
    except (OSError, gzip.BadGzipFile) as error:
        raise _fault("The file cannot be read.", "Tell whoever operates Weir.") from error
    if not len(trace):
        raise _fault("The trace has no work.", "Choose another one.")
    return trace


def _fault_in_words(fault: TraceFault) -> str:
    return str(fault)[:200]


def _fault(sentence: str, remedy: str) -> ServiceError:
    return ServiceError("bad_trace", sentence, remedy, field="trace")
