"""Where a demo keeps its data, and the environment its process needs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

SEEDED = "seeded"
BROKER = "broker"
OURS = (
    "weir.sqlite3", "cluster.sqlite3", "kubernetes", "position", "later", "moments", BROKER, SEEDED,
)  # fmt: skip
"""How the names of all that a demo keeps begin."""


class ForeignFolderError(Exception):
    """A folder that holds what no demo made."""


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """One folder per demo: the database, the cluster's objects, the position in the stream."""

    path: Path

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.path / 'weir.sqlite3'}"

    @property
    def objects(self) -> Path:
        return self.path / "cluster.sqlite3"

    @property
    def control_plane(self) -> Path:
        return self.path / "kubernetes"

    @property
    def position(self) -> Path:
        return self.path / "position"

    @property
    def broker(self) -> Path:
        return self.path / BROKER

    @property
    def is_seeded(self) -> bool:
        return (self.path / SEEDED).exists()

    def open(self) -> None:
        """Make the folder; one whose seeding was killed half-way is begun again.

        Raises ForeignFolderError instead of removing what is not a demo's.
        """
        if self.path.exists() and not self.is_seeded:
            from workshop.demo.cluster.real import (
                abandon,
            )  # it needs settings, which need this folder

            self._refuse_what_is_not_ours()
            abandon(self.control_plane)
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True, exist_ok=True)

    def _refuse_what_is_not_ours(self) -> None:
        strange = sorted(
            entry.name for entry in self.path.iterdir() if not entry.name.startswith(OURS)
        )
        if strange:
            raise ForeignFolderError(
                f"--data: found {strange[0]!r} in {self.path}, expected an empty folder or a demo's own;"
                " name another one"
            )

    def mark_seeded(self) -> None:
        (self.path / SEEDED).touch()

    def environment(self) -> dict[str, str]:
        """What settings read at start: this demo's database, sign-ins shown, one numeric thread."""
        return {
            **os.environ,
            "DATABASE_URL": self.database_url,
            "WEIR_BROKER_URL": f"folder://{self.broker}",
            "WEIR_DEMO": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
