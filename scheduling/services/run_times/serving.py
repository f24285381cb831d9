"""Which version serves a cluster."""

from __future__ import annotations

from django.db import transaction

from scheduling.models import Cluster, Predictor, PredictorKind, PredictorState
from scheduling.prediction import storage


def serving(cluster: Cluster) -> Predictor | None:
    """Without its ``state``, which only who holds the model reads."""
    rows = Predictor.objects.filter(cluster=cluster, status=PredictorState.SERVING)
    return rows.defer("state").first()


@transaction.atomic
def promote(*, predictor: Predictor, why: str) -> None:
    """Let ``predictor`` serve its cluster from now on; what served until now is retired. Safe twice."""
    now = predictor.cluster.now()
    others = Predictor.objects.filter(cluster=predictor.cluster, status=PredictorState.SERVING)
    others.exclude(pk=predictor.pk).update(status=PredictorState.RETIRED, served_until=now)
    if predictor.status != PredictorState.SERVING:
        predictor.status, predictor.served_from = PredictorState.SERVING, now
        predictor.served_until, predictor.why = None, why[:200]
        predictor.save(update_fields=["status", "served_from", "served_until", "why"])


@transaction.atomic
def demote(*, cluster: Cluster, why: str) -> Predictor | None:
    """Step back from the boosted model to history: a new version of what serves, without its trees' say.

    None where history serves already, or nothing does.
    """
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    stepped = serving(cluster)
    if stepped is None or stepped.kind == PredictorKind.HISTORY:
        return None
    models = storage.load(bytes(stepped.state))
    models.serving, models.forest = "history", None
    newest = Predictor.objects.filter(cluster=cluster).order_by("-version").first()
    made = Predictor(
        cluster=cluster,
        kind=PredictorKind.HISTORY,
        version=(newest.version if newest else 0) + 1,
        window_from=stepped.window_from,
        window_to=stepped.window_to,
        runs=stepped.runs,
        censored=stepped.censored,
        state=storage.dump(models),
        calibration=stepped.calibration.get("simple", {}).get("history", {}),
        paces=stepped.paces,
    )
    made.save()
    promote(predictor=made, why=why)
    return made
