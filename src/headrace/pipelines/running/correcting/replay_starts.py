"""The starts of a replay in its topics, and the check that the log still has them.

Tables are rebuilt from their original records. A source that reads from the beginning of the log
does so again; any other begins at the start of the running flow, or of its backfills: `latest`
would be elsewhere now, and the new tables empty. Partitions and topics that were found later have
been read from their beginning. Missing records stop a replay before it builds anything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.client.cluster import NoSuchTopic
from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.sources import begins_with_the_log, reads_topic, source_options
from headrace.pipelines.running.correcting.backfill import earliest_read
from headrace.pipelines.running.state.folders import FlowState
from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import Uuid
from headrace.spark import checkpoints
from headrace.spark.source import starts
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.offsets import EARLIEST, Positions, from_spark
from headrace.spark.source.options import parse
from headrace.spark.source.resolving import places_of, subscribed
from headrace.spark.source.starts import Starts


class LogTooShort(PipelineError):
    """The log no longer has records of the tables."""


@dataclass(frozen=True, slots=True)
class WasRead:
    """The offsets of a source's topics that flows have read."""

    begun: Positions
    """The first offset of each partition."""
    topic_ids: Mapping[str, Uuid] = field(default_factory=dict)
    remade: frozenset[str] = frozenset()
    """Topics that were deleted and recreated, and read on."""


@dataclass(frozen=True, slots=True)
class Log:
    """The current topics of a source."""

    topic_ids: Mapping[str, Uuid]
    firsts: Positions
    """The first offset of each partition."""


def was_read(states: Iterable[FlowState], source: Source) -> WasRead:
    """Return the offsets noted next to some flows' checkpoints."""
    begun: Positions = {}
    ids: dict[str, Uuid] = {}
    remade: set[str] = set()
    for state in states:
        kept = starts.load(state.starts / source.name / starts.FILE)
        found = from_spark(state.started_at()) if kept is None else dict(kept.positions)
        others = set() if kept is None else _starts_of_others(state, source)
        for place in _places_read(state).keys() - others:
            found.setdefault(place, 0)
        for place, at in from_spark(earliest_read(state)).items():
            found[place] = min(at, found.get(place, at))
        for place, at in found.items():
            if reads_topic(source, place.topic):
                begun[place] = min(at, begun.get(place, at))
        if kept is not None:
            ids |= kept.topic_ids
            remade |= kept.remade
    return WasRead(begun, ids, frozenset(remade))


def log_of(source: Source, settings: PipelineSettings) -> Log:
    """Return the current topics from a source's cluster."""
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
    """Return the start of each partition for a replay; missing records are an error."""
    for place, at in sorted(read.begun.items()):
        topic = place.topic
        now = log.topic_ids.get(topic)
        if now is None or place not in log.firsts:
            raise LogTooShort(f"{place} no longer exists, and the tables have records of it")
        if topic in read.remade or read.topic_ids.get(topic, now) != now:
            raise LogTooShort(
                f"topic {topic} was deleted and recreated, and the tables have older records"
            )
        if log.firsts[place] > at:
            raise LogTooShort(
                f"{place} now begins at offset {log.firsts[place]}, but the tables were built from"
                f" offset {at}: retention has removed older records"
            )
    if begins_with_the_log(source):
        return Starts(log.firsts, log.topic_ids)
    begun = {place: read.begun.get(place, first) for place, first in log.firsts.items()}
    return Starts(begun, log.topic_ids)


def _places_read(state: FlowState) -> Positions:
    """Return the partitions that a flow has planned to read, by its checkpoint."""
    newest = checkpoints.newest_plan(state.checkpoint)
    return from_spark(checkpoints.ranges(state.checkpoint, newest).ends())


def _starts_of_others(state: FlowState, source: Source) -> set[TopicPartition]:
    """Return the starts of a flow's other sources.

    A checkpoint does not have the source of a topic. A topic of another cluster may have the same
    name and more partitions, which do not exist in this one.
    """
    paths = state.starts.glob(f"*/{starts.FILE}")
    kept = (starts.load(path) for path in paths if path.parent.name != source.name)
    return {place for one in kept if one is not None for place in one.positions}
