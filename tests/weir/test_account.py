import stat

import pytest

from tests.weir.conftest import SERVER
from weir import account
from weir.faults import Fault

pytestmark = pytest.mark.django_db


def test_login_with_a_good_token_is_kept_for_its_owner_alone(weir, token):
    done = weir("login", SERVER, "--token-stdin", input=f"{token}\n")
    assert done.exit_code == 0, done.output
    assert "as researcher" in done.stderr
    assert stat.S_IMODE(account.path().stat().st_mode) == 0o600
    assert weir("whoami").stdout.startswith("User")


def test_login_with_a_bad_token_keeps_nothing(weir, cluster):
    done = weir("login", SERVER, "--token-stdin", input="nonsense\n")
    assert done.exit_code == 3
    assert "Make a new token" in done.stderr
    assert not account.path().exists()


def test_login_asks_for_the_token_without_an_echo(weir, token):
    done = weir("login", SERVER, input=f"{token}\n")
    assert done.exit_code == 0, done.output
    assert token not in done.output


def test_login_to_a_cluster_that_is_not_there_keeps_nothing(weir, token):
    done = weir("login", SERVER, "--token-stdin", "--cluster", "nowhere", input=f"{token}\n")
    assert done.exit_code == 4
    assert not account.path().exists()


def test_logout_forgets_the_token(weir, token):
    weir("login", SERVER, "--token-stdin", input=f"{token}\n")
    assert weir("logout").exit_code == 0
    assert weir("whoami").exit_code == 3


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("weir.example.org", "https://weir.example.org"),
        ("https://weir.example.org/teams/?x=1", "https://weir.example.org"),
        ("http://localhost:8000", "http://localhost:8000"),
    ],
)
def test_address_is_kept_without_its_path(typed, kept):
    assert account.checked(typed) == kept


@pytest.mark.parametrize("typed", ["http://weir.example.org", "ftp://weir.example.org", "https://"])
def test_address_that_would_leak_a_token_or_is_none_is_refused(typed):
    with pytest.raises(Fault):
        account.checked(typed)


def test_file_that_is_damaged_leads_to_login(weir, cluster):
    account.path().write_text("[1")
    done = weir("ls")
    assert done.exit_code == 3
    assert "weir login" in done.stderr
