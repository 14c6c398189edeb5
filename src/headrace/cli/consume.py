"""`headrace consume`: records to standard output, in lists from librdkafka to one write.

Without --group no consumer group takes part: the command assigns the partitions to itself and
leaves no trace.
"""

import sys
import time
from collections.abc import Callable, Sequence

import click
import msgspec
from confluent_kafka import Message

from headrace.cli.options import (
    bootstrap_option,
    client_properties,
    command_config_option,
    moment,
    partitions_option,
    property_option,
)
from headrace.cli.output import warn
from headrace.cli.partition_choice import check_partitions
from headrace.cli.progress import OutageNotice, ProgressLine, rate_text
from headrace.cli.record_text import Formatter, formatter, record_json
from headrace.client.cluster import check_reachable
from headrace.client.reader import BATCH_RECORDS_MAX, GroupReader, RecordReader, Start

Writer = Callable[[Sequence[Message]], bytes]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When reading stops."""

    count: int | None = None
    exit_at_end: bool = False
    idle_s: float | None = None

    def are_met(self, *, is_at_end: bool, silent_s: float) -> bool:
        """Whether to stop, asked when nothing came."""
        if self.exit_at_end and is_at_end:
            return True
        return self.idle_s is not None and silent_s >= self.idle_s


def start_offset(text: str) -> Start:
    """`earliest`, `latest`, an offset, or a negative number counted from the end."""
    match text:
        case "earliest" | "beginning":
            return Start(from_beginning=True)
        case "latest" | "end":
            return Start()
    try:
        return Start(offset=int(text))
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is no offset; give earliest, latest, a number,"
            " or -N for the last N records of each partition"
        ) from error


@click.command("consume", short_help="Write records to standard output.")
@click.argument("topic")
@bootstrap_option
@command_config_option
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest records.")
@click.option(
    "--offset",
    "-o",
    "start",
    type=start_offset,
    metavar="OFFSET",
    help="Begin at earliest, latest, offset N, or with the last N records (-N).",
)
@click.option(
    "--from-time", "-T", type=moment, metavar="TIME", help="Begin with the records of this time."
)
@click.option("--count", "-c", type=click.IntRange(min=0), help="Stop after so many records.")
@click.option("--exit-at-end", "-e", is_flag=True, help="Stop where the log ends.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop when nothing came for this long.",
)
@partitions_option("Read only this partition; may be repeated.")
@click.option(
    "--group",
    "-g",
    metavar="NAME",
    help="Read as a member of this group: from where it stands, committing what was written.",
)
@click.option(
    "--format",
    "-f",
    "template",
    help="How a record is written: %t topic, %p partition, %o offset, %T time in ms, %D as a date,"
    " %k key, %v value, %K %V their sizes, %h headers, %% itself; escapes such as \\n are known.",
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON line per record.")
@click.option("--read-uncommitted", is_flag=True, help="Show records of open transactions too.")
@property_option
def command(
    topic: str,
    bootstrap: str,
    command_config: str | None,
    from_beginning: bool,
    start: Start | None,
    from_time: int | None,
    count: int | None,
    exit_at_end: bool,
    timeout: float | None,
    partitions: tuple[int, ...],
    group: str | None,
    template: str | None,
    as_json: bool,
    read_uncommitted: bool,
    properties: tuple[tuple[str, str], ...],
) -> int:
    """Write the records of TOPIC to standard output, new ones as they come.

    \b
    headrace consume orders --from-beginning --count 10
    headrace consume orders --from-time 15m --format '%D %k: %v\\n'
    headrace consume orders --offset -100 --exit-at-end --json
    headrace consume orders --group billing --from-beginning

    With --group, --from-beginning counts only where the group has committed nothing yet.
    """
    writer = record_writer(template, as_json=as_json)
    begin = _start(from_beginning=from_beginning, start=start, from_time=from_time)
    if group is not None and (partitions or start is not None or from_time is not None):
        raise click.UsageError("a --group chooses partitions and offsets itself")
    settings = {
        "isolation.level": "read_uncommitted" if read_uncommitted else "read_committed",
        **client_properties(command_config, properties),
    }
    check_reachable(bootstrap, settings)
    reader = _reader(bootstrap, topic, settings, group, begin)
    try:
        if isinstance(reader, GroupReader):
            reader.join()
        else:
            reader.assign(begin, _wanted(reader, partitions))
        limits = Limits(count=count, exit_at_end=exit_at_end, idle_s=timeout)
        return copy(reader, writer, limits)
    finally:
        reader.close()


def _reader(
    bootstrap: str, topic: str, settings: dict[str, str], group: str | None, begin: Start
) -> RecordReader:
    if group is None:
        return RecordReader(bootstrap, topic, settings)
    return GroupReader(bootstrap, topic, group, settings, from_beginning=begin.from_beginning)


def copy(reader: RecordReader, writer: Writer, limits: Limits) -> int:
    """Write records until a limit is met; 1 when fewer came than were asked for."""
    out = sys.stdout.buffer
    progress = _progress()
    outage = OutageNotice()
    started = last = time.monotonic()
    written = 0
    while limits.count is None or written < limits.count:
        left = BATCH_RECORDS_MAX if limits.count is None else limits.count - written
        records = reader.read(min(left, BATCH_RECORDS_MAX))
        now = time.monotonic()
        if records:
            last = now
            out.write(writer(records))
            written += len(records)
            if len(records) < BATCH_RECORDS_MAX:
                out.flush()
                reader.commit()
        elif limits.are_met(is_at_end=reader.is_at_end, silent_s=now - last):
            break
        outage.look(reader.outage, "waiting for one", progress.clear)
        if progress.is_due():
            progress.show(rate_text(written, now - started))
    progress.clear()
    out.flush()
    reader.commit()
    if limits.count is not None and written < limits.count:
        warn(f"{written:,} of {limits.count:,} records were there")
        return 1
    return 0


def record_writer(template: str | None, *, as_json: bool) -> Writer:
    """A function that turns a list of records into the bytes to print."""
    if template is not None and as_json:
        raise click.UsageError("--format and --json exclude each other")
    if as_json:
        return lambda messages: _formatted(messages, lambda record: record_json(record) + b"\n")
    if template is not None:
        format_record = formatter(template)
        return lambda messages: _formatted(messages, format_record)
    return _values


def _values(messages: Sequence[Message]) -> bytes:
    """A value a line, the usual case and the quickest."""
    return b"\n".join([message.value() or b"" for message in messages]) + b"\n"


def _formatted(messages: Sequence[Message], format_record: Formatter) -> bytes:
    return b"".join([format_record(message) for message in messages])


def _start(*, from_beginning: bool, start: Start | None, from_time: int | None) -> Start:
    given = [from_beginning, start is not None, from_time is not None]
    if sum(given) > 1:
        raise click.UsageError("give only one of --from-beginning, --offset and --from-time")
    if from_time is not None:
        return Start(timestamp_ms=from_time)
    return start if start is not None else Start(from_beginning=from_beginning)


def _wanted(reader: RecordReader, partitions: Sequence[int]) -> list[int]:
    present = reader.partitions()
    check_partitions(reader.topic, partitions, present)
    return sorted(set(partitions)) or present


def _progress() -> ProgressLine:
    """On a terminal the records themselves are the progress."""
    progress = ProgressLine()
    progress.is_shown = progress.is_shown and not sys.stdout.isatty()
    return progress
