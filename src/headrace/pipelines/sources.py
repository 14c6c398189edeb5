"""Topics as a pipeline reads them: where they are, how their payloads are read, what may enter."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from headrace.pipelines.model import ERROR, PipelineSettings, Source
from headrace.spark.option_names import given_properties
from headrace.spark.refuge import Spans
from headrace.spark.topic_patterns import whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CATEGORY = "_category"
_WHERE = ("subscribe", "starting", "ending")
"""How the options begin that say which topics are read, and from where; times win over offsets."""

_STARTING_TIMES = ("startingtimestamp", "startingoffsetsbytimestamp")

T = TypeVar("T")


class AtCluster(NamedTuple, Generic[T]):
    """A cluster as a client reaches it, and what is read from there."""

    properties: dict[str, str]
    """With the login."""
    read: list[T]


def client_properties(settings: PipelineSettings) -> dict[str, str]:
    """What reaches the pipeline's cluster, with its login."""
    return {**settings.client, "bootstrap.servers": settings.bootstrap}


def source_options(
    source: Source, settings: PipelineSettings, starts: Path | None = None
) -> dict[str, str]:
    """The options of Spark's reader for a topic; what the pipeline says of it wins."""
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
    said = {name.lower() for name in source.options}
    kept = {name: value for name, value in options.items() if name.lower() not in said}
    return {**kept, **source.options}


def source_properties(source: Source, settings: PipelineSettings) -> dict[str, str]:
    """What reaches the cluster of a source, with its login; its options may name another one."""
    found = given_properties(source_options(source, settings))
    found.pop("isolation.level", None)  # It says how records are read, and not who reads.
    return found


def begins_with_the_log(source: Source) -> bool:
    """Whether a flow that reads a source for the first time reads all that there is."""
    said = {name.lower(): value for name, value in source.options.items()}
    if any(name in said for name in _STARTING_TIMES):
        return False
    return said.get("startingoffsets", "earliest").strip().lower() == "earliest"


def by_cluster(
    topics: Iterable[str], sources: Iterable[Source], settings: PipelineSettings
) -> list[AtCluster[str]]:
    """Topics that sources read, beside what reaches the cluster that each is read from.

    A name that is read from several clusters is with none: whose topic is meant cannot be told.
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
    """What is read, parted by what reaches it; `first` is there also if nothing is read by it."""
    found: list[AtCluster[T]] = [] if first is None else [AtCluster(first, [])]
    for properties, one in read:
        cluster = next((known for known in found if known.properties == properties), None)
        if cluster is None:
            cluster = AtCluster(properties, [])
            found.append(cluster)
        cluster.read.append(one)
    return found


def has_headers(source: Source) -> bool:
    """Whether a topic has the column `headers`: as bytes it has, as they belong to what came.

    A query that has no use for them costs nothing, as the columns are chosen by what it uses.
    """
    said = {name.lower(): value for name, value in source.options.items()}.get("includeheaders")
    return source.format == "bytes" if said is None else said.strip().lower() == "true"


def spans_of(source: Source, spans: Spans) -> dict[str, Mapping[str, tuple[int, int]]]:
    """Those of some spans that are of topics which a source reads."""
    return {topic: spans[topic] for topic in spans if reads_topic(source, topic)}


def reads_topic(source: Source, topic: str) -> bool:
    """Whether a topic is one of those that a source reads."""
    if source.topic_pattern is not None:
        return re.fullmatch(source.topic_pattern, topic) is not None
    return topic in map(str.strip, (source.topic or source.name).split(","))


def span_options(options: Mapping[str, str], spans: Spans) -> dict[str, str]:
    """The options of a batch that reads these spans and nothing else."""
    found = {n: v for n, v in options.items() if not n.lower().startswith(_WHERE)}
    wanted = {topic: spans[topic] for topic in spans if spans[topic]}
    found["assign"] = json.dumps({t: [int(p) for p in ps] for t, ps in wanted.items()})
    for name, end in (("startingOffsets", 0), ("endingOffsets", 1)):
        offsets = {t: {p: span[end] for p, span in ps.items()} for t, ps in wanted.items()}
        found[name] = json.dumps(offsets)
    return found


def metadata_prefix(source: Source) -> str:
    """What stands before the names of the columns that tell where a record of a topic was."""
    if source.connector == "kafka" or source.format == "bytes":
        return ""
    options = {name.lower(): value for name, value in source.options.items()}
    return options.get("metadataprefix", "")


def keeping_payloads(source: Source) -> Source:
    """The source with the bytes of every record in `_payload`, unless its options say otherwise."""
    if source.connector != "headrace" or source.format == "bytes":
        return source
    return replace(source, options={"keepPayloads": "true", **source.options})


def admitted(rows: "DataFrame", source: Source) -> "DataFrame":
    """A source's entry rules: what may pass, and under which category (ARC-7).

    What could not be read passes, where the query takes care of it: nothing is known of it.
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
