"""Topics whose offsets may mean other records than those that a flow has read.

A topic that was deleted and made again begins at offset 0 once more. Neither quarantine nor a table
says of which of the two a row's record is: its place is all that they have. What is known is noted
beside the checkpoints of flows: by which id a topic was read, and whether it was made again and
read on. So either all that a flow has read of a topic is of the one that is there now, or nobody
can tell it of a single record.
"""

from collections.abc import Iterable, Mapping, Set

from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.running.state import FlowState
from headrace.pipelines.sources import source_options
from headrace.protocol.uuids import Uuid
from headrace.spark.source import starts
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.options import parse
from headrace.spark.source.starts import Starts


def remade(
    notes: Iterable[Starts], topics: Iterable[str], now: Mapping[str, Uuid]
) -> frozenset[str]:
    """Those of some topics of which it cannot be shown that they are still what was read."""
    ids, read_on = _told(notes)
    return frozenset(
        topic
        for topic in topics
        if topic in read_on or topic not in now or ids.get(topic) != {now[topic]}
    )


def mixed(notes: Iterable[Starts]) -> frozenset[str]:
    """Topics of which tables may have two records of one offset.

    Topics of one name in two clusters are among them: their records are not told apart either.
    """
    ids, read_on = _told(notes)
    return read_on | {topic for topic, found in ids.items() if len(found) > 1}


def remade_for(
    state: FlowState, source: Source, settings: PipelineSettings, topics: Set[str]
) -> frozenset[str]:
    """Those of some topics whose records must not be looked for in them any more.

    The stock connector notes no ids, so what it reads is taken for what it was.
    """
    if source.connector != "headrace" or not topics:
        return frozenset()
    options = parse(source_options(source, settings, state.starts / source.name), is_streaming=True)
    notes = notes_of([state])
    if options.starts_location is not None:  # The source's options may name another folder.
        own = starts.load(starts.starts_path(options.starts_location))
        notes += [] if own is None else [own]
    with Brokers(options.properties) as brokers:
        found = brokers.topics(tuple(sorted(topics)), may_miss=True)
    return remade(notes, topics, {topic.name: topic.topic_id for topic in found})


def notes_of(states: Iterable[FlowState]) -> list[Starts]:
    """What is noted beside some flows' checkpoints, by sources of former names too."""
    paths = (path for state in states for path in sorted(state.starts.glob(f"*/{starts.FILE}")))
    return [found for found in map(starts.load, paths) if found is not None]


def _told(notes: Iterable[Starts]) -> tuple[dict[str, set[Uuid]], frozenset[str]]:
    """By which ids topics were read, and which of them were made again and read on."""
    ids: dict[str, set[Uuid]] = {}
    read_on: frozenset[str] = frozenset()
    for note in notes:
        read_on |= note.remade
        for topic, found in note.topic_ids.items():
            ids.setdefault(topic, set()).add(found)
    return ids, read_on
