"""The mirror misses nothing: across dropped watches, compaction, paging, and our own writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from scheduling.cluster.connection import reflector as module
from scheduling.cluster.connection.client import Client, ConflictError
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.connection.reflector import untrimmed
from tests.scheduling.kube import eventually
from workshop.testbed.server import EmbeddedServer

MAPS = "/api/v1/namespaces/default/configmaps"
ALL = {"maps": ("/api/v1/configmaps", untrimmed)}
OLD = ("default", "old0")


def config_map(name: str, value: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"v": value},
    }


def held(mirror: Mirror) -> dict[str, str]:
    """What is mirrored of this test's maps; a real cluster keeps some of its own."""
    ours = [o for o in mirror["maps"].objects() if "v" in o["data"]]
    return {o["metadata"]["name"]: o["data"]["v"] for o in ours}


@pytest.fixture
def mirror(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setattr(module, "BACK_OFF_S", (0.01, 0.05))
    for i in range(3):
        client.create(MAPS, config_map(f"old{i}"))
    mirror = Mirror(client, ALL)
    mirror.start()
    assert mirror.wait_synced(5)
    eventually(lambda: mirror["maps"].watches)
    yield mirror
    mirror.stop()


def test_synced_mirror_holds_what_was_there_and_what_comes(client: Client, mirror: Mirror) -> None:
    client.create(MAPS, config_map("new", "1"))
    client.patch(f"{MAPS}/new", {"data": {"v": "2"}})
    client.delete(f"{MAPS}/old0")

    eventually(lambda: held(mirror) == {"old1": "", "old2": "", "new": "2"})
    assert mirror["maps"].lists == 1


def test_long_list_is_read_page_by_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 7)
    for i in range(20):
        client.create(MAPS, config_map(f"m{i}"))
    mirror = Mirror(client, ALL)
    mirror.start()

    assert mirror.wait_synced(5)
    assert len(held(mirror)) == 20
    mirror.stop()


def test_cut_watch_resumes_without_a_new_list(
    bare_server: EmbeddedServer, client: Client, mirror: Mirror
) -> None:
    for i in range(5):
        bare_server.drop_connections()
        client.create(MAPS, config_map(f"during{i}"))
    client.delete(f"{MAPS}/old1")

    eventually(lambda: len(held(mirror)) == 7 and "old1" not in held(mirror))
    assert mirror["maps"].lists == 1
    assert mirror["maps"].watches > 1


def test_too_old_version_is_listed_anew_and_deletions_show(
    bare_server: EmbeddedServer, client: Client, mirror: Mirror
) -> None:
    bare_server.faults.configure(dropped_watch=1.0, drop_within_s=0.01, path="configmaps")
    bare_server.drop_connections()  # the watch opened before the rule is not its business
    eventually(lambda: mirror["maps"].watches > 2)
    bare_server.faults.configure(
        server_error=1.0, verbs=["WATCH", "GET"], path="configmaps$|watch="
    )
    bare_server.drop_connections()
    client.delete(f"{MAPS}/old2")
    client.create(MAPS, config_map("later"))
    bare_server.compact()
    bare_server.faults.clear()

    eventually(lambda: held(mirror).keys() == {"old0", "old1", "later"})
    assert mirror["maps"].lists > 1


