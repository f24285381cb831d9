"""A cluster whose clock runs fast, as a demo's does: pages of wall times say so, others show none."""

import pytest

from portal.accounts.models import User
from portal.teams.models import SubmitTemplate
from scheduling.models import Cluster

pytestmark = pytest.mark.django_db
OF_THE_WALL = (
    "/audit/",
    "/account/",
    "/people/",
    "/notices/dead/",
    "/notices/",
    "/c/fra1/cluster/",
    "/teams/alignment/",
)


@pytest.mark.parametrize("path", OF_THE_WALL)
@pytest.mark.parametrize("speed", [1, 60])
def test_page_of_wall_times_says_whose_they_are_where_the_cluster_has_another_clock(
    cluster, as_user, settings, path, speed
):
    settings.WEIR_DEMO = True
    Cluster.objects.update(clock_speed=speed)
    said = as_user("admin").get(path).text
    assert ("Times here are the wall’s" in said) == (speed != 1)
    assert ("the clock of fra1 runs 60 times as fast" in said) == (speed != 1)


@pytest.mark.parametrize("speed", [1, 60])
def test_template_among_times_of_the_cluster_names_the_clock_of_its_own(cluster, as_user, speed):
    Cluster.objects.update(clock_speed=speed)
    owner = User.objects.get(username="researcher")
    kept = SubmitTemplate.objects.create(cluster=cluster, owner=owner, name="mine", values={})
    page = as_user("researcher").get(f"/c/fra1/submit/?template={kept.pk}").text
    assert "from mine, saved" in page
    assert ("by the wall’s clock" in page) == (speed != 1)
