"""What a request would do, as one person may read it.

A preview is kept as it was planned (``wish_plans``); what is not theirs to see is told as another team's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.accounts.capabilities import Capability
from portal.display.format import counted, number
from portal.display.sentences import and_list
from portal.teams.access import places, visible_queues
from portal.teams.reading import Reading
from portal.teams.rights import Person
from scheduling.models import MILLI, Cluster, Queue, Workload
from scheduling.services.queues.shift import QuotaSum, given_to
from scheduling.services.studies.whatif.preview import LEAVES, STARTS, WAITS
from scheduling.services.words.sentences import Sentence, tell

Json = dict[str, Any]
ORDER = (STARTS, LEAVES, WAITS)


@dataclass(frozen=True, slots=True)
class TouchedWork:
    """A workload that starts, leaves or waits longer. ``work`` is None where it is another team's."""

    kind: str
    work: Workload | None
    queue: str
    gpus: float
    lost_gpu_hours: float
    sentence: str
    is_late: bool
    """Only once the grace of what is lowered is over."""


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One queue, before and after; ``nominal`` is None where the request leaves it as it is."""

    queue: Queue
    depth: int
    nominal: float
    nominal_after: float
    before: float
    after: float
    potential: tuple[float, float]
    allocated: float
    before_x: float
    after_x: float


@dataclass(frozen=True, slots=True)
class SumRow:
    """The queues of one parent in all: their nominal quota, and of the parent what its shares add up to."""

    nominal: QuotaSum
    fair_share: tuple[float, float] | None
    """Before and after; None where nothing was planned of it."""
    allocated: float


@dataclass(frozen=True, slots=True)
class Lesser:
    gpus: float
    fair_share: float
    starts: int
    leaves: int
    is_asked: bool


@dataclass(frozen=True, slots=True)
class ReadablePreview:
    """A preview as one person may read it."""

    at: datetime | None
    took_s: float
    lines: tuple[TouchedWork, ...]
    shares: tuple[ShareRow, ...]
    lesser: tuple[Lesser, ...]
    most: float
    fault: str = ""
    sums: tuple[SumRow, ...] = ()
    """Of queues that the person sees."""

    def count(self, kind: str) -> int:
        return sum(line.kind == kind for line in self.lines)

    @property
    def starts(self) -> int:
        return self.count(STARTS)

    @property
    def leaves(self) -> int:
        return self.count(LEAVES)

    @property
    def waits(self) -> int:
        return self.count(WAITS)

    @property
    def lost_gpu_hours(self) -> float:
        return sum(line.lost_gpu_hours for line in self.lines if line.kind == LEAVES)

    @property
    def outcome(self) -> str:
        """'1 workload starts; once the grace is over, 1 workload is evicted'."""
        return outcome_of((line.kind, line.is_late) for line in self.lines)

    @property
    def leaving_gpus(self) -> float:
        return sum(line.gpus for line in self.lines if line.kind == LEAVES)

    @property
    def enough(self) -> Lesser | None:
        """The smallest amount that gives the same fair share and as many starts today."""
        wish = next((one for one in self.lesser if one.is_asked), None)
        if wish is None:
            return None
        same = (
            one
            for one in self.lesser
            if not one.is_asked
            and abs(one.fair_share - wish.fair_share) < 0.05
            and one.starts == wish.starts
        )
        return next(same, None)


def is_late(line: Mapping[str, Any]) -> bool:
    return bool(line.get("late"))


def outcome_of(moves: Iterable[tuple[str, bool]]) -> str:
    """What moves, of (kind, whether only once the grace is over)."""
    lines = list(moves)
    now = _counts([kind for kind, late in lines if not late])
    late = [kind for kind, is_late_ in lines if is_late_]
    return f"{now}; once the grace is over, {_counts(late)}" if late else now


VERBS = (("starts", "start"), ("is evicted", "are evicted"), ("waits longer", "wait longer"))
"""Of one and of several, in the order of ``ORDER``."""


def _counts(kinds: Sequence[str]) -> str:
    """'1 workload starts, 1 is evicted and 2 wait longer'."""
    found = [(kinds.count(kind), verbs) for kind, verbs in zip(ORDER, VERBS, strict=True)]
    moves = [(n, one if n == 1 else several) for n, (one, several) in found if n]
    said = [
        f"{number(n) if i else counted(n, 'workload')} {verb}" for i, (n, verb) in enumerate(moves)
    ]
    return and_list(said) if said else "nobody starts and nobody leaves"


def seen_by(
    person: Person, cluster: Cluster, answer: Mapping[str, Any], *, about: str, gpu_class: str
) -> ReadablePreview | None:
    """``kept`` as the person may read it; ``about`` is the queue that gets. None where there is no plan."""
    if not answer:
        return None
    if "fault" in answer:
        return ReadablePreview(None, 0.0, (), (), (), 0.0, answer["fault"])
    shares = _shares(person, cluster, answer, gpu_class)
    return ReadablePreview(
        at=datetime.fromisoformat(answer["at"]),
        took_s=answer["took_s"],
        lines=tuple(_lines(person, cluster, answer["lines"])),
        shares=shares,
        lesser=tuple(_told_lesser(answer, about)),
        most=max((max(row.before, row.after) for row in shares), default=0.0),
        sums=_sums(person, cluster, answer, gpu_class),
    )


def _sums(
    person: Person, cluster: Cluster, answer: Mapping[str, Any], gpu_class: str
) -> tuple[SumRow, ...]:
    rows: Sequence[Json] = answer.get("sums", ())
    if not rows:
        return ()
    seen = set(visible_queues(person).filter(cluster=cluster).values_list("name", flat=True))
    planned = {one["queue"]: one for one in answer["shares"] if one["gpu_class"] == gpu_class}
    sums_seen = (QuotaSum(**one) for one in rows if one["parent"] in seen)
    return tuple(_sum_row(one, planned.get(one.parent)) for one in sums_seen)


def _sum_row(nominal: QuotaSum, planned: Json | None) -> SumRow:
    if planned is None:
        return SumRow(nominal, None, 0.0)
    before, after = planned["fair_share"]
    return SumRow(nominal, (before, after), planned["allocated"])


OTHERS = "another team"


def _lines(person: Person, cluster: Cluster, lines: Iterable[Json]) -> Iterable[TouchedWork]:
    rows = sorted(
        lines, key=lambda line: (is_late(line), ORDER.index(line["kind"]), line["workload"])
    )
    near = Queue.objects.filter(places(person, Capability.SEE), cluster=cluster)
    paths = dict(near.values_list("name", "path"))
    works = _works(cluster, [line["workload"] for line in rows if line["queue"] in paths])
    reader = Reading(person)
    for line in rows:
        mine = line["queue"] in paths
        yield TouchedWork(
            kind=line["kind"],
            work=works.get(line["workload"]) if mine else None,
            queue=line["queue"] if mine else OTHERS,
            gpus=line["gpus"],
            lost_gpu_hours=line["lost_gpu_hours"],
            sentence=_sentence(cluster, line, paths[line["queue"]], reader) if mine else "",
            is_late=is_late(line),
        )


def _sentence(cluster: Cluster, line: Json, path: str, reader: Reading) -> str:
    said = Sentence(
        cluster_id=cluster.pk,
        queue=path,
        user="",
        reason=line["reason"],
        sentence=line["sentence"],
        sealed=line["sealed"],
        numbers=line["numbers"],
    )
    return tell(said, reader).sentence


def _works(cluster: Cluster, names: list[str]) -> dict[str, Workload]:
    """By their names in a plan: namespace and name."""
    wanted = {name.partition("/")[2] for name in names}
    rows = Workload.objects.filter(cluster=cluster, name__in=wanted).select_related(
        "queue", "cluster"
    )
    return {f"{row.namespace}/{row.name}": row for row in rows.order_by("pk")}


def _shares(
    person: Person, cluster: Cluster, answer: Mapping[str, Any], gpu_class: str
) -> tuple[ShareRow, ...]:
    """Queues that the person sees, those whose figures move and those beside them, in order of the tree."""
    mine = {row["queue"]: row for row in answer["shares"] if row["gpu_class"] == gpu_class}
    changed = {name: (before, after) for name, before, after in answer.get("figures", ())}
    found = cluster.gpu_classes.filter(name=gpu_class).first()
    if found is None or not mine:
        return ()
    queues = [q for q in visible_queues(person).filter(cluster=cluster) if q.name in mine]
    edited = {one["queue"] for one in answer.get("changes", ()) if one["gpu_class"] == gpu_class}
    near = [q for q in _near(queues, changed.keys() | edited, mine) if not q.is_root]
    most = max((max(mine[q.name]["fair_share"]) for q in near), default=0.0) or 1.0
    least = min((q.path.count("/") for q in near), default=0)
    return tuple(_share(q, mine[q.name], changed, found, most, least) for q in near)


def _near(queues: list[Queue], changed: Collection[str], mine: Mapping[str, Json]) -> list[Queue]:
    moved = {q.pk for q in queues if _moves(mine[q.name])}
    touched = {q.pk for q in queues if q.name in changed}
    parents = {q.parent_id for q in queues if q.pk in touched}
    return [q for q in tree_order(queues) if q.pk in moved | touched or q.parent_id in parents]


def _moves(row: Json) -> bool:
    before, after = row["fair_share"]
    return abs(before - after) >= 0.05


def tree_order(queues: Collection[Queue]) -> list[Queue]:
    """Depth first, siblings as on every page."""
    place = {q.pk: (q.position, q.name) for q in queues}
    by_path = {q.path: q.pk for q in queues}

    def key(queue: Queue) -> list[tuple[int, str]]:
        parts = queue.path.split("/")
        above = ("/".join(parts[: i + 1]) for i in range(len(parts)))
        return [place.get(by_path.get(path, 0), (0, path)) for path in above]

    return sorted(queues, key=key)


def _share(
    queue: Queue, row: Json, changed: Mapping[str, Any], found: Any, most: float, least: int
) -> ShareRow:
    before, after = row["fair_share"]
    nominal = given_to(queue, found, queue.cluster.now()) / MILLI
    was, will = changed.get(queue.name, (nominal, nominal))
    return ShareRow(
        queue=queue,
        depth=queue.path.count("/") - least,
        nominal=was,
        nominal_after=will,
        before=before,
        after=after,
        potential=(row["potential"][0], row["potential"][1]),
        allocated=row["allocated"],
        before_x=100 * before / most,
        after_x=100 * after / most,
    )


def _told_lesser(answer: Mapping[str, Any], about: str) -> Iterable[Lesser]:
    for row in answer["lesser"]:
        share = row["fair_share"].get(about, 0.0)
        yield Lesser(row["gpus"], share, row["starts"], row["leaves"], is_asked=False)
    own = next((row["fair_share"][1] for row in answer["shares"] if row["queue"] == about), 0.0)
    kinds = [line["kind"] for line in answer["lines"]]
    if answer["lesser"]:
        yield Lesser(answer["gpus"], own, kinds.count(STARTS), kinds.count(LEAVES), is_asked=True)


def document(seen: ReadablePreview) -> Json:
    """What one person may read of a preview, as the API tells it."""
    return {
        "at": seen.at,
        "took_s": seen.took_s,
        "lines": [
            {
                "kind": line.kind,
                "workload": line.work.uid if line.work else None,
                "name": line.work.name if line.work else "",
                "queue": line.queue,
                "gpus": line.gpus,
                "lost_gpu_hours": line.lost_gpu_hours,
                "sentence": line.sentence,
                "after_grace": line.is_late,
            }
            for line in seen.lines
        ],
        "queues": [
            {
                "queue": row.queue.name,
                "nominal": [row.nominal, row.nominal_after],
                "fair_share": [row.before, row.after],
                "potential": list(row.potential),
                "allocated": row.allocated,
            }
            for row in seen.shares
        ],
        "lesser": [
            {
                "gpus": one.gpus,
                "fair_share": one.fair_share,
                "starts": one.starts,
                "evicted": one.leaves,
            }
            for one in seen.lesser
        ],
    }