def test_server_that_drops_every_watch_is_not_hammered(
    bare_server: EmbeddedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACK_OFF_S", (0.1, 15.0))
    bare_server.faults.configure(dropped_watch=1.0, drop_within_s=0.001, path="configmaps")
    mirror = Mirror(client, ALL)
    mirror.start()
    mirror.wait_synced(5)
    module.time.sleep(1.0)
    mirror.stop()

    assert 1 <= mirror["maps"].watches <= 8


def test_own_write_shows_at_once_and_an_older_event_does_not_undo_it(
    client: Client, mirror: Mirror
) -> None:
    first = client.create(MAPS, config_map("own", "1"))
    second = client.patch(f"{MAPS}/own", {"data": {"v": "2"}})
    mirror["maps"].absorb(second)
    mirror["maps"].absorb(first)

    assert held(mirror)["own"] == "2"


def test_late_answer_does_not_bring_a_deleted_object_back(client: Client, mirror: Mirror) -> None:
    made = client.create(MAPS, config_map("brief"))
    eventually(lambda: "brief" in held(mirror))
    client.delete(f"{MAPS}/brief")
    eventually(lambda: "brief" not in held(mirror))
    mirror["maps"].absorb(made)

    assert "brief" not in held(mirror)


def test_lag_grows_only_while_out_of_touch(
    bare_server: EmbeddedServer, client: Client, mirror: Mirror
) -> None:
    eventually(lambda: mirror.lag_s() == 0.0)
    bare_server.faults.configure(server_error=1.0, path="configmaps")
    bare_server.drop_connections()
    eventually(lambda: mirror.lag_s() > 0.1)
    bare_server.faults.clear()

    eventually(lambda: mirror.lag_s() == 0.0)


def test_change_is_announced(client: Client) -> None:
    heard: list[int] = []
    mirror = Mirror(client, ALL, on_change=lambda: heard.append(1))
    mirror.start()
    mirror.wait_synced(5)
    before = len(heard)
    client.create(MAPS, config_map("news"))

    eventually(lambda: len(heard) > before)
    mirror.stop()


@dataclass
class Listener:
    """A synced mirror of one namespace that counts what it announces."""

    client: Client
    number: int = 0

    def __post_init__(self) -> None:
        self.client.create(MAPS, config_map("old0"))
        self.mirror = Mirror(self.client, {"maps": (MAPS, untrimmed)}, on_change=self._hear)
        self.mirror.start()
        eventually(lambda: self.mirror["maps"].watches)
        self.number = 0

    def _hear(self) -> None:
        self.number += 1

    def patch(self, value: str) -> dict[str, Any]:
        return self.client.patch(f"{MAPS}/old0", {"data": {"v": value}})

    def patch_and_hear(self, value: str) -> dict[str, Any]:
        """A write that the watch tells of before it is answered."""
        answer = self.patch(value)
        eventually(lambda: held(self.mirror)["old0"] == value)
        return answer


@pytest.fixture
def listener(client: Client) -> Iterator[Listener]:
    made = Listener(client)
    yield made
    made.mirror.stop()


def test_foreseen_write_is_not_announced_whoever_tells_of_it_first(listener: Listener) -> None:
    maps = listener.mirror["maps"]
    maps.write(OLD, lambda: listener.patch_and_hear("watched"), is_foreseen=True)
    maps.write(OLD, lambda: listener.patch("answered"), is_foreseen=True)
    listener.client.create(MAPS, config_map("others"))
    eventually(lambda: "others" in held(listener.mirror))

    assert (held(listener.mirror)["old0"], listener.number) == ("answered", 1)


def test_write_that_nobody_foresaw_is_announced_once(listener: Listener) -> None:
    maps = listener.mirror["maps"]
    maps.write(OLD, lambda: listener.patch_and_hear("watched"), is_foreseen=False)

    assert listener.number == 1


def test_write_of_others_during_a_foreseen_one_is_announced(listener: Listener) -> None:
    def both() -> dict[str, Any]:
        ours = listener.patch("ours")
        listener.patch_and_hear("theirs")
        return ours

    listener.mirror["maps"].write(OLD, both, is_foreseen=True)

    assert (held(listener.mirror)["old0"], listener.number) == ("theirs", 1)


def test_change_heard_of_during_a_write_that_fails_is_announced(listener: Listener) -> None:
    def refused() -> dict[str, Any]:
        listener.patch_and_hear("theirs")
        raise ConflictError(409, "Conflict", "written by others")

    with pytest.raises(ConflictError):
        listener.mirror["maps"].write(OLD, refused, is_foreseen=True)

    assert listener.number == 1


def test_what_was_set_aside_is_not_there_until_it_changes(client: Client, mirror: Mirror) -> None:
    maps = mirror["maps"]
    ended, changed = (maps.get("default", name) for name in ("old0", "old1"))
    assert ended is not None
    assert changed is not None
    client.patch(f"{MAPS}/old1", {"data": {"v": "1"}})
    eventually(lambda: held(mirror)["old1"] == "1")
    maps.set_aside(ended)
    maps.set_aside(changed)
    maps.absorb(ended)
    assert held(mirror) == {"old1": "1", "old2": ""}

    client.patch(f"{MAPS}/old0", {"data": {"v": "2"}})
    eventually(lambda: held(mirror) == {"old0": "2", "old1": "1", "old2": ""})


def test_what_was_set_aside_may_be_deleted_and_made_anew(client: Client, mirror: Mirror) -> None:
    ended = mirror["maps"].get("default", "old0")
    assert ended is not None
    mirror["maps"].set_aside(ended)
    client.delete(f"{MAPS}/old0")
    client.create(MAPS, config_map("old0", "new"))

    eventually(lambda: held(mirror) == {"old0": "new", "old1": "", "old2": ""})
    assert mirror["maps"].departed({ended["metadata"]["uid"]})
