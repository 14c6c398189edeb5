"""Topics as a pipeline reads them: cluster, format and entry rules."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from headrace.pipelines.model import ERROR, PipelineSettings, Source
from headrace.spark.option_names import given_properties
from headrace.spark.side_output import Spans
from headrace.spark.topic_patterns import whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CATEGORY = "_category"
_WHERE = ("subscribe", "starting", "ending")
"""The first words of options that select topics and starts; times win over offsets."""

_STARTING_TIMES = ("startingtimestamp", "startingoffsetsbytimestamp")

T = TypeVar("T")


class AtCluster(NamedTuple, Generic[T]):
    """The client properties of a cluster, and what is read from it."""

    properties: dict[str, str]
    """Includes the login."""
    read: list[T]


def client_properties(settings: PipelineSettings) -> dict[str, str]:
    """Return the properties of a client of the pipeline's cluster, with its login."""
    return {**settings.client, "bootstrap.servers": settings.bootstrap}


def source_options(
    source: Source, settings: PipelineSettings, starts: Path | None = None
) -> dict[str, str]:
    """Return the options of Spark's reader for a topic; the source's own options win."""
    properties = {"isolation.level": "read_committed", **client_properties(settings)}
    options = {f"kafka.{name}": value for name, value in properties.items()}
    if source.topic_pattern is not None:
        options["subscribePattern"] = whole(source.topic_pattern)
    else:
        options["subscribe"] = source.topic or source.name
    options["startingOffsets"] = "earliest"
    if has_headers(source):
        options["includeHeaders"] = "true"
    if source.connector == "headrace":
        if starts is not None:
            options["startsLocation"] = str(starts)
        if source.format != "bytes":
            options["format"] = source.format
        if source.schema is not None:
            options["schema"] = source.schema
    given = {name.lower() for name in source.options}
    kept = {name: value for name, value in options.items() if name.lower() not in given}
    return {**kept, **source.options}


def source_properties(source: Source, settings: PipelineSettings) -> dict[str, str]:
    """Return the client properties of a source's cluster; its options may name another cluster."""
    found = given_properties(source_options(source, settings))
    found.pop("isolation.level", None)  # An option of reading, not of the cluster.
    return found


def begins_with_the_log(source: Source) -> bool:
    """Return whether the first read of a source starts at the beginning of the log."""
    given = {name.lower(): value for name, value in source.options.items()}
    if any(name in given for name in _STARTING_TIMES):
        return False
    return given.get("startingoffsets", "earliest").strip().lower() == "earliest"


def by_cluster(
    topics: Iterable[str], sources: Iterable[Source], settings: PipelineSettings
) -> list[AtCluster[str]]:
    """Group topics by the cluster that their sources read from.

    A name that exists on several clusters is left out: it would be ambiguous.
    """
    reaching = [(source, source_properties(source, settings)) for source in sources]
    found: list[tuple[dict[str, str], str]] = []
    for topic in topics:
        clusters = [properties for source, properties in reaching if reads_topic(source, topic)]
        if len({properties["bootstrap.servers"] for properties in clusters}) == 1:
            found.append((clusters[0], topic))
    return grouped(found)


def grouped(
    read: Iterable[tuple[dict[str, str], T]], first: dict[str, str] | None = None
) -> list[AtCluster[T]]:
    """Group reads by client properties; `first` is included even without a read."""
    found: list[AtCluster[T]] = [] if first is None else [AtCluster(first, [])]
    for properties, one in read:
        cluster = next((known for known in found if known.properties == properties), None)
        if cluster is None:
            cluster = AtCluster(properties, [])
            found.append(cluster)
        cluster.read.append(one)
    return found


def has_headers(source: Source) -> bool:
    """Return whether a topic has the column `headers`; by default only as bytes.

    An unused column costs nothing, since only used columns are read.
    """
    given = {name.lower(): value for name, value in source.options.items()}.get("includeheaders")
    return source.format == "bytes" if given is None else given.strip().lower() == "true"


def spans_of(source: Source, spans: Spans) -> dict[str, Mapping[str, tuple[int, int]]]:
    """Return the spans of topics that a source reads."""
    return {topic: spans[topic] for topic in spans if reads_topic(source, topic)}


def reads_topic(source: Source, topic: str) -> bool:
    """Return whether a source reads a topic."""
    if source.topic_pattern is not None:
        return re.fullmatch(source.topic_pattern, topic) is not None
    return topic in map(str.strip, (source.topic or source.name).split(","))


def span_options(options: Mapping[str, str], spans: Spans) -> dict[str, str]:
    """Return the options of a batch that reads exactly these spans."""
    found = {n: v for n, v in options.items() if not n.lower().startswith(_WHERE)}
    wanted = {topic: spans[topic] for topic in spans if spans[topic]}
    found["assign"] = json.dumps({t: [int(p) for p in ps] for t, ps in wanted.items()})
    for name, end in (("startingOffsets", 0), ("endingOffsets", 1)):
        offsets = {t: {p: span[end] for p, span in ps.items()} for t, ps in wanted.items()}
        found[name] = json.dumps(offsets)
    return found


def metadata_prefix(source: Source) -> str:
    """Return the prefix of the columns about a record's place."""
    if source.connector == "kafka" or source.format == "bytes":
        return ""
    options = {name.lower(): value for name, value in source.options.items()}
    return options.get("metadataprefix", "")


def keeping_payloads(source: Source) -> Source:
    """Return the source with the bytes of every record in `_payload`, unless its options differ."""
    if source.connector != "headrace" or source.format == "bytes":
        return source
    return replace(source, options={"keepPayloads": "true", **source.options})


def admitted(rows: "DataFrame", source: Source) -> "DataFrame":
    """Apply a source's entry rules: the filter and the category (ARC-7).

    Unreadable records pass if the query handles them: the filter cannot judge them.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if source.where is not None:
        is_admitted = F.expr(source.where)
        if ERROR in rows.columns and ERROR not in source.where:
            is_admitted = is_admitted | F.col(ERROR).isNotNull()
        rows = rows.where(is_admitted)
    if source.category is not None:
        rows = rows.withColumn(CATEGORY, F.expr(source.category))
    return rows
