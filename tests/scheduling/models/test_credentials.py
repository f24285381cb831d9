"""What opens clusters lies enciphered in the database, where every process has it."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from scheduling.cluster.connection.client import configuration_of
from scheduling.models import Cluster, Credential, LostCredentialError
from scheduling.models.credentials import is_kept, keep, read
from scheduling.services.clusters import tokens
from scheduling.services.clusters.connecting import take_in
from scheduling.services.clusters.connection import address_of
from scheduling.services.errors import ServiceError

pytestmark = pytest.mark.django_db
TOKEN = "eyJ-a-token-that-opens-everything"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="fra1", api_url="https://10.0.0.1:6443")


def stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sealed, reference FROM scheduling_credential")
        return str(cursor.fetchall())


def test_text_comes_back_and_a_copy_of_the_database_does_not_give_it(cluster: Cluster) -> None:
    place = keep(cluster, "token_file", f"{TOKEN}\n")

    assert is_kept(place)
    assert read(place) == TOKEN
    assert TOKEN not in stored()


def test_key_of_another_installation_reads_nothing(cluster: Cluster, settings: Any) -> None:
    place = keep(cluster, "token_file", TOKEN)
    settings.SECRET_KEY = "another" * 10

    with pytest.raises(LostCredentialError, match="WEIR_SECRET_KEY_FALLBACKS"):
        read(place)


def test_key_of_before_reads_it(cluster: Cluster, settings: Any) -> None:
    place = keep(cluster, "token_file", TOKEN)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another" * 10

    assert read(place) == TOKEN


def test_paste_anew_is_another_address_and_the_old_one_is_gone(cluster: Cluster) -> None:
    cluster.token_file = keep(cluster, "token_file", TOKEN)
    before, former = address_of(cluster), cluster.token_file
    cluster.token_file = keep(cluster, "token_file", TOKEN)

    assert address_of(cluster) != before
    assert Credential.objects.count() == 1
    with pytest.raises(LostCredentialError, match="paste it again"):
        read(former)


def test_cluster_takes_its_credentials_along(cluster: Cluster) -> None:
    keep(cluster, "token_file", TOKEN)
    cluster.delete()

    assert not Credential.objects.exists()


def test_nothing_is_kept_of_nothing(cluster: Cluster) -> None:
    keep(cluster, "token_file", TOKEN)

    assert keep(cluster, "token_file", "  ") == ""
    assert not Credential.objects.exists()


def test_token_and_ca_open_the_api_server(cluster: Cluster) -> None:
    ca = "-----BEGIN CERTIFICATE-----"
    cluster.token_file = keep(cluster, "token_file", TOKEN)
    cluster.ca_file = keep(cluster, "ca_file", ca)

    found = configuration_of(cluster)

    assert found.get_api_key_with_prefix("authorization") == f"Bearer {TOKEN}"
    assert found.ca_cert_data == ca
    assert found.ssl_ca_cert is None


KUBECONFIG = {
    "clusters": [{"name": "a", "cluster": {"server": "https://10.9.9.9:6443"}}],
    "users": [{"name": "a", "user": {"token": TOKEN}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}


def test_kubeconfig_opens_it_from_the_database(tmp_path: Path) -> None:
    cluster = Cluster.objects.create(name="fra1")
    cluster.kubeconfig = keep(cluster, "kubeconfig", yaml.safe_dump(KUBECONFIG))

    found = configuration_of(cluster)

    assert found.host == "https://10.9.9.9:6443"
    assert f"Bearer {TOKEN}" in found.api_key.values()


def with_files(tmp_path: Path, **user: Any) -> Cluster:
    path = tmp_path / "kubeconfig"
    users = [{"name": "a", "user": user or {"token": TOKEN}}]
    path.write_text(yaml.safe_dump(KUBECONFIG | {"users": users}))
    return Cluster.objects.create(name="fra1", kubeconfig=str(path))


def test_files_of_before_are_taken_in_and_needed_no_more(tmp_path: Path) -> None:
    cluster = with_files(tmp_path)
    call_command("cluster", "keep", "fra1")
    Path(cluster.kubeconfig).unlink()
    cluster.refresh_from_db()

    assert is_kept(cluster.kubeconfig)
    assert configuration_of(cluster).host == "https://10.9.9.9:6443"
    assert take_in(cluster) == []


def test_kubeconfig_that_names_a_file_stays_a_file(tmp_path: Path) -> None:
    cluster = with_files(tmp_path, tokenFile="/etc/token")

    with pytest.raises(ServiceError, match="names a file"):
        take_in(cluster)
    assert not Credential.objects.exists()


def test_token_that_the_kubelet_writes_anew_is_not_taken_in() -> None:
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    cluster = Cluster.objects.create(name="fra1", api_url="https://k", token_file=token)

    assert take_in(cluster) == []
    assert cluster.token_file == token


def test_token_that_ends_is_renewed_from_a_file(cluster: Cluster, tmp_path: Path) -> None:
    cluster.token_file = keep(cluster, "token_file", TOKEN)
    cluster.save()
    (tmp_path / "token").write_text("another\n")

    call_command("cluster", "keep", "fra1", "--token-file", str(tmp_path / "token"))

    cluster.refresh_from_db()
    assert read(cluster.token_file) == "another"
    assert Credential.objects.count() == 1


def token_of(days: int) -> str:
    """As an API server makes one that works for ``days``."""
    ends = (timezone.now() + timedelta(days=days)).timestamp()
    body = base64.urlsafe_b64encode(json.dumps({"exp": int(ends)}).encode()).decode()
    return f"e30.{body.rstrip('=')}.c2ln"


def test_token_that_works_too_long_is_not_taken_in(cluster: Cluster, tmp_path: Path) -> None:
    for days, is_taken in ((365, False), (30, True)):
        (tmp_path / "token").write_text(token_of(days))
        cluster.token_file = str(tmp_path / "token")
        if is_taken:
            assert take_in(cluster) == ["token_file"]
        else:
            with pytest.raises(ServiceError, match="90 days at most"):
                take_in(cluster)
            assert not Credential.objects.exists()


def test_ending_token_that_is_kept_is_told_with_a_command_that_there_is(cluster: Cluster) -> None:
    cluster.token_file = keep(cluster, "token_file", token_of(1))

    (ending,) = tokens.ending(cluster, timezone.now())

    assert ending.renewal.endswith("manage.py cluster keep fra1 --token-file token")
