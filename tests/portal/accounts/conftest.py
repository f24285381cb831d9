import pytest

from tests.provider import Provider, provider
from tests.security.conftest import time_machine_at

__all__ = ["time_machine_at"]

CALLBACK = "http://testserver/sign-in/oidc/callback/"


@pytest.fixture(scope="session")
def running_provider(tmp_path_factory):
    with provider(tmp_path_factory.mktemp("provider"), [CALLBACK]) as running:
        yield running


@pytest.fixture
def sso(running_provider: Provider, settings) -> Provider:
    """The organisation's provider, known to Weir by settings; nobody is known to it yet."""
    settings.SOCIALACCOUNT_PROVIDERS = running_provider.settings()
    running_provider.keep({})
    return running_provider
