"""Commits of a query's progress as a consumer group, for tools that show lag.

The source commits a batch when Spark plans the next one, which it never does after the last batch
of an AvailableNow run. `GroupProgress` therefore listens to the query. The offsets are never read
back: a query continues from its checkpoint.
"""

import json
import logging
import threading
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.cluster import check_code, retried
from headrace.errors import HeadraceError, KafkaError, UnknownMemberId
from headrace.spark.source.brokers import is_passing
from headrace.spark.source.errors import SourceError
from headrace.spark.source.offsets import Positions, from_spark

_log = logging.getLogger(__name__)

TIMEOUT_S = 10.0

_CLOSING_S_MAX = 5.0


def commit_progress(
    properties: Mapping[str, str], group: str, offsets: Mapping[str, Mapping[str, int]]
) -> None:
    """Commit positions (`{"topic": {"0": 12}}`) for a group, without a generation."""
    with GroupCommits(properties, group) as commits:
        commits.commit(from_spark(offsets))


class GroupCommits:
    """Commits for one group over persistent connections."""

    def __init__(self, properties: Mapping[str, str], group: str) -> None:
        self._admin = Admin(dict(properties), timeout_s=TIMEOUT_S)
        self._group = group

    def __enter__(self) -> "GroupCommits":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._admin.close()

    def commit(self, positions: Positions) -> None:
        """Commit, with retries while the coordinator moves."""
        if not positions:
            return
        try:
            retried(lambda: self._attempt(positions), is_passing, TIMEOUT_S)
        except (KafkaError, BrokerUnreachable) as error:
            raise self._explained(error) from error

    def _attempt(self, positions: Positions) -> None:
        offsets = {(place.topic, place.partition): at for place, at in positions.items()}
        for code in self._admin.groups.commit(self._group, offsets).values():
            check_code(code)

    def _explained(self, error: HeadraceError) -> HeadraceError:
        if isinstance(error, UnknownMemberId):
            return SourceError(
                f"group {self._group!r} has active members that commit its offsets; give the query"
                " a group of its own"
            )
        return SourceError(f"progress could not be committed for group {self._group!r}: {error}")


class BackgroundCommits:
    """Commits the newest positions in a thread, without delaying queries."""

    def __init__(self, properties: Mapping[str, str], group: str) -> None:
        self._commits = GroupCommits(properties, group)
        self._group = group
        self._change = threading.Condition()
        self._waiting: Positions | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="headrace-progress", daemon=True)
        self._thread.start()

    def offer(self, positions: Positions) -> None:
        """Commit these positions next, in place of waiting ones of the same partitions.

        Positions of other partitions stay: a query may have several sources, and a group several
        queries.
        """
        with self._change:
            self._waiting = {**(self._waiting or {}), **positions}
            self._change.notify()

    def close(self) -> None:
        """Commit waiting positions, and end the thread."""
        with self._change:
            self._is_closed = True
            self._change.notify()
        self._thread.join(_CLOSING_S_MAX)

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting is not None or self._is_closed)
                positions, self._waiting = self._waiting, None
            if positions is None:
                self._commits.close()
                return
            try:
                self._commits.commit(positions)
            except HeadraceError as error:
                _log.warning(
                    "progress not committed", extra={"group": self._group, "error": str(error)}
                )


class GroupProgress(StreamingQueryListener):
    """Commits the progress of each micro-batch of a query, the last one included.

    `spark.streams.addListener(GroupProgress(properties, "reporting"))` is for all queries of the
    session; `groups` maps names of queries to their groups. Other sources than topics are ignored.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        if group is None and not groups:
            raise SourceError("GroupProgress needs a group, or groups by names of queries")
        self._properties = dict(properties)
        self._group = group
        self._groups = dict(groups or {})
        self._commits: dict[str, BackgroundCommits] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: there is no progress yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        group = self._groups.get(progress.name or "", self._group)
        if group is None:
            return
        for source in progress.sources:
            positions = _positions(source)
            if positions:
                self._commits_of(group).offer(positions)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: there is no new progress."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: the last progress was reported before."""

    def close(self) -> None:
        """Commit waiting positions."""
        for commits in self._commits.values():
            commits.close()
        self._commits.clear()

    def _commits_of(self, group: str) -> BackgroundCommits:
        if group not in self._commits:
            self._commits[group] = BackgroundCommits(self._properties, group)
        return self._commits[group]


def _positions(source: Any) -> Positions:
    """Return the position of a source; empty for other sources than topics.

    Spark's description does not identify the source, but only this one has such offsets.
    """
    try:
        return from_spark(json.loads(source.endOffset or "{}"))
    except (ValueError, TypeError, AttributeError):
        return {}
