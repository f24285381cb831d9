"""Helm itself at a real control plane: an installation, the next version, and back again.

Simulated nodes run pods for ever, so the test ends the pod that migrates where it is to have done its work.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.deploy.charts import CHART, NAMESPACE, SETS, Json, Values, tools
from tests.deploy.test_applied import APPS, PODS, Site, within
from tests.scheduling.control_plane import control_plane

pytestmark = pytest.mark.deploy
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/weir"
HELM_S = 120


@pytest.fixture
def site() -> Iterator[Site]:
    with control_plane("released") as plane:
        made = Site(plane)
        yield made
        made.admin.close()


class Release:
    """`helm upgrade --install` and `helm rollback` of one release, as the manual has them."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def begin(self, *words: str, values: Values | None = None) -> subprocess.Popen[str]:
        done = subprocess.Popen(
            [tools() / "helm", "--kubeconfig", self.site._kubeconfig, "--namespace", NAMESPACE, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.stdin is not None
        done.stdin.write(yaml.safe_dump(values or {}))
        done.stdin.close()
        done.stdin = None
        return done

    def install(self, tag: str) -> subprocess.Popen[str]:
        values = SETS["trial"] | {"image": {"tag": tag}}
        return self.begin(
            "upgrade", "--install", "weir", str(CHART), "--values", "-", values=values
        )

    @property
    def images(self) -> set[str]:
        found = self.site.admin.get(APPS)["items"]
        return {
            one["spec"]["template"]["spec"]["containers"][0]["image"].split(":")[-1]
            for one in found
        }

    @property
    def held(self) -> dict[str, str]:
        data = self.site.admin.get(SECRET)["data"]
        return {name: base64.b64decode(value).decode() for name, value in data.items()}

    @property
    def migrations(self) -> list[Json]:
        return list(self.site.admin.get(JOBS)["items"])

    def migrating(self, tag: str) -> list[Json]:
        """Pods of that version that migrate."""
        return [
            pod
            for pod in self.site.pods_of("migrate")
            if pod["spec"]["containers"][0]["image"].endswith(f":{tag}")
        ]

    def migrated(self, tag: str) -> None:
        within(lambda: self.migrating(tag))
        (pod,) = self.migrating(tag)
        path = f"{PODS}/{pod['metadata']['name']}/status"
        self.site.admin.patch(path, {"status": {"phase": "Succeeded"}})


def ended(process: subprocess.Popen[str]) -> None:
    out, _ = process.communicate(timeout=HELM_S)
    assert process.returncode == 0, out


def test_next_version_migrates_before_its_processes_start_and_goes_back_with_the_same_keys(
    site: Site,
) -> None:
    release = Release(site)
    ended(release.install("1.0.0"))
    first = release.held
    within(lambda: all(site.pods_of(part) for part in ("postgres", "redis", "web", "migrate")))
    release.migrated("1.0.0")
    assert release.images == {"1.0.0"}

    next_one = release.install("2.0.0")
    within(lambda: release.migrating("2.0.0"))
    assert release.images == {"1.0.0"}, "no process of the new version before its schema"
    release.migrated("2.0.0")
    ended(next_one)
    assert release.images == {"2.0.0"}
    assert release.held == first, "with another key nothing that is enciphered could be read"
    within(lambda: not release.migrations)

    ended(release.begin("rollback", "weir"))
    assert release.images == {"1.0.0"}
    assert release.held == first
