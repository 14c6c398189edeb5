"""`headrace transactions`: which transactions there are, and an end for those that hang."""

import time
from typing import Any

import click

from headrace.cli.options import admin, cluster_options, duration_ms, json_option
from headrace.cli.output import print_json, print_line, print_table, report, time_text
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
    """List and describe transactions, and abort what hangs."""


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
    help="Only those begun longer ago than this, like 90s or 15m.",
)
@click.option("--pattern", metavar="REGEX", help="Only transactional ids that match as a whole.")
@cluster_options
@json_option
def list_(
    states: tuple[str, ...],
    longer_than: int | None,
    pattern: str | None,
    as_json: bool,
    **cluster: Any,
) -> None:
    """List the transactional ids that the brokers coordinate.

    \b
    headrace transactions list
    headrace transactions list --state Ongoing --longer-than 15m
    """
    with admin(**cluster) as client:
        found = client.transactions.find(states, longer_than_ms=longer_than, pattern=pattern)
    if as_json:
        print_json(found)
        return
    print_table(
        ("transactional id", "coordinator", "producer id", "state"),
        [(one.transactional_id, one.coordinator, one.producer_id, one.state) for one in found],
    )


@command.command("describe")
@click.argument("transactional_ids", nargs=-1, required=True, metavar="ID...")
@cluster_options
@json_option
def describe(transactional_ids: tuple[str, ...], as_json: bool, **cluster: Any) -> None:
    """Describe transactional ids: state, producer, and where the transaction writes."""
    with admin(**cluster) as client:
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
    "--start-offset", type=click.IntRange(min=0), help="Where the hanging transaction begins."
)
@cluster_options
@json_option
def abort(
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    as_json: bool,
    **cluster: Any,
) -> int:
    """Abort a transaction, by its id or by where it hangs.

    By its id, the coordinator aborts what is open and its producer is locked out. A transaction
    that no coordinator knows holds up read_committed consumers of a partition for ever; give the
    partition and the offset where it begins (see: headrace records producers TOPIC).

    \b
    headrace transactions abort billing-7
    headrace transactions abort --topic orders --partition 3 --start-offset 4711
    """
    place = (topic, partition, start_offset)
    if (transactional_id is None) == (place == (None, None, None)):
        raise click.UsageError(
            "give a transactional id, or --topic, --partition and --start-offset"
        )
    with admin(**cluster) as client:
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
