"""What every test may lean on."""

import gc
import os
import tempfile
from collections import OrderedDict
from contextlib import ExitStack
from pathlib import Path

import pytest
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from celery import current_app
from django.conf import settings as django_settings
from django.contrib.auth.signals import user_logged_in
from django.core.cache import cache
from django.core.management.commands import flush
from django.db import connections
from django.db.backends.base.operations import BaseDatabaseOperations
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from whitenoise.middleware import WhiteNoiseMiddleware

from portal.plans import asking
from portal.web.frame.revision_cache import remembered
from scheduling.services.run_times import model_cache
from scheduling.services.starts import history
from tests import browser
from tests.database import migrated, unguarded
from tests.scheduling.control_plane import ON, control_plane

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")[2:]
if WORKER and "LOCATION" in django_settings.CACHES["default"]:
    # Each process of the tests empties its cache before a test: they must not share one. Settings are read
    # before this file is, and processes that tests start read the environment.
    own = f"{django_settings.CACHES['default']['LOCATION']}/{WORKER}"
    django_settings.CACHES["default"]["LOCATION"] = os.environ["WEIR_CACHE_URL"] = own

QUICK_HASH = "django.contrib.auth.hashers.MD5PasswordHasher"
# A password that a test sets takes no third of a second; those that the product hashed are still read.
django_settings.PASSWORD_HASHERS = [QUICK_HASH, *django_settings.PASSWORD_HASHERS]
gc.set_threshold(100_000, 20, 100)
# A request makes and drops objects by the thousand, and next to none hang together in circles: at Python's
# own thresholds looking for those is a sixth of what the walks cost.

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "default", max_examples=50, deadline=None, derandomize=True, suppress_health_check=QUIET
)
settings.register_profile("nightly", max_examples=2000, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
# It also draws constants out of whatever modules are loaded, so what else a worker has run would change
# the examples; there is no setting for it.
providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request):
    """SQLite in a file of its own, so that threads of one test (server, worker) see the same rows."""
    database = connections["default"].settings_dict
    with tempfile.TemporaryDirectory(prefix="weir-test-", dir=_memory()) as folder:
        if database["ENGINE"].endswith("sqlite3"):
            database["TEST"]["NAME"] = str(Path(folder, "weir.sqlite3"))
        request.getfixturevalue("django_db_modify_db_settings_parallel_suffix")
        yield


@pytest.fixture(scope="session")
def django_db_keepdb():
    """That of SQLite goes with its folder."""
    return connections["default"].vendor == "sqlite"


@pytest.fixture(scope="session")
def django_db_setup(request, django_db_modify_db_settings, django_db_keepdb):
    with ExitStack() as stack:
        if django_db_keepdb:
            path = Path(connections["default"].settings_dict["TEST"]["NAME"])
            stack.enter_context(migrated(path))
        request.getfixturevalue("django_db_setup")


@pytest.fixture(autouse=True, scope="session")
def own_broker(tmp_path_factory):
    """Each process of the tests has messages of its own."""
    folder = str(tmp_path_factory.mktemp("broker"))
    django_settings.WEIR_BROKER_FOLDER = folder
    current_app.conf.broker_transport_options = {"folder": folder}


@pytest.fixture(autouse=True, scope="session")
def emptied_between_tests():
    """A test whose transactions are real is followed by one DELETE or TRUNCATE of every table, which the
    database refuses of the audit log. In SQLite what migrations lay down stays: to make it anew costs more
    than most tests, and rows that tests begin with are laid down by what is there (``seeding``)."""
    empty, fill = BaseDatabaseOperations.execute_sql_flush, flush.emit_post_migrate_signal

    def empty_all(operations, statements):
        connection = operations.connection
        if connection.vendor == "sqlite":
            statements = [one for one in statements if not any(name in one for name in LAID_DOWN)]
        with unguarded(connection):
            return empty(operations, statements)

    def fill_in(verbosity, interactive, database):
        if connections[database].vendor != "sqlite":
            fill(verbosity, interactive, database)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseOperations, "execute_sql_flush", empty_all)
        patch.setattr(flush, "emit_post_migrate_signal", fill_in)
        yield


LAID_DOWN = tuple(f'"{table}"' for table in ("django_content_type", "auth_permission"))


@pytest.fixture(autouse=True, scope="session")
def static_files_listed_once():
    """Each client of Django's test suite makes the middleware anew; looking at every static file again would
    be half of what its first request costs."""
    look, seen = WhiteNoiseMiddleware.add_files_from_finders, {}

    def remember(middleware):
        if middleware.static_prefix not in seen:
            look(middleware)
            seen[middleware.static_prefix] = dict(middleware.files)
        middleware.files.update(seen[middleware.static_prefix])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", remember)
        yield


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Nothing is kept from test to test, and tests may ask in a second what people ask in a day."""
    cache.clear()
    monkeypatch.setattr(model_cache, "_loaded", {})
    monkeypatch.setattr(history, "_pasts", {})
    monkeypatch.setattr(django_settings, "WEIR_REMEMBERED_S", 0)
    monkeypatch.setattr(remembered, "_slots", OrderedDict())
    monkeypatch.setattr(django_settings, "WEIR_API_RATE", 0)
    monkeypatch.setattr(django_settings, "WEIR_API_RATE_UNKNOWN", 0)


@pytest.fixture(autouse=True)
def plans_at_once(monkeypatch):
    """A worker that is always free: what a page asks for is planned before it is shown."""
    monkeypatch.setattr(asking, "_ask", asking.answer)


@pytest.fixture(autouse=True, scope="session")
def proved_sessions():
    """A client that is signed in without a page has shown a password just now, as one by the page has."""

    def prove(request, user, **kwargs):
        if not get_authentication_records(request, user):
            record_authentication(request, user, "password")

    user_logged_in.connect(prove, weak=False)
    yield
    user_logged_in.disconnect(prove)


@pytest.fixture(scope="session")
def real_control_plane():
    """Kubernetes on loopback: etcd, API server, controllers, scheduler and simulated kubelets."""
    with control_plane() as plane:
        yield plane


@pytest.fixture
def kubernetes(real_control_plane):
    """The same without what the tests before left there: jobs, pods, leases, policies, nodes."""
    from tests.scheduling.real_server import empty

    empty(real_control_plane)
    return real_control_plane


def pytest_collection_finish():
    """What was imported and collected stays until the end; no collector goes through it again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config, items):
    """What only a real control plane can show runs in `make test-cluster`, what needs production parts in
    `make test-services`, what needs helm in `make test-deploy`. Files that take minutes come first: one that
    begins last leaves a core idle."""
    wanted = {
        "real": ON,
        "parts": bool(os.environ.get("WEIR_TEST_PARTS")),
        "deploy": bool(os.environ.get("WEIR_TEST_DEPLOY")),
    }
    elsewhere = {name for name, runs in wanted.items() if not runs}
    left = [item for item in items if elsewhere & {mark.name for mark in item.iter_markers()}]
    config.hook.pytest_deselected(items=left)
    kept = (item for item in items if item not in left)
    items[:] = sorted(kept, key=lambda item: not item.get_closest_marker("long"))


def pytest_terminal_summary(terminalreporter):
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    if line := browser.summary(skipped):
        terminalreporter.write_line(line, yellow=True)


def _memory() -> str | None:
    shared = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    return str(shared) if os.access(shared, os.W_OK) else None
