"""The image, built into a root file system: every command of the chart runs in it as in its pod."""

from __future__ import annotations

import json
import platform
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.deploy import image
from tests.deploy.charts import Json, of_kind, pods, template
from tests.fresh.roots import KEPT, NoRootError, end_all
from tests.manual import PAGES, ROOT, typed
from tests.test_dependencies import audit, program
from workshop.testbed.parts import Postgres, Redis, free_port, postgres, redis_server

pytestmark = [pytest.mark.deploy, pytest.mark.long]
UP_S = 180.0
MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
"""Platform of an image -> the word for it in names of wheels."""
POD = (
    "set -e; mount --bind $0 $0; mount -t proc proc $0/proc; mount --rbind /dev $0/dev; "
    "mount -t tmpfs -o mode=1777 tmpfs $0/tmp; mount --bind $1 $0/$2; shift 2; mount -o remount,ro,bind $0; "
    'exec setpriv --no-new-privs chroot --userspec=10001:10001 --groups= $0 env -i "$@"'
)
"""As the kubelet runs a container of the chart: root read-only, two folders to write, no privileges."""


class Cluster:
    """The chart's pods as processes in the image's root, one at a time: their ports are fixed."""

    def __init__(self, built: image.Stage, folder: Path, objects: list[Json]) -> None:
        self.built, self.pods, self.folder = built, pods(objects), folder
        maps = (
            of_kind(objects, "ConfigMap")["weir"]["data"]
            | of_kind(objects, "Secret")["weir"]["stringData"]
        )
        self.settings = dict(maps)

    def start(self, pod: str, command: list[str] | None = None) -> subprocess.Popen[str]:
        """``command``, else the container's own, in a pod whose ``var`` its init container filled."""
        spec = self.pods[pod]["spec"]
        var = self.folder / f"{pod}.{secrets.token_hex(4)}"
        var.mkdir(mode=0o777)
        var.chmod(0o777)
        (init,) = spec["initContainers"]
        filled = self._process(init["command"], {}, var, "var-of-pod")
        out, _ = filled.communicate(timeout=UP_S)
        assert filled.returncode == 0, out
        (container,) = spec["containers"]
        own = {one["name"]: one["value"] for one in container.get("env", [])}
        self.var = var
        return self._process(command or container["command"], self.settings | own, var, "weir/var")

    def run(self, pod: str, command: list[str] | None = None) -> subprocess.CompletedProcess[str]:
        process = self.start(pod, command)
        out, _ = process.communicate(timeout=UP_S)
        return subprocess.CompletedProcess(command or [], process.returncode, out)

    def _process(
        self, command: list[str], settings: dict[str, str], var: Path, place: str
    ) -> subprocess.Popen[str]:
        told = [f"{name}={value}" for name, value in {**self.built.environment, **settings}.items()]
        words = ["unshare", "--mount", "sh", "-c", POD, str(self.built.root), str(var), place]
        return subprocess.Popen(
            [*words, f"--chdir={self.built.folder}", *told, *command], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def probe(self, pod: str) -> str:
        (container,) = self.pods[pod]["spec"]["containers"]
        asked = container["readinessProbe"]["httpGet"]
        ports = {one["name"]: one["containerPort"] for one in container["ports"]}
        return f"http://127.0.0.1:{ports[asked['port']]}{asked['path']}"


@pytest.fixture(scope="module")
def built() -> Iterator[image.Stage]:
    root = KEPT / "trixie.image"
    try:
        made = image.build(root)
        # The kubelet makes a folder for what it mounts where the image has none.
        (made.root / "var-of-pod").mkdir()
        yield made
    except NoRootError as error:
        if "RUN " in str(error):
            raise
        pytest.skip(str(error))
    finally:
        end_all(root)
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)


