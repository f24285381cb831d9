from datetime import timedelta

import pytest

from scheduling.models import Quota, QuotaChange
from tests.factories import NOW

pytestmark = pytest.mark.django_db
QUOTAS = "/api/v1/clusters/fra1/quotas"
CHANGES = "/api/v1/clusters/fra1/quota-changes"


def edit(queue="pretraining", field="nominal", value=20, **more):
    cell = {"queue": queue, "gpu_class": "h100-80gb", "field": field, "value": value}
    return {"queue": "language", "cells": [cell], "reason": "less for now", **more}


def in_force(client, queue, at=None):
    query = {"queue": queue, "gpu_class": "h100-80gb", **({"at": at.isoformat()} if at else {})}
    return client.get(QUOTAS, query).data["results"]


def test_quotas_in_force_are_numbers_of_gpus(api):
    [row] = in_force(api("researcher"), "pretraining")
    figures = row["nominal_gpus"], row["borrowing_limit_gpus"], row["lending_limit_gpus"]
    assert figures == (24.0, 40.0, None)


def test_quota_of_a_queue_not_seen_is_left_out(api):
    assert in_force(api("researcher"), "search") == []


def test_edit_holds_from_now_and_keeps_what_was(api):
    response = api("lead").post(QUOTAS, edit(), format="json")
    assert response.status_code == 201, response.data
    assert response.data["cells"][0]["before"] == 24
    assert in_force(api("lead"), "pretraining")[0]["nominal_gpus"] == 20.0
    before = in_force(api("lead"), "pretraining", NOW - timedelta(days=1))
    assert before[0]["nominal_gpus"] == 24.0
    rows = api("lead").get(f"{QUOTAS}?queue=pretraining&gpu_class=h100-80gb&all=true").data
    assert rows["count"] == 2


def test_edit_of_what_somebody_changed_meanwhile_is_refused(api):
    first = api("lead").post(QUOTAS, edit(version=0), format="json")
    assert first.status_code == 201, first.data
    late = api("lead").post(QUOTAS, edit(value=10, version=0), format="json")
    assert (late.status_code, late.data["code"]) == (409, "stale")
    newest = in_force(api("lead"), "pretraining")[0]["change"]
    assert newest == first.data["id"]
    assert (
        api("lead").post(QUOTAS, edit(value=10, version=newest), format="json").status_code == 201
    )


def test_range_that_is_planned_is_read_at_its_time(api):
    start, end = NOW + timedelta(days=1), NOW + timedelta(days=2)
    body = edit(effective_from=start.isoformat(), effective_until=end.isoformat())
    assert api("lead").post(QUOTAS, body, format="json").status_code == 201
    at = (start - timedelta(hours=1), start + timedelta(hours=1), end)
    figures = [in_force(api("lead"), "pretraining", t)[0]["nominal_gpus"] for t in at]
    assert figures == [24.0, 20.0, 24.0]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (edit(value=-1), "cells.0.value"),
        (edit(value=None), "cells.0.value"),
        (edit(value="many"), "cells.0.value"),
        (edit(field="size"), "cells.0.field"),
        (edit(reason=""), "reason"),
        (edit(effective_from="soon"), "effective_from"),
        ({**edit(), "cells": []}, "cells"),
        (
            edit(
                effective_from=(NOW + timedelta(days=2)).isoformat(),
                effective_until=(NOW + timedelta(days=1)).isoformat(),
            ),
            "effective_until",
        ),
    ],
)
def test_faulty_edit_is_refused_at_its_field_and_saves_nothing(api, body, field):
    response = api("lead").post(QUOTAS, body, format="json")
    assert response.status_code == 400, response.data
    assert next(iter(response.data["fields"])).startswith(field)
    assert not QuotaChange.objects.exists()


def test_children_above_their_parent_are_refused_with_a_remedy(api):
    response = api("lead").post(QUOTAS, edit(value=30), format="json")
    assert response.status_code == 400
    assert Quota.objects.filter(queue__name="pretraining", nominal_gpus=30_000).count() == 0


def test_member_who_leads_nothing_may_not_edit(api):
    response = api("researcher").post(QUOTAS, edit(), format="json")
    assert response.status_code == 403
    assert response.data["code"] == "not_allowed"


def test_own_top_queue_is_divided_from_above_only(api):
    body = {**edit(queue="research"), "queue": "research"}
    assert api("lead").post(QUOTAS, body, format="json").status_code == 403


def test_wrong_instant_is_named(api):
    response = api("lead").get(f"{QUOTAS}?at=yesterday")
    assert list(response.data["fields"]) == ["at"]


def test_change_tells_who_when_and_why(api):
    api("lead").post(QUOTAS, edit(), format="json")
    [change] = api("lead").get(CHANGES).data["results"]
    assert (change["author"], change["reason"], change["queue"]) == (
        "lead", "less for now", "language",
    )  # fmt: skip


def test_change_shows_only_cells_of_queues_that_one_may_see(api):
    body = edit()
    body["cells"].append({**body["cells"][0], "queue": "alignment", "value": 10})
    api("lead").post(QUOTAS, body, format="json")
    [change] = api("researcher").get(CHANGES).data["results"]
    assert {cell["queue"] for cell in change["cells"]} <= {"pretraining", "alignment"}
    assert api("q.nguyen").get(CHANGES).data["results"] == []


def test_lead_exports_and_applies_the_figures_of_the_own_subtree(api, cluster):
    tree = "/api/v1/clusters/fra1/tree"
    lead = api("lead")
    assert lead.get(tree).status_code == 404
    told = lead.get(f"{tree}?queue=research").json()
    names = [one["name"] for one in told["queues"]]
    assert "vision" in names
    assert "products" not in names
    next(one for one in told["queues"] if one["name"] == "vision")["nominal"]["h100-80gb"] = 9
    done = lead.put(f"{tree}?queue=research", {**told, "reason": "By file"}, format="json")
    assert done.status_code == 200
    assert Quota.objects.get(change__reason="By file").nominal_gpus == 9000


@pytest.mark.parametrize(
    ("user", "queue", "file", "status"),
    [
        ("lead", "products", {"name": "assistant"}, 404),
        ("researcher", "research", {"name": "vision"}, 404),
        ("lead", "research", {"name": "products"}, 400),
        ("lead", "research", {"name": "new"}, 400),
        ("lead", "research", {"name": "pretraining"}, 400),
        ("lead", "research", {"name": "vision", "queues": [{"name": "speech"}]}, 400),
        ("lead", "research", {"name": "vision", "namespace": "kube-system"}, 400),
        ("lead", "research", {"name": "vision", "nominal": {"h100-80gb": 400}}, 400),
    ],
)
def test_file_of_a_subtree_changes_nothing_outside_and_no_shape(
    api, cluster, user, queue, file, status
):
    answer = api(user).put(
        f"/api/v1/clusters/fra1/tree?queue={queue}", {"queues": [file]}, format="json"
    )
    assert answer.status_code == status
    assert not QuotaChange.objects.exists()
