"""`headrace produce`: lines from standard input become records, as fast as librdkafka takes them.

Plain lines and `key<separator>value` lines go in lists straight to librdkafka; headers and times
need a call per record, which is still some hundred thousand a second.
"""

import sys
import time

import click
import msgspec

from headrace.cli.line_shapes import Shape, send_lines
from headrace.cli.lines import read_lines
from headrace.cli.options import (
    bootstrap_option,
    client_properties,
    command_config_option,
    json_option,
    moment,
    name_value,
    property_option,
)
from headrace.cli.output import print_json, warn
from headrace.cli.progress import ProgressLine, rate_text
from headrace.cli.record_text import unescape
from headrace.client.bulk import RecordProducer
from headrace.client.cluster import check_reachable
from headrace.errors import HeadraceError

_STDIN = 0


class Produced(msgspec.Struct, frozen=True):
    """The summary for programs."""

    topic: str
    records: int
    failed: int
    seconds: float
    errors: dict[str, int]


@click.command("produce", short_help="Write lines from standard input as records.")
@click.argument("topic")
@bootstrap_option
@command_config_option
@click.option("--key-separator", "-K", metavar="TEXT", help="Split lines into key and value here.")
@click.option("--key", "-k", help="The key of every record.")
@click.option(
    "--header",
    "-H",
    "headers",
    type=name_value,
    metavar="NAME=VALUE",
    multiple=True,
    help="A header of every record; may be repeated.",
)
@click.option(
    "--timestamp", "-T", type=moment, metavar="TIME", help="The time of every record; else now."
)
@click.option("--partition", "-p", type=click.IntRange(min=0), help="Write to this partition.")
@click.option("--null-marker", "-Z", metavar="TEXT", help="A key or value of this text is null.")
@click.option(
    "--from-json", is_flag=True, help="Lines are JSON records, as `headrace consume --json` writes."
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Which acknowledgement counts as delivered.",
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
)
@click.option("--idempotent", is_flag=True, help="No record twice, whatever the network does.")
@property_option
@click.option(
    "--flush-timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the last acknowledgements.",
)
@json_option
def command(
    topic: str,
    bootstrap: str,
    command_config: str | None,
    key_separator: str | None,
    key: str | None,
    headers: tuple[tuple[str, str], ...],
    timestamp: int | None,
    partition: int | None,
    null_marker: str | None,
    from_json: bool,
    acks: str,
    compression: str,
    idempotent: bool,
    properties: tuple[tuple[str, str], ...],
    flush_timeout: float,
    as_json: bool,
) -> int:
    """Write lines from standard input to TOPIC, one record a line.

    \b
    seq 1000000 | headrace produce numbers
    echo 'ada:42' | headrace produce scores --key-separator : --header source=shell
    headrace consume old --from-beginning --exit-at-end --json | headrace produce new --from-json
    """
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    if key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    shape = Shape(
        key_separator=_bytes(key_separator),
        key=_bytes(key),
        headers=tuple((name, text.encode()) for name, text in headers),
        timestamp_ms=timestamp or 0,
        partition=-1 if partition is None else partition,
        null_marker=_bytes(null_marker),
        from_json=from_json,
    )
    settings = {
        "acks": acks,
        "compression.type": compression,
        "enable.idempotence": str(idempotent).lower(),
        **client_properties(command_config, properties),
    }
    produced = produce(bootstrap, topic, settings, shape, flush_timeout)
    return _report(produced, as_json=as_json)


def produce(
    bootstrap: str, topic: str, settings: dict[str, str], shape: Shape, flush_timeout_s: float
) -> Produced:
    """Send all of standard input; the result counts what was and what was not delivered."""
    check_reachable(bootstrap, settings)
    producer = RecordProducer(bootstrap, topic, settings)
    producer.require_topic()
    started = time.monotonic()
    errors: dict[str, int] = {}
    try:
        _send_input(producer, shape, started)
    except HeadraceError as error:
        errors[f"stopped at line {producer.sent + 1}: {error}"] = 1
    if undelivered := producer.flush(flush_timeout_s):
        errors[f"not acknowledged within {flush_timeout_s:g} s"] = undelivered
    errors.update(producer.failures)
    return Produced(
        topic=topic,
        records=producer.sent - producer.failed - undelivered,
        failed=sum(errors.values()),
        seconds=round(time.monotonic() - started, 3),
        errors=errors,
    )


def _send_input(producer: RecordProducer, shape: Shape, started: float) -> None:
    progress = ProgressLine()
    try:
        for lines in read_lines(_STDIN, producer.poll):
            send_lines(producer, shape, lines)
            if progress.is_due():
                done = producer.sent - producer.waiting
                progress.show(rate_text(done, time.monotonic() - started))
    finally:
        progress.clear()


def _report(produced: Produced, *, as_json: bool) -> int:
    if as_json:
        print_json(produced)
    elif sys.stderr.isatty():
        sys.stderr.write(f"{rate_text(produced.records, produced.seconds)}\n")
    for message, count in produced.errors.items():
        warn(f"{count:,} not delivered: {message}")
    return 1 if produced.failed else 0


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else unescape(text).encode()
