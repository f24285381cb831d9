"""What a request would do: planned on the live cluster when it is submitted, and anew when it is opened.

A preview is kept as it was planned; ``seen_by`` shows it to one person, with what is not theirs to see told
as another team's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from portal.accounts.capabilities import Capability
from portal.approvals.loans.previews import with_loans
from portal.approvals.models import QuotaRequest
from portal.approvals.plan_faults import or_fault
from portal.approvals.states import Kind
from portal.approvals.wishes import Wish
from portal.display.format import counted, number
from portal.display.sentences import and_list
from portal.teams.access import places, visible_queues
from portal.teams.reading import Reading
from portal.teams.rights import Person
from scheduling.models import MILLI, Cluster, Queue, Workload
from scheduling.services.queues.shift import QuotaSum, Shift, figures, given_to, sums
from scheduling.services.queues.values import Field
from scheduling.services.studies.whatif.documents import COLUMNS
from scheduling.services.studies.whatif.preview import LEAVES, STARTS, WAITS, Document, preview
from scheduling.services.words.sentences import Sentence, tell

Json = dict[str, Any]
PARTS = (4, 2)
"""Would a quarter, or a half, do as well?"""
ORDER = (STARTS, LEAVES, WAITS)


def attached(request: QuotaRequest) -> Json:
    """The preview to keep with a request; where none can be made, the sentence that says why."""
    return or_fault(lambda: of_wish(Wish.of(request), request.cluster.now(), gpus=request.amount))


def of_wish(wish: Wish, now: datetime, *, gpus: int | None = None) -> Json:
    """What it would do if it began at once. Raises ServiceError where that cannot be planned."""
    if wish.kind == Kind.ACCESS:
        return {}
    if wish.kind == Kind.QUEUE:
        document = [{"kind": "queue", "queue": wish.name, "parent": _name(wish.queue)}]
        return preview(wish.queue.cluster, document)
    shift = replace(wish.shift(now, gpus), start=now)
    lesser = {amount / MILLI: _document(replace(shift, gpus=amount)) for amount in _lesser(shift)}
    answer = preview(wish.queue.cluster, _document(shift), lesser=lesser)
    answer["gpus"] = shift.gpus / MILLI
    moved = figures(shift, now)
    answer["figures"] = [[one.queue.name, _gpus(one.before), _gpus(one.after)] for one in moved]
    if shift.field == Field.NOMINAL:
        answer["sums"] = [asdict(one) for one in sums(moved, shift.gpu_class, now)]
    return answer


def _name(queue: Queue) -> str:
    return "" if queue.is_root else queue.name


def _document(shift: Shift) -> Document:
    column = COLUMNS[shift.field]
    changes = [
        {
            "kind": "quota",
            "queue": one.queue.name,
            "gpu_class": shift.gpu_class.name,
            column: _gpus(one.after),
        }
        for one in figures(shift, shift.start)
    ]
    return with_loans(shift.queue.cluster, changes)


def _gpus(milli: int | None) -> float | None:
    return None if milli is None else milli / MILLI


def _lesser(shift: Shift) -> list[int]:
    """Smaller whole amounts, ascending."""
    whole = shift.gpus // MILLI
    return sorted({whole // part * MILLI for part in PARTS if whole // part})


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
    sums: tuple[QuotaSum, ...] = ()
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
        sums=_sums(person, cluster, answer.get("sums", ())),
    )


def _sums(person: Person, cluster: Cluster, rows: Sequence[Json]) -> tuple[QuotaSum, ...]:
    if not rows:
        return ()
    seen = set(visible_queues(person).filter(cluster=cluster).values_list("name", flat=True))
    return tuple(QuotaSum(**one) for one in rows if one["parent"] in seen)


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
    return [q for q in _in_order(queues) if q.pk in moved | touched or q.parent_id in parents]


def _moves(row: Json) -> bool:
    before, after = row["fair_share"]
    return abs(before - after) >= 0.05


def _in_order(queues: list[Queue]) -> list[Queue]:
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
