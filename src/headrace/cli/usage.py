"""`headrace usage`: requests, bytes and request time by user and client id, by window of time."""

from datetime import datetime
from typing import Any

import click
import msgspec

from headrace.cli.options import json_option
from headrace.cli.output import print_json, print_line, print_table, size_text
from headrace.client.usage import added_up, by_part, read_usage
from headrace.quotas.usage_windows import HOUR_MS, MINUTE_MS, UsageWindow

_COLUMNS = ("from", "user", "client id", "requests", "in", "out", "request time")


@click.command("usage", short_help="Show who uses the brokers: requests, bytes and time.")
@click.option(
    "--metrics",
    "addresses",
    multiple=True,
    default=("127.0.0.1:9644",),
    show_default=True,
    metavar="HOST:PORT",
    help="The metrics port of a node; repeat it for each node of a cluster.",
)
@click.option(
    "--by",
    "part",
    type=click.Choice(["client", "user", "client-id"]),
    default="client",
    show_default=True,
    help="Rows: each user with each client id, or only one of both.",
)
@click.option("--hours", is_flag=True, help="Windows of an hour instead of a minute.")
@click.option(
    "--last",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Number of windows, the present one included.",
)
@json_option
def command(addresses: tuple[str, ...], part: str, hours: bool, last: int, as_json: bool) -> None:
    """Show the usage of the brokers by user and client id, in windows of time.

    \b
    headrace usage
    headrace usage --hours --last 24 --by user
    headrace usage --metrics node1:9644 --metrics node2:9644 --metrics node3:9644

    Nodes keep 60 minutes and 48 hours in memory, from their start on. The usage of several nodes is
    added up. Bytes are those of the connections. Request time is the time of a broker's event loop,
    in which 60 s in a minute are all of it.
    """
    pages = [read_usage(address) for address in addresses]
    windows = added_up(
        [page.hours if hours else page.minutes for page in pages],
        HOUR_MS if hours else MINUTE_MS,
    )[-last:]
    if part != "client":
        windows = by_part(windows, part.replace("-", "_"))
    if as_json:
        print_json([msgspec.to_builtins(window) for window in windows])
        return
    rows = [row for window in windows for row in table_rows(window)]
    if not rows:
        print_line("no requests in these windows")
        return
    print_table(_COLUMNS, rows)


def table_rows(window: UsageWindow) -> list[tuple[Any, ...]]:
    """Return the rows of a window, with its time in local format."""
    begin = datetime.fromtimestamp(window.begin_ms / 1000).strftime("%d %b %H:%M")
    return [
        (
            begin,
            row.user,
            row.client_id,
            row.requests,
            size_text(row.bytes_in),
            size_text(row.bytes_out),
            f"{row.request_seconds:.3f} s",
        )
        for row in window.rows
    ]