@pytest.fixture(scope="module")
def cluster(built: image.Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("pods")
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    with postgres(free_port()) as database, redis_server() as broker:
        made = Cluster(built, folder, template(values(database, broker)))
        done = made.run(next(name for name in made.pods if name.startswith("weir-migrate")))
        assert done.returncode == 0, done.stdout
        yield made


def values(database: Postgres, broker: Redis) -> Json:
    given = {
        "WEIR_SECRET_KEY": secrets.token_urlsafe(50),
        "DATABASE_URL": database.url,
        "WEIR_BROKER_URL": f"{broker.url}/0",
    }
    return {"registry": "registry.example.org", "secret": {"values": given}}


def written(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*.nb?")}


def up(url: str, process: subprocess.Popen[str]) -> bool:
    until = time.monotonic() + UP_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if requests.get(url, timeout=5).ok:
                return True
        except requests.RequestException:
            time.sleep(0.3)
    return False


@pytest.mark.parametrize("name", ["web", "engine", "worker", "studies", "beat"])
def test_process_gets_ready_on_a_root_that_it_cannot_write_and_ends_when_asked(
    cluster: Cluster, name: str
) -> None:
    process = cluster.start(f"weir-{name}")
    try:
        ready = up(cluster.probe(f"weir-{name}"), process)
        compiled = written(cluster.var / "numba")
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=UP_S)

    assert ready, out[-3000:]
    assert compiled == written(cluster.built.root / "weir/var/numba"), (
        "it compiled kernels at its start"
    )


def test_lives_ahead_run_on_the_kernels_of_the_image(cluster: Cluster) -> None:
    done = cluster.run("weir-studies", ["python", "-m", "scheduling.simulation"])

    assert done.returncode == 0, done.stdout[-3000:]
    assert written(cluster.var / "numba") == written(cluster.built.root / "weir/var/numba") != {}


def test_commands_that_the_manual_runs_in_pods_work(cluster: Cluster) -> None:
    asked = {
        (found[1], found[2])
        for page in PAGES
        for line in typed(page)
        if (
            found := re.search(
                r"exec (?:deployment/)?(?:weir-)?(\w+) -- (python manage.py .*)", line
            )
        )
    }
    assert {words.split()[2] for _, words in asked} == {"first-admin", "doctor"}

    for pod, words in sorted(asked):
        done = cluster.run(f"weir-{pod}", words.split())
        assert done.returncode in ((0, 1) if "doctor" in words else (0,)), done.stdout[-3000:]
        assert "Traceback" not in done.stdout


def test_image_runs_as_nobody_and_holds_no_secret(built: image.Stage) -> None:
    assert built.user == "10001"
    assert not (built.root / "weir/var/secret_key").exists()
    assert not (built.root / "weir/.git").exists()


def test_bill_of_materials_has_what_is_pinned_and_nothing_more(built: image.Stage) -> None:
    bill = program("bill_of_materials")
    parts = bill.installed(["chroot", str(built.root), "/venv/bin/python"])
    told = json.loads(bill.bill(parts, "1.2.3"))

    have = {one["name"]: one["version"] for one in told["components"]}
    wanted = {
        audit.canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for pin in audit.pins(
            (ROOT / "requirements.txt").read_text().splitlines(), "requirements.txt"
        )
        if pin.marker is None
        or pin.marker.evaluate({"python_full_version": "3.13.0", "python_version": "3.13"})
    }
    assert {name: its for name, its in have.items() if name != "pip"} == wanted
    assert told["metadata"]["component"]["version"] == "1.2.3"
    assert all(one["purl"].startswith("pkg:pypi/") for one in told["components"])


def test_platforms_of_the_image_are_named_and_this_one_is_among_them() -> None:
    named = set(re.findall(r"linux/\w+", image.DOCKERFILE.read_text()))

    assert named == set(MACHINES)
    assert platform.machine() in MACHINES.values()


def test_every_stage_begins_with_one_base_that_is_pinned_by_digest() -> None:
    bases = {image.BASE.match(stage[0][1]) for stage in image.instructions()}

    assert len({(base["python"], base["suite"], base["digest"]) for base in bases if base}) == 1
    assert None not in bases
