"""Resolution of options to topics, partitions and offsets of the cluster."""

from collections.abc import Iterable

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.brokers import Brokers, Topic, partitions_of
from headrace.spark.source.errors import InvalidOption, SourceError
from headrace.spark.source.offsets import EARLIEST, LATEST, Positions, check_same_partitions
from headrace.spark.source.options import Bound, Subscription, Unmatched


def subscribed(
    brokers: Brokers, subscription: Subscription, *, may_miss: bool = False
) -> list[Topic]:
    """Return the topics to read, from the cluster or the cache."""
    topics = brokers.topics(subscription.names(), may_miss=may_miss)
    return [
        topic
        for topic in topics
        if any(subscription.takes(place) for place in partitions_of([topic]))
    ]


def places_of(
    topics: Iterable[Topic], subscription: Subscription, *, may_miss: bool = False
) -> list[TopicPartition]:
    """Return the partitions to read; missing ones of `assign` are an error unless `may_miss`."""
    there = partitions_of(topics)
    missing = set(subscription.partitions) - set(there)
    if missing and not may_miss:
        raise InvalidOption(
            f"assign names {', '.join(map(str, sorted(missing)))}: no such partition"
        )
    return [place for place in there if subscription.takes(place)]


def resolved(brokers: Brokers, places: Iterable[TopicPartition], bound: Bound) -> Positions:
    """Resolve a bound to an offset in every partition."""
    wanted = list(places)
    if not wanted:
        return {}
    if bound.everywhere is not None:
        return brokers.offsets(dict.fromkeys(wanted, bound.everywhere))
    if bound.offsets is not None:
        check_same_partitions(bound.option, bound.offsets, wanted)
        asked = {place: at for place, at in bound.offsets.items() if at in (EARLIEST, LATEST)}
        return {**bound.offsets, **(brokers.offsets(asked) if asked else {})}
    times_ms = bound.timestamps_ms
    if times_ms is None:
        assert bound.timestamp_ms is not None
        times_ms = dict.fromkeys(wanted, bound.timestamp_ms)
    check_same_partitions(bound.option, times_ms, wanted)
    return _at_times(brokers, times_ms, bound)


def _at_times(brokers: Brokers, times_ms: Positions, bound: Bound) -> Positions:
    found = brokers.offsets(times_ms)
    unmatched = sorted(place for place, offset in found.items() if offset < 0)
    if unmatched and bound.unmatched is Unmatched.ERROR:
        raise SourceError(
            f"{', '.join(map(str, unmatched))}: there is no record from the time of {bound.option}"
            " on; choose an earlier time, or set startingOffsetsByTimestampStrategy=latest"
        )
    if unmatched:
        found |= brokers.offsets(dict.fromkeys(unmatched, LATEST))
    return found


def check_order(start: Positions, end: Positions, options: tuple[Bound, Bound]) -> None:
    """Reject a batch that ends before it begins, which would silently be empty."""
    crossed = sorted(place for place, at in start.items() if at > end[place])
    if crossed:
        place = crossed[0]
        raise SourceError(
            f"{place}: the offset {end[place]} of {options[1].option} is before the offset"
            f" {start[place]} of {options[0].option}"
        )
