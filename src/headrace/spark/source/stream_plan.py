"""The decisions of a stream's planning process: its start, and the end of each micro-batch.

Topics are remembered by id from the start, across restarts if starts are kept, so recreated topics
are detected at any offset. If the query may continue, one micro-batch resets their partitions to 0
without reading them, and the next one reads. So the offsets in Spark's checkpoint are unambiguous,
and the new id is kept only afterwards. A crash before that finds the old id and repeats the reset.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.client.cluster import NoSuchTopic
from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import Uuid
from headrace.spark.source import starts
from headrace.spark.source.brokers import Brokers, Topic
from headrace.spark.source.errors import DataLost
from headrace.spark.source.limits import admitted, backlog
from headrace.spark.source.offsets import EARLIEST, LATEST, Positions
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.planning import TaskRanges, ranges_between, task_ranges
from headrace.spark.source.reading import recreated, report_loss
from headrace.spark.source.resolving import places_of, resolved, subscribed
from headrace.spark.source.sampling import record_bytes

_log = logging.getLogger(__name__)


class StreamPlan:
    """Plans the micro-batches of a query."""

    def __init__(
        self, options: SourceOptions, brokers: Brokers, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options = options
        self._brokers = brokers
        self._clock = clock
        location = options.starts_location
        self._path = None if location is None else starts.starts_path(location)
        self._kept = None if self._path is None else starts.load(self._path)
        self._topic_ids: dict[str, Uuid] = {} if self._kept is None else dict(self._kept.topic_ids)
        self._remade = frozenset() if self._kept is None else self._kept.remade
        self._replaced: dict[str, Uuid] = {}
        """Recreated topics, with the old ids that positions may still refer to."""
        self._gone: set[TopicPartition] = set()
        self._has_begun = False
        self._target: Positions | None = None
        self._newest: Positions = {}
        self._batch_at = clock()

    def initial(self) -> Positions:
        """Return the start of the stream, which is resolved once."""
        if self._kept is None:
            subscription = self._options.subscription
            if self._path is None and self._options.start.moves_on:
                # After a crash in its first batch the stream would begin later and skip records.
                topics = subscription.pattern or ",".join(subscription.names() or ())
                _log.warning(
                    "start at the latest offsets is not stored: set startsLocation to the folder"
                    " above the checkpoint",
                    extra={"topics": topics},
                )
            places = places_of(self._topics(), subscription)
            positions = resolved(self._brokers, places, self._options.start)
            self._kept = starts.Starts(positions, dict(self._topic_ids))
            self._keep()
        self._has_begun = True
        return self._kept.positions

    def prepare_available_now(self) -> None:
        """Fix the current end of the topics as the end of the stream."""
        self._target = self._ends()

    def next_end(self, start: Positions, *, is_limited: bool) -> Positions:
        """Return the end of the micro-batch after `start`, or `start` without one."""
        self._has_begun = True
        ends = self._ends()
        self._newest = dict(ends)
        if self._target is not None:
            ends = {place: min(ends.get(place, at), at) for place, at in self._target.items()}
        if (reset := self._reset(start, ends)) is not None:
            return reset
        begin = self._checked(start, ends)
        ends = {place: at for place, at in ends.items() if place in begin or at}
        waiting = backlog(begin, ends)
        if self._is_held_back(sum(waiting.values()), is_limited=is_limited):
            return start
        options = self._options
        sizes = None
        if is_limited and options.bytes_max is not None:
            sizes = record_bytes(self._brokers, {place: begin.get(place, 0) for place in waiting})
        limits = (options.rows_max, options.bytes_max) if is_limited else (None, None)
        end = admitted(begin, ends, *limits, sizes)
        if end != start:
            self._batch_at = self._clock()
        return end

    def shares(self, start: Positions, end: Positions) -> list[TaskRanges]:
        """Plan the tasks of a micro-batch; the same for the same positions.

        Topics that were recreated since are left out, because their old records are gone.
        """
        self._has_begun = True
        self._topics()
        there = {place: at for place, at in end.items() if place.topic not in self._replaced}
        ranges = ranges_between(start, there, self._topic_ids)
        return task_ranges(ranges, self._options.tasks_min, self._options.task_rows_max)

    @property
    def newest(self) -> Positions:
        """The end of the topics at the last lookup."""
        return self._newest

    def _ends(self) -> Positions:
        subscription = self._options.subscription
        places = places_of(self._topics(), subscription, may_miss=self._may_miss)
        return self._brokers.offsets(dict.fromkeys(places, LATEST)) if places else {}

    def _is_held_back(self, rows: int, *, is_limited: bool) -> bool:
        """Return whether a batch waits for more rows."""
        rows_min = self._options.rows_min
        if rows_min is None or not is_limited or self._target is not None:
            return False
        return rows < rows_min and self._clock() - self._batch_at < self._options.delay_s_max

    def _reset(self, start: Positions, ends: Positions) -> Positions | None:
        """Return the positions with recreated topics at 0; None if they are at 0 already.

        Then all positions refer to the new topics, and their ids are stored.
        """
        read = {place.topic for place, at in start.items() if at and place.topic in self._replaced}
        if not read:
            if self._replaced:
                self._begin_unread()
                self._replaced.clear()
                self._keep_ids()
            return None
        # Stored before Spark stores the 0, which is also the position of unread partitions.
        self._remade |= read
        self._keep_ids()
        reset = {place: 0 if place.topic in self._replaced else at for place, at in start.items()}
        for place in reset.keys() - ends.keys():
            self._report_gone(place, start[place])
        return {place: at for place, at in reset.items() if place in ends}

    def _begin_unread(self) -> None:
        """Set the starts of recreated topics that were never read to their new partitions.

        Only topics at 0 are certainly unread: where a stream began later, backfills may have read
        the earlier records.
        """
        if self._kept is None:
            return
        unread = self._replaced.keys() - self._remade
        begun = {at: to for at, to in self._kept.positions.items() if at.topic not in unread}
        begun |= {place: 0 for place in self._newest if place.topic in unread}
        self._kept = replace(self._kept, positions=begun)

    def _checked(self, start: Positions, ends: Positions) -> Positions:
        """Return the start of the next batch after a check for deleted records."""
        is_fatal = self._options.fails_on_data_loss
        begin: Positions = {}
        for place, at in start.items():
            if place not in ends:
                self._report_gone(place, at)
            elif ends[place] < at:
                earliest = self._brokers.offsets({place: EARLIEST})[place]
                report_loss(place, ends[place], at, earliest, ends[place], is_fatal=is_fatal)
                begin[place] = ends[place]
            else:
                begin[place] = at
        return begin

    def _report_gone(self, place: TopicPartition, at: int) -> None:
        if self._options.fails_on_data_loss:
            raise DataLost(
                f"{place}, which was read up to offset {at}, no longer exists: its topic was"
                " deleted. To continue without it set failOnDataLoss=false"
            )
        if place not in self._gone:
            _log.warning(
                "partition gone, continuing without it",
                extra={"topic": place.topic, "partition": place.partition, "offset": at},
            )
            self._gone.add(place)

    @property
    def _may_miss(self) -> bool:
        """Return whether topics may be missing: never at the start, and later by option."""
        return self._has_begun and not self._options.fails_on_data_loss

    def _topics(self) -> list[Topic]:
        subscription = self._options.subscription
        try:
            topics = subscribed(self._brokers, subscription, may_miss=self._may_miss)
        except NoSuchTopic as error:
            if not self._has_begun:
                raise
            raise DataLost(
                f"{error}: it was deleted after this query has read it. To continue without it set"
                " failOnDataLoss=false"
            ) from error
        self._remember(topics)
        return topics

    def _remember(self, topics: Iterable[Topic]) -> None:
        """Record the ids of topics; a changed id resets the topic or is an error."""
        has_changed = False
        for topic in topics:
            known = self._topic_ids.get(topic.name)
            if known == topic.topic_id:
                continue
            if known is not None:
                if self._options.fails_on_data_loss:
                    raise recreated(topic.name, may_continue=False)
                _log.warning(
                    "topic recreated, reading from its beginning", extra={"topic": topic.name}
                )
                self._replaced.setdefault(topic.name, known)
            self._topic_ids[topic.name] = topic.topic_id
            has_changed = True
        if has_changed:
            self._keep_ids()

    def _keep_ids(self) -> None:
        """Store the ids that the stream's positions refer to."""
        if self._kept is not None:
            ids = {**self._topic_ids, **self._replaced}
            self._kept = replace(self._kept, topic_ids=ids, remade=self._remade)
            self._keep()

    def _keep(self) -> None:
        if self._path is not None and self._kept is not None:
            starts.save(self._path, self._kept)
