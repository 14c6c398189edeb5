"""`headrace bench`: a load that a user models after their own, with throughput and latencies.

It makes a topic of its own and deletes it at the end. Latency of a produced record is the time
from the hand-over to the client to its acknowledgement; end to end, to its arrival in a consumer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import click
import msgspec

from headrace.cli.histogram import Summary
from headrace.cli.load_plan import STAMP_BYTES, Plan, Progress, Result
from headrace.cli.options import (
    admin,
    as_mapping,
    client_properties,
    cluster_options,
    json_option,
    set_option,
)
from headrace.cli.output import print_json, print_line, print_table, warn
from headrace.cli.progress import ProgressLine
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.errors import HeadraceError

DEFAULT_RECORDS = 1_000_000


class BenchResult(msgspec.Struct, frozen=True):
    """The document for programs."""

    plan: Plan
    produced: Result | None
    consumed: Result | None


@click.command("bench", short_help="Put a load on a cluster and measure it.")
@click.option("--records", "-n", type=click.IntRange(min=1), help="How many; else 1,000,000.")
@click.option(
    "--duration",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after this long.",
)
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="BYTES",
    help="Size of a record's value.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="Records a second of all producers together; else as many as possible.",
)
@click.option("--acks", type=click.Choice(["0", "1", "all"]), default="all", show_default=True)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
)
@click.option(
    "--linger",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="MS",
    help="How long a producer waits for more records before it sends.",
)
@click.option(
    "--keys", type=click.IntRange(min=0), default=0, help="How many keys; none by default."
)
@click.option("--producers", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--consumers", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--partitions", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--replication-factor", type=click.IntRange(min=1), help="Else the broker's default.")
@set_option("A setting of the topic that is made; may be repeated.")
@click.option("--topic", help="Use this topic, which is there and is kept.")
@click.option("--keep-topic", is_flag=True, help="Do not delete the topic at the end.")
@cluster_options
@json_option
def command(
    records: int | None,
    duration: float | None,
    size: int,
    rate: float | None,
    acks: str,
    compression: str,
    linger: float,
    keys: int,
    producers: int,
    consumers: int,
    partitions: int,
    replication_factor: int | None,
    configs: tuple[tuple[str, str], ...],
    topic: str | None,
    keep_topic: bool,
    as_json: bool,
    **cluster: Any,
) -> int:
    """Put a load on a cluster and measure throughput and latency.

    \b
    headrace bench --records 5000000 --size 100 --partitions 6 --producers 2
    headrace bench --rate 20000 --duration 30 --acks all --compression zstd

    With --producers 0 and --topic, consumers read what is in the topic.
    """
    _check(producers=producers, consumers=consumers, size=size, topic=topic)
    with (
        admin(**cluster) as client,
        _topic(
            client,
            NewTopic(
                name=topic or f"headrace-bench-{uuid4().hex[:8]}",
                partitions=partitions,
                replication_factor=replication_factor or -1,
                configs=as_mapping(configs),
            ),
            is_ours=topic is None,
            is_kept=keep_topic,
        ) as name,
    ):
        plan = Plan(
            bootstrap=cluster["bootstrap"],
            topic=name,
            records=DEFAULT_RECORDS if records is None and duration is None else records,
            duration_s=duration,
            size_bytes=size,
            rate=rate,
            acks=acks,
            compression=compression,
            linger_ms=linger,
            keys=keys,
            producers=producers,
            consumers=consumers,
            partitions=len(client.partitions.of(name)),
            properties=client_properties(cluster["command_config"], cluster["properties"]),
        )
        produced, consumed = _run(plan)
    if as_json:
        # The properties may hold passwords.
        shown = msgspec.structs.replace(plan, properties={})
        print_json(BenchResult(shown, produced, consumed))
    else:
        _print(plan, produced, consumed)
    return _failures(produced, consumed)


def _check(*, producers: int, consumers: int, size: int, topic: str | None) -> None:
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
def _topic(client: Admin, topic: NewTopic, *, is_ours: bool, is_kept: bool) -> Iterator[str]:
    """The topic of a load; one that we made goes when the load is over, whatever happens."""
    if not is_ours:
        yield topic.name
        return
    created = client.topics.create([topic])[0]
    if created.error is not None:
        raise HeadraceError(f"cannot create a topic for the load: {created.message}")
    try:
        yield topic.name
    finally:
        if is_kept:
            warn(f"topic {topic.name} is kept")
        else:
            client.topics.delete([topic.name])


def _run(plan: Plan) -> tuple[Result | None, Result | None]:
    from headrace.cli.load import Load

    progress = ProgressLine()

    def watch(produced: Progress, consumed: Progress, seconds: float) -> None:
        progress.show(progress_text(plan, produced, consumed, seconds, progress.width))

    try:
        return Load(plan, watch).run()
    finally:
        progress.clear()


def progress_text(
    plan: Plan, produced: Progress, consumed: Progress, seconds: float, width: int = 1000
) -> str:
    """The live line: how much, and how fast so far, in as many words as there is room for."""
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


def _side(word: str, progress: Progress, total: int | None, seconds: float) -> str:
    share = "" if total is None else f" of {total:,}"
    speed, mb_per_s = _speeds(progress, seconds)
    return f"{word} {progress.records:,}{share}, {speed:,.0f}/s, {mb_per_s:,.1f} MB/s"


def _short_side(word: str, progress: Progress, total: int | None, seconds: float) -> str:
    share = "" if not total else f" ({progress.records / total:.0%})"
    return f"{word} {progress.records:,}{share} {_speeds(progress, seconds)[0]:,.0f}/s"


def _speeds(progress: Progress, seconds: float) -> tuple[float, float]:
    passed = max(seconds, 1e-9)
    return progress.records / passed, progress.size_bytes / passed / 1e6


def _print(plan: Plan, produced: Result | None, consumed: Result | None) -> None:
    sides = {"produced": produced, "consumed": consumed}
    present = {word: _figures(result) for word, result in sides.items() if result is not None}
    names = ("records", "seconds", "records/s", "MB/s", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms")
    print_table(("", *present), list(zip((*names, "max ms"), *present.values(), strict=True)))
    print_line("\nLatency produced: from the hand-over to the acknowledgement;")
    print_line("consumed: from the record's making to its arrival.")
    if plan.rate is not None and produced is not None and produced.records_per_s < 0.95 * plan.rate:
        warn(f"{plan.rate:,.0f} records/s were asked for; the cluster or this machine was slower")


def _figures(result: Result) -> list[str]:
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


def _failures(produced: Result | None, consumed: Result | None) -> int:
    failed = 0
    for word, result in (("produced", produced), ("consumed", consumed)):
        for message, count in result.errors.items() if result is not None else ():
            failed = 1
            warn(f"{count:,} not {word}: {message}")
    return failed
