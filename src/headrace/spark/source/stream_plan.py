"""Where a stream stands and how far it may go next: the decisions of a stream's planning process.

Topics are remembered by id from the first moment on (and beyond it, where starts are kept), so
that one which was deleted and made again is noticed, whatever its offsets. Where that is allowed a
micro-batch takes its partitions back to 0 and reads nothing of them; the next one reads. So what
Spark has written down says of itself which records it means, and the new id is kept only after.
A crash before that finds the old id, and does the same again.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.client.cluster import NoSuchTopic
from headrace.protocol.uuids import Uuid
from headrace.spark.source import starts
from headrace.spark.source.brokers import Brokers, Topic
from headrace.spark.source.errors import DataLost
from headrace.spark.source.limits import admitted, backlog
from headrace.spark.source.offsets import EARLIEST, LATEST, Positions, TopicPartition
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.planning import Share, ranges_between, shares_of
from headrace.spark.source.reading import recreated, report_loss
from headrace.spark.source.resolving import places_of, resolved, subscribed
from headrace.spark.source.sampling import record_bytes

logger = logging.getLogger(__name__)


class StreamPlan:
    """Plans micro-batches; one for the life of a query's planning process."""

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
        """Topics that were made again, with the ids of those that positions may still be of."""
        self._gone: set[TopicPartition] = set()
        self._has_begun = False
        self._target: Positions | None = None
        self._newest: Positions = {}
        self._batch_at = clock()

    def initial(self) -> Positions:
        """Where the stream begins: resolved once, and the same whenever it is asked for."""
        if self._kept is None:
            subscription = self._options.subscription
            if self._path is None and self._options.start.moves_on:
                logger.warning(
                    "a stream of %s starts at the latest offsets, and nothing keeps them: after a"
                    " crash in its first batch it may begin later and pass records over. Set the"
                    " option startsLocation to a folder of the query's own, such as the one above"
                    " its checkpoint",
                    subscription.pattern or ", ".join(subscription.names() or ()),
                )
            places = places_of(self._topics(), subscription)
            positions = resolved(self._brokers, places, self._options.start)
            self._kept = starts.Starts(positions, dict(self._topic_ids))
            self._keep()
        self._has_begun = True
        return self._kept.positions

    def prepare_available_now(self) -> None:
        """From now on the stream ends where the topics end at this moment."""
        self._target = self._ends()

    def next_end(self, start: Positions, *, is_limited: bool) -> Positions:
        """Where the micro-batch after `start` ends; `start` itself if there is none."""
        self._has_begun = True
        ends = self._ends()
        self._newest = dict(ends)
        if self._target is not None:
            ends = {place: min(ends.get(place, at), at) for place, at in self._target.items()}
        if (anew := self._taken_back(start, ends)) is not None:
            return anew
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

    def shares(self, start: Positions, end: Positions) -> list[Share]:
        """The tasks of a micro-batch; the same for the same positions.

        Offsets of a topic that was made again since they were planned are of records that are gone.
        """
        self._has_begun = True
        self._topics()
        there = {place: at for place, at in end.items() if place.topic not in self._replaced}
        ranges = ranges_between(start, there, self._topic_ids)
        return shares_of(ranges, self._options.tasks_min, self._options.task_rows_max)

    @property
    def newest(self) -> Positions:
        """Where the topics ended when that was last asked."""
        return self._newest

    def _ends(self) -> Positions:
        subscription = self._options.subscription
        places = places_of(self._topics(), subscription, may_miss=self._may_miss)
        return self._brokers.offsets(dict.fromkeys(places, LATEST)) if places else {}

    def _is_held_back(self, rows: int, *, is_limited: bool) -> bool:
        """Whether a batch waits to become larger."""
        rows_min = self._options.rows_min
        if rows_min is None or not is_limited or self._target is not None:
            return False
        return rows < rows_min and self._clock() - self._batch_at < self._options.delay_s_max

    def _taken_back(self, start: Positions, ends: Positions) -> Positions | None:
        """Where the stream stands once topics that were made again are at 0; None if it does.

        The positions are then those of the new topics alone, and their ids can be kept.
        """
        read = {place.topic for place, at in start.items() if at and place.topic in self._replaced}
        if not read:
            if self._replaced:
                self._begin_unread()
                self._replaced.clear()
                self._keep_ids()
            return None
        # Kept before Spark writes the 0 down, which is also where what was never read stands.
        self._remade |= read
        self._keep_ids()
        taken = {place: 0 if place.topic in self._replaced else at for place, at in start.items()}
        for place in taken.keys() - ends.keys():
            self._report_gone(place, start[place])
        return {place: at for place, at in taken.items() if place in ends}

    def _begin_unread(self) -> None:
        """Let topics begin with their new partitions of which nothing was read before.

        That is sure only of those which stood at 0: where a stream began later, backfills may
        have brought what lies before it.
        """
        if self._kept is None:
            return
        unread = self._replaced.keys() - self._remade
        begun = {at: to for at, to in self._kept.positions.items() if at.topic not in unread}
        begun |= {place: 0 for place in self._newest if place.topic in unread}
        self._kept = replace(self._kept, positions=begun)

    def _checked(self, start: Positions, ends: Positions) -> Positions:
        """The true beginning of the next batch, after a look at what is gone."""
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
                f"{place}, which was read up to offset {at}, is there no more: its topic was"
                " deleted. To go on without it set failOnDataLoss=false"
            )
        if place not in self._gone:
            logger.warning("%s is gone after offset %d; going on without it", place, at)
            self._gone.add(place)

    @property
    def _may_miss(self) -> bool:
        """Whether topics may be missing: not at the beginning, and then by option."""
        return self._has_begun and not self._options.fails_on_data_loss

    def _topics(self) -> list[Topic]:
        subscription = self._options.subscription
        try:
            topics = subscribed(self._brokers, subscription, may_miss=self._may_miss)
        except NoSuchTopic as error:
            if not self._has_begun:
                raise
            raise DataLost(
                f"{error}, and this query has read it before: it was deleted. To go on without it"
                " set failOnDataLoss=false"
            ) from error
        self._remember(topics)
        return topics

    def _remember(self, topics: Iterable[Topic]) -> None:
        """Know topics by id; one that has another id than before begins anew, or is refused."""
        is_news = False
        for topic in topics:
            known = self._topic_ids.get(topic.name)
            if known == topic.topic_id:
                continue
            if known is not None:
                if self._options.fails_on_data_loss:
                    raise recreated(topic.name, may_go_on=False)
                logger.warning(
                    "topic %s was deleted and made again: it is read from its beginning", topic.name
                )
                self._replaced.setdefault(topic.name, known)
            self._topic_ids[topic.name] = topic.topic_id
            is_news = True
        if is_news:
            self._keep_ids()

    def _keep_ids(self) -> None:
        """Of each topic the id that the positions of the stream are of."""
        if self._kept is not None:
            ids = {**self._topic_ids, **self._replaced}
            self._kept = replace(self._kept, topic_ids=ids, remade=self._remade)
            self._keep()

    def _keep(self) -> None:
        if self._path is not None and self._kept is not None:
            starts.save(self._path, self._kept)
