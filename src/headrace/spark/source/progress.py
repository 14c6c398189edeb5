"""Progress of Spark queries as that of a consumer group, so that lag tools see them.

The source commits a batch when Spark plans the next; after the last batch of an AvailableNow run
Spark never does, so `GroupProgress` listens to the query instead. Nothing reads these offsets back:
where a query goes on is in its checkpoint.
"""

import json
import logging
import threading
import time
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
from headrace.errors import HeadraceError, KafkaError, UnknownMemberId, error_for
from headrace.protocol.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headrace.spark.source.errors import SourceError
from headrace.spark.source.offsets import Positions, from_spark

logger = logging.getLogger(__name__)

ATTEMPTS_MAX = 5
BACKOFF_S = 0.2
TIMEOUT_S = 10.0

_NO_EPOCH = -1
_CLOSING_S_MAX = 5.0


def commit_progress(
    properties: Mapping[str, str], group: str, offsets: Mapping[str, Mapping[str, int]]
) -> None:
    """Commit positions (`{"topic": {"0": 12}}`) under a group's name, outside any generation."""
    with GroupCommits(properties, group) as commits:
        commits.commit(from_spark(offsets))


class GroupCommits:
    """Commits for one group through connections that stay open."""

    def __init__(self, properties: Mapping[str, str], group: str) -> None:
        self._admin = Admin(dict(properties), timeout_s=TIMEOUT_S)
        self._group = group
        self._coordinator: int | None = None
        self._topic_ids: dict[str, bytes] = {}

    def __enter__(self) -> "GroupCommits":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._admin.close()

    def commit(self, positions: Positions) -> None:
        """Commit, with a few more tries while the coordinator moves."""
        if not positions:
            return
        for attempts_left in reversed(range(ATTEMPTS_MAX)):
            try:
                self._attempt(positions)
                return
            except (KafkaError, BrokerUnreachable) as error:
                is_passing = not isinstance(error, KafkaError) or error.retriable
                if not is_passing or not attempts_left:
                    raise self._explained(error) from error
            self._coordinator = None
            self._topic_ids.clear()
            time.sleep(BACKOFF_S)

    def _attempt(self, positions: Positions) -> None:
        cluster = self._admin.cluster
        if self._coordinator is None:
            self._coordinator = self._admin.groups.coordinator_of(self._group)
        names = sorted({place.topic for place in positions})
        for name in names:
            if name not in self._topic_ids:
                self._topic_ids[name] = cluster.topic(name).topic_id
        request = OffsetCommitRequest(
            group_id=self._group,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    topic_id=self._topic_ids[name],
                    partitions=[
                        OffsetCommitRequestPartition(place.partition, offset, _NO_EPOCH, "")
                        for place, offset in sorted(positions.items())
                        if place.topic == name
                    ],
                )
                for name in names
            ],
        )
        answer = cluster.ask(request, OffsetCommitResponse, self._coordinator)
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    raise error_for(part.error_code)

    def _explained(self, error: HeadraceError) -> HeadraceError:
        if isinstance(error, UnknownMemberId):
            return SourceError(
                f"group {self._group!r} has members of its own, so its offsets are theirs:"
                " give the query a group that nobody else uses"
            )
        return SourceError(f"progress could not be committed for group {self._group!r}: {error}")


class BackgroundCommits:
    """Commits beside queries: the newest positions only, and never in their way."""

    def __init__(self, properties: Mapping[str, str], group: str) -> None:
        self._commits = GroupCommits(properties, group)
        self._group = group
        self._change = threading.Condition()
        self._waiting: Positions | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="headrace-progress", daemon=True)
        self._thread.start()

    def offer(self, positions: Positions) -> None:
        """Commit these next; what waited of the same partitions is old.

        That of others waits on: a query may read several sources, and a group have several queries.
        """
        with self._change:
            self._waiting = {**(self._waiting or {}), **positions}
            self._change.notify()

    def close(self) -> None:
        """Commit what is waiting, and end."""
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
                logger.warning("%s", error)


class GroupProgress(StreamingQueryListener):
    """Commits what each micro-batch of a query has done, the last one included.

    `spark.streams.addListener(GroupProgress(properties, "reporting"))` is for all queries of the
    session; `groups` maps names of queries to groups of their own. Sources other than Kafka's are
    left alone.
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
        """Nothing is done yet."""

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
        """Nothing is new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The last progress came before this."""

    def close(self) -> None:
        """Commit what is still waiting."""
        for commits in self._commits.values():
            commits.close()
        self._commits.clear()

    def _commits_of(self, group: str) -> BackgroundCommits:
        if group not in self._commits:
            self._commits[group] = BackgroundCommits(self._properties, group)
        return self._commits[group]


def _positions(source: Any) -> Positions:
    """Where a source of a query stands; nothing if it is not one of topics.

    Spark's name for a source does not tell which, but no other source keeps such offsets.
    """
    try:
        return from_spark(json.loads(source.endOffset or "{}"))
    except (ValueError, TypeError, AttributeError):
        return {}
