"""How far a predicted start is to be trusted stands wherever one does."""

from datetime import timedelta

import pytest

from scheduling.models import MILLI, ForecastOutcome, StartForecast
from scheduling.services.starts.accuracy import Share, held_of
from scheduling.services.starts.tell import DUE, like, trust
from scheduling.simulation.ahead.bands import HORIZONS_S, horizon
from tests.factories import make_workload

pytestmark = pytest.mark.django_db
HELD, LIKE_IT = 18, 21


@pytest.fixture
def waiting(cluster):
    """Forecast to start on h100 in an hour, as 21 starts of late were, of which 18 came by their P90."""
    h100, now = cluster.gpu_classes.get(name="h100-80gb"), cluster.now()
    queue = cluster.queues.get(name="pretraining")
    work = make_workload(
        queue, name="waits", user="researcher", gpus=MILLI, gpu_classes=["h100-80gb"],
        submitted_at=now - timedelta(days=9),
    )  # fmt: skip
    begin = now + timedelta(hours=2)
    StartForecast.objects.create(
        workload=work, at=now, p50_at=begin, p90_at=begin + timedelta(hours=1), gpu_class=h100
    )
    for number in range(LIKE_IT):
        past = make_workload(queue, name=f"came-{number}", state="finished", outcome="succeeded")
        came = timedelta(hours=2 if number < HELD else 4)
        ForecastOutcome.objects.create(
            workload=past, at_submission=True, told_at=now - timedelta(days=1), gpu_class=h100,
            p50_s=7200, p90_s=10800, raw_p50_s=7200, raw_p90_s=10800, gpus=MILLI,
            started_at=now - timedelta(days=1) + came,
        )  # fmt: skip
    return work


@pytest.mark.parametrize(
    ("user", "page"),
    [
        ("researcher", "/c/fra1/"),
        ("researcher", "/c/fra1/work/"),
        ("admin", "/c/fra1/"),
        ("admin", "/c/fra1/queues/pretraining/"),
    ],
)
def test_predicted_start_says_how_many_like_it_held(as_user, waiting, user, page):
    assert "18 of 21 like it held" in as_user(user).get(page).content.decode()


def test_workload_page_says_the_same_of_its_start(as_user, waiting):
    page = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/").content.decode()
    assert "(18 of 21 like it held)" in page


@pytest.fixture
def due(waiting):
    """Its P50 was ten minutes ago."""
    now = waiting.cluster.now()
    soon, late = now - timedelta(minutes=10), now + timedelta(hours=1)
    StartForecast.objects.update(at=now - timedelta(hours=3), p50_at=soon, p90_at=late)
    return waiting


@pytest.mark.parametrize(
    ("user", "page"),
    [
        ("researcher", "/c/fra1/"),
        ("researcher", "/c/fra1/work/"),
        ("researcher", "/c/fra1/w/{uid}/"),
        ("admin", "/c/fra1/queues/pretraining/"),
        ("admin", "/c/fra1/queues/pretraining/future/"),
    ],
)
def test_p50_that_has_passed_is_no_time_to_come_on_any_page(as_user, due, user, page):
    assert "any moment" in as_user(user).get(page.format(uid=due.uid)).content.decode()


def test_p50_that_has_passed_is_none_in_the_api(as_user, due):
    told = as_user("admin").get(f"/api/v1/clusters/fra1/workloads/{due.uid}").json()
    forecast = told["start_forecast"]
    assert (forecast["p50_at"], forecast["why_not"]) == (None, DUE)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({("h100", 2): Share(19, 20), ("", 2): Share(1, 90)}, "19 of 20 like it held"),
        ({("h100", 2): Share(9, 10), ("", 2): Share(40, 50)}, "40 of 50 like it held"),
        ({("", 2): Share(9, 10), ("h100", -1): Share(30, 40)}, "30 of 40 like it held"),
        ({("h100", 2): Share(9, 10)}, "too few starts like it so far"),
    ],
)
def test_forecasts_like_it_are_of_its_class_and_horizon_where_those_are_enough(held, said):
    assert trust(like(held, "h100", 7200)) == said


@pytest.mark.parametrize("p50_s", [end + more for end in HORIZONS_S for more in (-1, 0)])
@pytest.mark.parametrize(("late_s", "is_held"), [(0, 1), (1, 0)])
def test_database_counts_a_start_at_the_horizon_that_the_engine_gives_it(
    cluster, p50_s, late_s, is_held
):
    told, queue = cluster.now() - timedelta(days=3), cluster.queues.get(name="pretraining")
    past = make_workload(queue, name="came", state="finished", outcome="succeeded")
    ForecastOutcome.objects.create(
        workload=past, at_submission=True, told_at=told, p50_s=p50_s, p90_s=p50_s + 60,
        raw_p50_s=p50_s, raw_p90_s=p50_s + 60, gpus=MILLI,
        started_at=told + timedelta(seconds=p50_s + 60 + late_s),
    )  # fmt: skip
    came = Share(is_held, 1)
    assert held_of(cluster, cluster.now()) == {("", horizon(p50_s)): came, ("", -1): came}
