"""Engine and portal each reach a cluster by an account of their own, with tokens that end."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduling.cluster.connection.client import Client, Person
from scheduling.models import Cluster
from scheduling.services.clusters import tokens
from scheduling.services.clusters.connecting import Credentials, connect
from scheduling.services.clusters.connection import for_people
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import submit as workloads
from tests.scheduling.kube import World

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def token(days: float | None, now: datetime | None = None) -> str:
    ends = (now or datetime.now(UTC)) + timedelta(days=days or 0)
    said = {} if days is None else {"exp": int(ends.timestamp())}
    body = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    return f"head.{body}.sign"


@pytest.mark.parametrize("days", [365, 91, None])
@pytest.mark.parametrize("field", ["token", "portal_token"])
@pytest.mark.django_db
def test_token_of_a_year_is_refused_with_the_command_for_a_shorter_one(
    field: str, days: float | None
) -> None:
    given = {"token": token(30), field: token(days)}
    with pytest.raises(ServiceError) as refused:
        connect(
            name="x", credentials=Credentials(api_url="https://127.0.0.1:1", **given), author=None
        )

    assert (refused.value.code, refused.value.field) == ("long_token", field)
    assert "kubectl -n weir-system create token weir-" in refused.value.remedy
    assert "8760h" not in refused.value.remedy
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(
    "text",
    ["", "opaque", token(30), token(89)],
    ids=["none", "opaque", "of a month", "of 89 days"],  # a token has the clock in it
)
def test_token_that_ends_in_time_is_taken(text: str) -> None:
    tokens.check(text, tokens.ENGINE, "token")


def test_token_that_ends_soon_is_named_with_its_account_and_the_command(tmp_path: Path) -> None:
    for name, days in (("engine", 30), ("portal", 3)):
        (tmp_path / name).write_text(token(days, NOW))
    files = {"token_file": str(tmp_path / "engine"), "portal_token_file": str(tmp_path / "portal")}

    [found] = tokens.ending(Cluster(name="x", **files), NOW)

    assert found.account == "weir-portal"
    assert found.renewal.endswith(f"> {tmp_path / 'portal'}")


def test_people_are_acted_for_by_the_portals_token_and_read_by_the_engines(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "portal").write_text("portals")
    world.cluster.portal_token_file = str(tmp_path / "portal")
    world.cluster.save()
    used: list[str] = []
    headers = Client._headers

    def listen(
        self: Client, method: str, path: str, body: object, person: Person, kind: str
    ) -> object:
        found = headers(self, method, path, body, person, kind)  # type: ignore[arg-type]
        sent = dict(found).get("Authorization") or dict(found).get("authorization") or ""
        used.append(f"{person.name or 'itself'} {sent}")
        return found

    monkeypatch.setattr(Client, "_headers", listen)
    workloads.submit(world.cluster, manifest=world.manifest("w1"), user="ann")

    assert used == ["weir:ann Bearer portals"]
    assert for_people(Cluster(name="x", token_file="engine")).token_file == "engine"
