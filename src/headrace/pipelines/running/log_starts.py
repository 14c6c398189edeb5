"""Where in its topics a replay begins, and whether the log still reaches back to there.

Tables are built anew from what they were made of. A source that reads from the beginning of the log
does so again; any other begins where the running flow began, or where its backfills came down to:
`latest` would be another place now, and the new tables empty. Partitions and topics that the flow
found later it has read from their beginning. What a flow has read and the log has no more stops a
replay before it builds anything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.client.cluster import NoSuchTopic
from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.backfilling import came_down_to
from headrace.pipelines.running.state import FlowState
from headrace.pipelines.sources import begins_with_the_log, reads_topic, source_options
from headrace.protocol.uuids import Uuid
from headrace.spark import checkpoints
from headrace.spark.source import starts
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.offsets import EARLIEST, Positions, TopicPartition, from_spark
from headrace.spark.source.options import parse
from headrace.spark.source.resolving import places_of, subscribed
from headrace.spark.source.starts import Starts


class LogTooShort(PipelineError):
    """The log has no more what tables were made of."""


@dataclass(frozen=True, slots=True)
class WasRead:
    """What flows have read of a source's topics."""

    begun: Positions
    """The first offset of each partition."""
    topic_ids: Mapping[str, Uuid] = field(default_factory=dict)
    remade: frozenset[str] = frozenset()
    """Topics that were deleted and made again, and read on."""


@dataclass(frozen=True, slots=True)
class Log:
    """A source's topics as they are now."""

    topic_ids: Mapping[str, Uuid]
    firsts: Positions
    """The first offset that is still there of each partition."""


def was_read(states: Iterable[FlowState], source: Source) -> WasRead:
    """What is noted beside some flows' checkpoints."""
    begun: Positions = {}
    ids: dict[str, Uuid] = {}
    remade: set[str] = set()
    for state in states:
        kept = starts.load(state.starts / source.name / starts.FILE)
        found = from_spark(state.started_at()) if kept is None else dict(kept.positions)
        others = set() if kept is None else _starts_of_others(state, source)
        for place in _places_read(state).keys() - others:
            found.setdefault(place, 0)
        for place, at in from_spark(came_down_to(state)).items():
            found[place] = min(at, found.get(place, at))
        for place, at in found.items():
            if reads_topic(source, place.topic):
                begun[place] = min(at, begun.get(place, at))
        if kept is not None:
            ids |= kept.topic_ids
            remade |= kept.remade
    return WasRead(begun, ids, frozenset(remade))


def log_of(source: Source, settings: PipelineSettings) -> Log:
    """Ask the cluster that a source is read from."""
    options = parse(source_options(source, settings), is_streaming=True)
    with Brokers(options.properties) as brokers:
        try:
            topics = subscribed(brokers, options.subscription)
        except NoSuchTopic as error:
            raise LogTooShort(str(error)) from error
        places = places_of(topics, options.subscription)
        firsts = brokers.offsets(dict.fromkeys(places, EARLIEST)) if places else {}
        return Log({topic.name: topic.topic_id for topic in topics}, firsts)


def replay_starts(source: Source, read: WasRead, log: Log) -> Starts:
    """Where each partition begins when it is read once more; refused if it would come to less."""
    for place, at in sorted(read.begun.items()):
        topic = place.topic
        now = log.topic_ids.get(topic)
        if now is None or place not in log.firsts:
            raise LogTooShort(f"{place} is there no more, and the tables have records of it")
        if topic in read.remade or read.topic_ids.get(topic, now) != now:
            raise LogTooShort(
                f"topic {topic} was deleted and made again, and the tables have records of before"
            )
        if log.firsts[place] > at:
            raise LogTooShort(
                f"{place} begins at offset {log.firsts[place]} now, but the tables were built from"
                f" offset {at}: retention has passed it"
            )
    if begins_with_the_log(source):
        return Starts(log.firsts, log.topic_ids)
    begun = {place: read.begun.get(place, first) for place, first in log.firsts.items()}
    return Starts(begun, log.topic_ids)


def _places_read(state: FlowState) -> Positions:
    """The partitions that a flow has planned to read, by its checkpoint."""
    newest = checkpoints.newest_plan(state.checkpoint)
    return from_spark(checkpoints.ranges(state.checkpoint, newest).ends())


def _starts_of_others(state: FlowState, source: Source) -> set[TopicPartition]:
    """Where the other sources of a flow began.

    A checkpoint does not say which source a topic is of. One of another cluster may have the same
    name and more partitions, which are not to be looked for in this one.
    """
    paths = state.starts.glob(f"*/{starts.FILE}")
    kept = (starts.load(path) for path in paths if path.parent.name != source.name)
    return {place for one in kept if one is not None for place in one.positions}
