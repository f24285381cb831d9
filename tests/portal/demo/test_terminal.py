"""The line by which `weir` signs in to the demo."""

from __future__ import annotations

import shlex

import pytest
from django.test import Client

from portal.accounts.models import User
from tests.factories import make_user
from workshop.demo import terminal

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> User:
    return make_user(terminal.USER)


def token_of(line: str) -> str:
    word, token, *_ = shlex.split(line)
    assert word == "echo"
    return token


def status_with(token: str) -> int:
    return Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code


def test_line_signs_in_as_admin_at_the_demos_address(admin: User) -> None:
    line = terminal.sign_in("http://127.0.0.1:8123")

    assert line.endswith("weir login http://127.0.0.1:8123 --token-stdin")
    assert status_with(token_of(line)) == 200


def test_line_of_the_next_start_takes_the_place_of_the_one_before(admin: User) -> None:
    before, now = (token_of(terminal.sign_in("http://127.0.0.1:8123")) for _ in range(2))

    assert (status_with(before), status_with(now)) == (401, 200)
    assert admin.api_tokens.count() == 1
