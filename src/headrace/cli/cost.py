"""`headrace cost`: monthly and annual costs of clusters, side by side."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace.cli.costs import Cost, Prices, costs, needs, only, with_headrace
from headrace.cli.options import ClusterOptions, admin_options
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.size_options import (
    has_load_options,
    load_of,
    load_options,
    machine_options,
    measure,
)
from headrace.cli.sizing import Load, Machine, Size, size
from headrace.errors import InvalidConfig


@click.command("cost", short_help="Calculate what clusters cost per month and year.")
@click.option(
    "--prices",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A price file in TOML; the one that ships with Headrace if unset.",
)
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    help="Show this scenario of the file only; may be repeated.",
)
@load_options
@machine_options
@admin_options
def command(
    prices: Path | None,
    scenarios: tuple[str, ...],
    topic: str | None,
    machine: Machine,
    as_json: bool,
    cluster: ClusterOptions,
    **load: Any,
) -> None:
    """Calculate monthly and annual costs of the scenarios of a price file, side by side.

    \b
    headrace cost
    headrace cost --prices mine.toml --scenario MSK --rate 50000 --record-size 1KB

    With a load, as for `headrace size`, it shows the machines that Headrace needs. They are
    another scenario if the file has prices in [headrace].
    """
    table = only(read_prices(prices), scenarios)
    given = {name: value for name, value in load.items() if value is not None}
    load_and_size = None
    if topic or has_load_options():
        average = load_of(measure(topic, cluster, given) if topic else given)
        load_and_size = average, size(average, machine)
        table = with_headrace(table, *load_and_size)
    found = costs(table)
    if as_json:
        print_json(_document(table, found, load_and_size))
    else:
        _print(table, found, load_and_size)


def read_prices(path: Path | None) -> Prices:
    """Read a price file; an invalid one is reported with its name."""
    resource = files("headrace.cli").joinpath("prices.toml") if path is None else path
    try:
        return msgspec.toml.decode(resource.read_bytes(), type=Prices)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: {error}") from None


def _document(
    table: Prices, found: list[Cost], load_and_size: tuple[Load, Size] | None
) -> dict[str, Any]:
    document: dict[str, Any] = {"currency": table.currency, "scenarios": found}
    if load_and_size is not None:
        document |= {"load": load_and_size[0], "size": load_and_size[1]}
    return document


def _print(table: Prices, found: list[Cost], load_and_size: tuple[Load, Size] | None) -> None:
    rows: list[tuple[str, list[float | None]]] = [
        (f"{table.currency} a month", [cost.month for cost in found]),
        (f"{table.currency} a year", [cost.year for cost in found]),
        ("stated, a month", [cost.stated_month for cost in found]),
        ("stated, a year", [cost.stated_year for cost in found]),
    ]
    print_table(
        ("", *(cost.name for cost in found)),
        [(name, *map(_amount, amounts)) for name, amounts in rows if any(amounts)],
    )
    print_line("")
    print_table(
        ("scenario", "item", "a month", "formula"),
        [
            (cost.name, line.name, _amount(line.month), line.formula)
            for cost in found
            for line in cost.lines
        ],
    )
    for line in (f"{cost.name}: {text}" for cost in found for text in cost.discrepancies):
        print_line("")
        print_line(line)
    if load_and_size is not None:
        print_line("")
        print_line(needs(*load_and_size))
        if table.headrace is None:
            print_line("The price file has no [headrace] table with the price of a machine.")


def _amount(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:,.2f}"
