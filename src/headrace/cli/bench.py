"""`headrace bench`: measure throughput and latency under a load modelled by the user.

The command creates a topic and deletes it at the end. The latency of a produced record runs from
the call of the client to the acknowledgement; end to end, to the record's arrival in a consumer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import click
import msgspec

from headrace.cli import options
from headrace.cli.histogram import Summary
from headrace.cli.load_plan import STAMP_BYTES, LoadPlan, LoadProgress, LoadResult
from headrace.cli.options import ClusterOptions, as_mapping, options_as
from headrace.cli.output import print_json, print_line, print_table, warn
from headrace.cli.progress import ProgressLine
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.errors import HeadraceError

DEFAULT_RECORDS = 1_000_000


class LoadedTopic(msgspec.Struct, frozen=True):
    """Options about the topic of the load."""

    partitions: int
    configs: tuple[tuple[str, str], ...]
    keep_topic: bool
    replication_factor: int = -1
    topic: str | None = None


class BenchResult(msgspec.Struct, frozen=True):
    """The document for programs."""

    plan: LoadPlan
    produced: LoadResult | None
    consumed: LoadResult | None


@click.command("bench", short_help="Put a load on a cluster and measure it.")
@click.option(
    "--records",
    "-n",
    type=click.IntRange(min=1),
    show_default=f"{DEFAULT_RECORDS:,}",
    help="Number of records.",
)
@click.option(
    "--duration",
    "duration_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after this long.",
)
@click.option(
    "--size",
    "size_bytes",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="BYTES",
    help="Size of a record's value.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    show_default="as many as possible",
    help="Records per second, by all producers together.",
)
@options.delivery_options
@click.option(
    "--linger",
    "linger_ms",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="MS",
    help="Time that a producer waits for more records before it sends a batch.",
)
@click.option(
    "--keys",
    type=click.IntRange(min=0),
    default=0,
    show_default="none",
    help="Number of distinct keys.",
)
@click.option(
    "--producers",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Number of producers.",
)
@click.option(
    "--consumers",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Number of consumers.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of partitions of the created topic.",
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    show_default="the broker's",
    help="Number of replicas of each partition.",
)
@options.set_option("A setting of the created topic; may be repeated.")
@click.option("--topic", help="Use this existing topic and keep it.")
@click.option("--keep-topic", is_flag=True, help="Do not delete the topic at the end.")
@options.admin_options
@options_as(LoadedTopic, "wanted")
def command(
    records: int | None, wanted: LoadedTopic, as_json: bool, cluster: ClusterOptions, **load: Any
) -> int:
    """Put a load on a cluster and measure throughput and latency.

    \b
    headrace bench --records 5000000 --size 100 --partitions 6 --producers 2
    headrace bench --rate 20000 --duration 30 --acks all --compression zstd

    With --producers 0 and --topic, consumers read the existing records of the topic.
    """
    _check(wanted.topic, load["producers"], load["consumers"], load["size_bytes"])
    with cluster.admin() as client, _topic(client, wanted) as name:
        plan = LoadPlan(
            bootstrap=cluster.bootstrap,
            topic=name,
            records=records if records or load["duration_s"] else DEFAULT_RECORDS,
            partitions=len(client.partitions.of(name)),
            properties=cluster.settings(),
            **load,
        )
        produced, consumed = _run(plan)
    if as_json:
        # The properties may hold passwords.
        shown = msgspec.structs.replace(plan, properties={})
        print_json(BenchResult(shown, produced, consumed))
    else:
        _print(plan, produced, consumed)
    return _failures(produced, consumed)


def _check(topic: str | None, producers: int, consumers: int, size: int) -> None:
    if not producers and not consumers:
        raise click.UsageError("without producers and consumers there is nothing to measure")
    if not producers and topic is None:
        raise click.UsageError("--producers 0 needs --topic: a new topic has nothing to read")
    if producers and consumers and size < STAMP_BYTES:
        raise click.UsageError(
            f"--size must be {STAMP_BYTES} or more, so that a record can carry its time;"
            " or measure with --consumers 0"
        )


@contextmanager
def _topic(client: Admin, wanted: LoadedTopic) -> Iterator[str]:
    """Yield the topic of a load; delete it at the end if this command created it."""
    if wanted.topic is not None:
        yield wanted.topic
        return
    topic = NewTopic(
        name=f"headrace-bench-{uuid4().hex[:8]}",
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        configs=as_mapping(wanted.configs),
    )
    created = client.topics.create([topic])[0]
    if created.error is not None:
        raise HeadraceError(f"cannot create a topic for the load: {created.message}")
    try:
        yield topic.name
    finally:
        if wanted.keep_topic:
            warn(f"topic {topic.name} is kept")
        else:
            client.topics.delete([topic.name])


def _run(plan: LoadPlan) -> tuple[LoadResult | None, LoadResult | None]:
    from headrace.cli.load import LoadRun

    progress = ProgressLine()

    def watch(produced: LoadProgress, consumed: LoadProgress, seconds: float) -> None:
        progress.show(progress_text(plan, produced, consumed, seconds, progress.width))

    try:
        return LoadRun(plan, watch).run()
    finally:
        progress.clear()


def progress_text(
    plan: LoadPlan,
    produced: LoadProgress,
    consumed: LoadProgress,
    seconds: float,
    width: int = 1000,
) -> str:
    """Return the live line: counts and rates so far, shortened to the width of the terminal."""
    sides = [
        (word, progress)
        for word, count, progress in (
            ("produced", plan.producers, produced),
            ("consumed", plan.consumers, consumed),
        )
        if count
    ]
    total = plan.records if plan.producers else None
    for side_text in (_side, _short_side):
        text = " | ".join(
            [f"{seconds:5.1f} s", *(side_text(*one, total, seconds) for one in sides)]
        )
        if len(text) <= width:
            break
    return text


def _side(word: str, progress: LoadProgress, total: int | None, seconds: float) -> str:
    share = "" if total is None else f" of {total:,}"
    speed, mb_per_s = _speeds(progress, seconds)
    return f"{word} {progress.records:,}{share}, {speed:,.0f}/s, {mb_per_s:,.1f} MB/s"


def _short_side(word: str, progress: LoadProgress, total: int | None, seconds: float) -> str:
    share = "" if not total else f" ({progress.records / total:.0%})"
    return f"{word} {progress.records:,}{share} {_speeds(progress, seconds)[0]:,.0f}/s"


def _speeds(progress: LoadProgress, seconds: float) -> tuple[float, float]:
    passed = max(seconds, 1e-9)
    return progress.records / passed, progress.size_bytes / passed / 1e6


def _print(plan: LoadPlan, produced: LoadResult | None, consumed: LoadResult | None) -> None:
    sides = {"produced": produced, "consumed": consumed}
    present = {word: _figures(result) for word, result in sides.items() if result is not None}
    names = ("records", "seconds", "records/s", "MB/s", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms")
    print_table(("", *present), list(zip((*names, "max ms"), *present.values(), strict=True)))
    print_line("\nLatency produced: from the client call to the acknowledgement;")
    print_line("consumed: from the record's creation to its arrival.")
    if plan.rate is not None and produced is not None and produced.records_per_s < 0.95 * plan.rate:
        warn(f"{plan.rate:,.0f} records/s were asked for; the cluster or this machine was slower")


def _figures(result: LoadResult) -> list[str]:
    return [
        f"{result.records:,}",
        f"{result.seconds:,.2f}",
        f"{result.records_per_s:,.0f}",
        f"{result.mb_per_s:,.1f}",
        *_latencies(result.latency_ms),
    ]


def _latencies(summary: Summary | None) -> list[str]:
    if summary is None:
        return ["-"] * 5
    figures = (summary.p50, summary.p95, summary.p99, summary.p99_9, summary.max)
    return [f"{figure:,.2f}" for figure in figures]


def _failures(produced: LoadResult | None, consumed: LoadResult | None) -> int:
    failed = 0
    for word, result in (("produced", produced), ("consumed", consumed)):
        for message, count in result.errors.items() if result is not None else ():
            failed = 1
            warn(f"{count:,} not {word}: {message}")
    return failed
