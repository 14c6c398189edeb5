"""`headrace transactions`: list and describe transactions, abort hanging ones."""

import time

import click

from headrace.cli.options import ClusterOptions, admin_options, duration_ms
from headrace.cli.output import print_json, print_line, print_rows, report, time_text
from headrace.client.transactions import DescribedTransaction

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
)


@click.group("transactions", short_help="List and describe transactions, abort hanging ones.")
def command() -> None:
    """List and describe transactions, and abort hanging ones."""


@command.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only transactions in this state; may be repeated.",
)
@click.option(
    "--longer-than",
    type=duration_ms,
    metavar="DURATION",
    help="Only those started longer ago than this, such as 90s or 15m.",
)
@click.option(
    "--pattern", metavar="REGEX", help="Only transactional ids that match this pattern as a whole."
)
@admin_options
def list_(
    states: tuple[str, ...],
    longer_than: int | None,
    pattern: str | None,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """List the transactional ids that the brokers coordinate.

    \b
    headrace transactions list
    headrace transactions list --state Ongoing --longer-than 15m
    """
    with cluster.admin() as client:
        found = client.transactions.find(states, longer_than_ms=longer_than, pattern=pattern)
    print_rows(
        found,
        {
            "transactional id": lambda one: one.transactional_id,
            "coordinator": lambda one: one.coordinator,
            "producer id": lambda one: one.producer_id,
            "state": lambda one: one.state,
        },
        as_json=as_json,
    )


@command.command("describe")
@click.argument("transactional_ids", nargs=-1, required=True, metavar="ID...")
@admin_options
def describe(transactional_ids: tuple[str, ...], as_json: bool, cluster: ClusterOptions) -> None:
    """Describe transactional ids: state, producer, and the partitions written to."""
    with cluster.admin() as client:
        found = [client.transactions.describe(name) for name in transactional_ids]
    if as_json:
        print_json(found)
        return
    now_ms = time.time_ns() // 1_000_000
    for one in found:
        _print(one, now_ms)


@command.command("abort")
@click.argument("transactional_id", required=False, metavar="[ID]")
@click.option("--topic", "-t", help="Abort in one partition of this topic instead.")
@click.option("--partition", "-p", type=click.IntRange(min=0), help="The partition.")
@click.option(
    "--start-offset", type=click.IntRange(min=0), help="First offset of the hanging transaction."
)
@admin_options
def abort(
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Abort a transaction, by its id or by its position in a partition.

    Given an id, the coordinator aborts the open transaction and fences its producer. A transaction
    unknown to every coordinator blocks read_committed consumers of a partition forever: give the
    partition and the transaction's first offset (see: headrace records producers TOPIC).

    \b
    headrace transactions abort billing-7
    headrace transactions abort --topic orders --partition 3 --start-offset 4711
    """
    place = (topic, partition, start_offset)
    if (transactional_id is None) == (place == (None, None, None)):
        raise click.UsageError(
            "give a transactional id, or --topic, --partition and --start-offset"
        )
    with cluster.admin() as client:
        if transactional_id is not None:
            outcome = client.transactions.terminate(transactional_id)
        else:
            if topic is None or partition is None or start_offset is None:
                raise click.UsageError("--topic, --partition and --start-offset go together")
            outcome = client.transactions.abort_at(topic, partition, start_offset)
    return report([outcome], done="aborted", as_json=as_json)


def _print(one: DescribedTransaction, now_ms: int) -> None:
    print_line(f"{one.transactional_id}: {one.state}")
    print_line(f"  producer    {one.producer_id} in epoch {one.producer_epoch}")
    print_line(f"  coordinator {one.coordinator}")
    print_line(f"  timeout     {one.timeout_ms} ms")
    if one.start_ms is not None:
        age = f", {now_ms - one.start_ms} ms ago" if one.state == "Ongoing" else ""
        print_line(f"  begun       {time_text(one.start_ms)}{age}")
    for topic in one.topics:
        print_line(f"  writes to   {topic.topic} {', '.join(map(str, topic.partitions))}")
