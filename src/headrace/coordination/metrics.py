"""Counters of the coordinators."""


class CoordinatorMetrics:
    """Counters of events since the start; current totals are computed at a scrape."""

    __slots__ = (
        "completed_rebalances",
        "offset_commits",
        "rebalances",
        "share_state_writes",
        "verification_failures",
    )

    def __init__(self) -> None:
        self.offset_commits = 0
        self.completed_rebalances = 0
        self.rebalances: dict[str, int] = {}  # By kind, of consumer, share and streams groups.
        self.verification_failures = 0
        self.share_state_writes = 0
