"""`headrace records`: show one record with its batch, list producers, delete old records."""

from typing import Any

import click
import msgspec

from headrace.cli.batch_text import BatchEntry, describe_batch
from headrace.cli.options import (
    ClusterOptions,
    admin_options,
    confirm,
    partitions_option,
    yes_option,
)
from headrace.cli.output import print_json, print_line, print_rows, print_table, time_text
from headrace.client.partitions import HIGH_WATERMARK
from headrace.errors import HeadraceError
from headrace.protocol.batches import read_header


class RecordInBatch(msgspec.Struct, frozen=True):
    """A record and its batch."""

    topic: str
    partition: int
    record: Any
    batch: BatchEntry


@click.group("records", short_help="Show one record, list producers, delete records.")
def command() -> None:
    """Show one record with its batch, list producers, delete records before an offset."""


@command.command("show")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@admin_options
def show(topic: str, partition: int, offset: int, as_json: bool, cluster: ClusterOptions) -> None:
    """Show the record at OFFSET of PARTITION and the batch that carries it.

    If compaction has removed the record, the next one is shown.
    """
    with cluster.admin() as client:
        content = client.partitions.batch_at(topic, partition, offset)
    found = find_record(topic, partition, offset, content)
    if as_json:
        print_json(found)
        return
    print_line(f"{topic}-{partition}")
    print_line(found.record.text())
    print_line(f"  batch: {found.batch.text()}")


@command.command("delete")
@click.argument("topic")
@click.option(
    "--before",
    required=True,
    metavar="OFFSET",
    help="Delete records below this offset; `latest` deletes all current records.",
)
@partitions_option("In this partition; may be repeated.")
@click.option("--all-partitions", is_flag=True, help="In every partition.")
@yes_option
@admin_options
def delete(
    topic: str,
    before: str,
    partitions: tuple[int, ...],
    all_partitions: bool,
    yes: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Delete the records of TOPIC below an offset, which becomes the new log start offset.

    \b
    headrace records delete orders --partition 0 --before 1000
    """
    if bool(partitions) == all_partitions:
        raise click.UsageError("give --partition or --all-partitions")
    offset = parse_before(before)
    where = "all partitions" if all_partitions else f"partition {', '.join(map(str, partitions))}"
    confirm(f"Delete records of {topic} before {before} in {where}?", yes=yes)
    with cluster.admin() as client:
        wanted = client.partitions.of(topic) if all_partitions else list(partitions)
        starts = client.partitions.delete_records_before(topic, dict.fromkeys(wanted, offset))
    if as_json:
        print_json([{"partition": part, "earliest": start} for part, start in starts.items()])
        return
    print_table(("partition", "starts at"), list(starts.items()))


@command.command("producers")
@click.argument("topic")
@partitions_option("Only this partition; may be repeated.")
@admin_options
def producers(
    topic: str, partitions: tuple[int, ...], as_json: bool, cluster: ClusterOptions
) -> None:
    """Show the idempotent and transactional producers that partitions remember."""
    with cluster.admin() as client:
        found = client.partitions.producers(topic, sorted(set(partitions)) or None)
    print_rows(
        found,
        {
            "partition": lambda one: one.partition,
            "producer": lambda one: one.producer_id,
            "epoch": lambda one: one.producer_epoch,
            "last sequence": lambda one: one.last_sequence,
            "last record": lambda one: time_text(one.last_timestamp),
            "transaction from": lambda one: one.transaction_start_offset,
        },
        as_json=as_json,
    )


def parse_before(text: str) -> int:
    """Parse an offset for the wire, where -1 means the high watermark."""
    if text == "latest":
        return HIGH_WATERMARK
    if not text.isdigit():
        raise click.BadParameter(f"{text!r} is not an offset; give a number or `latest`")
    return int(text)


def find_record(topic: str, partition: int, offset: int, content: bytes) -> RecordInBatch:
    """Return the record at an offset, or the next one of its batch."""
    batch = describe_batch(content, 0, read_header(content), show_records=True)
    if batch.records is None:
        raise HeadraceError(f"{topic}-{partition} offset {offset}: {batch.problem}")
    later = [record for record in batch.records if record.offset >= offset]
    if not later:
        raise HeadraceError(f"{topic}-{partition} has no record left at offset {offset}")
    batch.records = None
    return RecordInBatch(topic, partition, later[0], batch)
