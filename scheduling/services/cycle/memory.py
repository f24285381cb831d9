"""What one pass over a cluster leaves to the next, each part with the step that writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from scheduling.cluster.picture.memo import Memo
from scheduling.engine import Planner
from scheduling.engine.document import Writer
from scheduling.models import Cluster
from scheduling.services.cycle.backstops import Machines
from scheduling.services.cycle.enforce.status import LastStatus
from scheduling.services.cycle.project.projection import Projection
from scheduling.services.cycle.record.booking import Ledger
from scheduling.services.cycle.record.causes import Causes
from scheduling.services.cycle.record.claims import Word
from scheduling.services.cycle.record.nodes import NodeRows
from scheduling.services.cycle.record.plan import Telling
from scheduling.services.cycle.record.shares import ShareRows
from scheduling.services.queues.own_quotas import OwnQuotas
from scheduling.services.queues.standings import RunTimes, Standings
from scheduling.services.run_times.rests import RestPredictions
from scheduling.services.snapshot.obstacles import Refusals
from scheduling.services.snapshot.pending import PendingValues
from scheduling.services.snapshot.situations import WorkloadFacts
from scheduling.services.snapshot.start_failures import FailedGroups
from scheduling.services.snapshot.turns import Others
from scheduling.services.starts.etas import Etas
from scheduling.services.tables.row_cache import RowCache


class Rows:
    """The rows that only this pass writes while it holds the lease. Read anew after a fault."""

    def __init__(self, cluster: Cluster) -> None:
        self.projection = Projection(cluster)
        self.nodes = NodeRows(cluster)
        self.shares = ShareRows(cluster)
        self.telling = Telling()


@dataclass(slots=True)
class Memory:
    """Of one cluster in one process."""

    ledger: Ledger
    unchanged: RowCache = field(default_factory=RowCache)
    """Read the policy."""
    memo: Memo = field(default_factory=Memo)
    """Look: what was read of objects that are the same."""
    rows: Rows | None = None
    """Project and record."""
    causes: Causes = field(default_factory=Causes)
    refusals: Refusals = field(default_factory=Refusals)
    failed: FailedGroups = field(default_factory=FailedGroups)
    """Look."""
    at_limit: dict[str, WorkloadFacts] = field(default_factory=dict)
    """Look: what is known of work whose users hold as much as they may at once."""
    turns: dict[str, WorkloadFacts] = field(default_factory=dict)
    """Look: what is known of work that its author has wait for other work."""
    others: Others | None = None
    waiting: PendingValues = field(default_factory=PendingValues)
    """Make the snapshot."""
    foreseen: RestPredictions = field(default_factory=RestPredictions)
    planner: Planner = field(default_factory=Planner)
    machines: Machines = field(default_factory=Machines)
    """Fit the quotas of namespaces."""
    etas: Etas = field(default_factory=Etas)
    """What is told of starts."""
    own: OwnQuotas | None = None
    standings: Standings | None = None
    """Play along what everybody would have on their own quota; goes on from the rows."""
    word: Word = field(default_factory=Word)
    """Make the snapshot, and record."""
    writer: Writer = field(default_factory=Writer)
    """Keep what an acting cycle was made of."""
    spoken: LastStatus = field(default_factory=LastStatus)
    """Enforce: what was said of whom when."""

    def rows_of(self, cluster: Cluster, *, keep: bool) -> Rows:
        """The rows in memory; read anew where there are none, or unless ``keep``: others may write them."""
        self.ledger.cluster = cluster
        if self.rows is None or not keep:
            self.rows = Rows(cluster)
        return self.rows

    def others_of(self, cluster: Cluster) -> Others:
        """What had ended of the work that other work starts after."""
        self.others = self.others or Others(cluster)
        return self.others

    def own_of(self, cluster: Cluster) -> OwnQuotas:
        """The partitions of own quotas; from the rows where there are none in memory."""
        self.own = self.own or OwnQuotas(cluster)
        return self.own

    def standings_of(self, cluster: Cluster, now: datetime) -> Standings:
        """How work stands; from the ledger as it is at ``now`` where nothing is in memory."""
        self.standings = self.standings or Standings(RunTimes.of(cluster, now))
        return self.standings

    def drop_rows(self) -> None:
        """Others may have written them since."""
        self.rows, self.own, self.standings = None, None, None

    def forget(self) -> None:
        """Drop what may be ahead of what was committed."""
        self.drop_rows()
        self.memo, self.causes, self.word = Memo(), Causes(), Word()
