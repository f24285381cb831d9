"""An operator looks at what somebody changed on the cluster."""

from __future__ import annotations

import pytest
from django.utils import timezone

from portal.accounts.models import User
from scheduling.models import Cluster, ClusterMode, Guardrail, GuardrailState
from tests.e2e.conftest import axe, sign_in
from tests.factories import example_cluster


@pytest.fixture
def operator(page):
    cluster = example_cluster()
    for standing in GuardrailState.values:
        Guardrail.objects.create(
            cluster=cluster,
            kind="ResourceQuota",
            namespace=standing,
            name="weir",
            standing=standing,
            fields=["spec.hard.requests.nvidia.com/gpu"],
            since=timezone.now(),
        )
    sign_in(page, User.objects.get(username="admin"))
    return page


def test_operator_finds_what_is_out_of_step_on_any_screen(operator):
    operator.goto("/c/fra1/")
    operator.get_by_role("link", name="Engine").click()
    for width, scheme in ((1440, "light"), (1440, "dark"), (390, "light")):
        operator.set_viewport_size({"width": width, "height": 900})
        operator.emulate_media(color_scheme=scheme)
        assert operator.get_by_text("drifted/weir").is_visible()
        assert axe(operator) == [], (width, scheme)
        overflow = "document.documentElement.scrollWidth > window.innerWidth"
        assert not operator.evaluate(overflow), width


def test_operator_pauses_the_cluster_after_reading_what_that_ends(operator):
    operator.goto("/c/fra1/cluster/")
    operator.get_by_role("link", name="Pause…").click()
    assert operator.get_by_text("none is evicted").is_visible()
    for scheme in ("light", "dark"):
        operator.emulate_media(color_scheme=scheme)
        assert axe(operator) == [], scheme
    operator.get_by_role("button", name="Pause it").click()
    operator.wait_for_url("**/c/fra1/cluster/")

    assert operator.get_by_text("Weir leaves the cluster alone").first.is_visible()
    assert Cluster.objects.get(name="fra1").mode == ClusterMode.PAUSED
