"""Costs of clusters from price files: sums without a command line around them.

A price file has scenarios, each with items: a count of things with a price per hour, month or
year. A scenario may also have the sums that its source states. Stated sums that do not agree with
each other or with the items are reported, never corrected.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Literal

import msgspec

from headrace.cli.sizing import Load, Size
from headrace.errors import InvalidConfig

MONTHS = 12
_TOLERANCE = 0.005
"""Half of the smallest unit that is shown."""

Period = Literal["hour", "month", "year"]


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number of equal things; `gb` makes the price one per gigabyte of each."""

    name: str
    price: float
    per: Period = "month"
    count: float = 1
    gb: float | None = None
    currency: str = ""


class Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sums that the source of a scenario states, in the currency of the file."""

    month: float | None = None
    year: float | None = None


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to run a cluster, and its prices."""

    name: str
    items: tuple[Item, ...]
    stated: Stated = Stated()


class OwnPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a machine for Headrace, and of a gigabyte of its storage per month."""

    machine: float
    per: Period = "month"
    gb_month: float = 0.0
    currency: str = ""


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A price file."""

    currency: str
    scenarios: tuple[Scenario, ...]
    hours_per_month: float = 730
    rates: dict[str, float] = {}
    """Price of one unit of another currency in the currency of the file."""
    headrace: OwnPrices | None = None


class Line(msgspec.Struct, frozen=True):
    """The monthly cost of an item, and the formula with its numbers."""

    name: str
    month: float
    formula: str


class Cost(msgspec.Struct, frozen=True):
    """The cost of a scenario, as calculated and as stated."""

    name: str
    lines: tuple[Line, ...]
    month: float
    year: float
    stated_month: float | None
    stated_year: float | None
    discrepancies: tuple[str, ...]


def costs(prices: Prices) -> list[Cost]:
    """Calculate all scenarios; raises `InvalidConfig` for invalid prices."""
    _check(prices)
    return [_cost(scenario, prices) for scenario in prices.scenarios]


def only(prices: Prices, names: Sequence[str]) -> Prices:
    """Keep the scenarios of these names, in this order; without names keep all."""
    found = {scenario.name.lower(): scenario for scenario in prices.scenarios}
    for name in names:
        if name.lower() not in found:
            known = ", ".join(scenario.name for scenario in prices.scenarios)
            raise InvalidConfig(f"there is no scenario {name!r}; the price file has {known}")
    chosen = tuple(found[name] for name in dict.fromkeys(map(str.lower, names)))
    return msgspec.structs.replace(prices, scenarios=chosen or prices.scenarios)


def with_headrace(prices: Prices, load: Load, result: Size) -> Prices:
    """Add a scenario for Headrace on own machines, as many as the load needs."""
    own = prices.headrace
    if own is None:
        return prices
    disk_gb = next(step.value for step in result.steps if step.name == "disk")
    usable = 1 - load.headroom_percent / 100
    items = [Item("machines", own.machine, own.per, result.machines, currency=own.currency)]
    if own.gb_month:
        gb = round(disk_gb / usable, 1)
        items.append(Item("storage", own.gb_month, "month", 1, gb, own.currency))
    scenario = Scenario("Headrace", tuple(items))
    return msgspec.structs.replace(prices, scenarios=(*prices.scenarios, scenario))


def needs(load: Load, result: Size) -> str:
    """Return what a load needs on Headrace, in one line."""
    disk_gb = next(step.value for step in result.steps if step.name == "disk")
    return (
        f"{load.records_per_s:g} records/s of {load.record_bytes:g} B need"
        f" {_counted('machine', result.machines)} (bound by {result.bound_by}),"
        f" {_counted('partition', result.partitions)} and {disk_gb:,.0f} GB of disk, without"
        f" {load.headroom_percent:g} % headroom"
    )


def _counted(name: str, number: int) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _cost(scenario: Scenario, prices: Prices) -> Cost:
    lines = tuple(_line(item, prices) for item in scenario.items)
    month = sum(line.month for line in lines)
    stated = scenario.stated
    return Cost(
        scenario.name,
        lines,
        month,
        month * MONTHS,
        stated.month,
        stated.year,
        tuple(_discrepancies(month, stated)),
    )


def _line(item: Item, prices: Prices) -> Line:
    currency = item.currency or prices.currency
    factor = 1.0 if currency == prices.currency else prices.rates[currency]
    month, formula = item.price * item.count, f"{item.price:,.6g} {currency}"
    if item.count != 1:
        formula = f"{item.count:g} x {formula}"
    if item.gb is not None:
        month, formula = month * item.gb, f"{formula} x {item.gb:,g} GB"
    match item.per:
        case "hour":
            month *= prices.hours_per_month
            formula += f" x {prices.hours_per_month:g} h"
        case "year":
            month, formula = month / MONTHS, f"{formula} / {MONTHS} months"
        case "month":
            pass
    if currency != prices.currency:
        month *= factor
        formula += f" x {factor:g} {prices.currency}/{currency}"
    return Line(item.name, month, formula)


def _discrepancies(month: float, stated: Stated) -> Iterator[str]:
    if stated.month is not None and abs(stated.month - month) > _TOLERANCE:
        yield (
            f"the source states {stated.month:,.2f} a month, but its items add up to {month:,.2f}"
            f" ({stated.month - month:+,.2f})"
        )
    base = month if stated.month is None else stated.month
    if stated.year is not None and abs(stated.year - base * MONTHS) > _TOLERANCE:
        yield (
            f"the source states {stated.year:,.2f} a year, but {MONTHS} x {base:,.2f} is"
            f" {base * MONTHS:,.2f} ({stated.year - base * MONTHS:+,.2f})"
        )


def _check(prices: Prices) -> None:
    repeated = [
        name
        for name, count in Counter(one.name.lower() for one in prices.scenarios).items()
        if count > 1
    ]
    if repeated:
        raise InvalidConfig(f"two scenarios are named {repeated[0]!r}")
    if not prices.scenarios:
        raise InvalidConfig("there are no scenarios")
    _check_number("hours_per_month", prices.hours_per_month)
    for currency, rate in prices.rates.items():
        _check_number(f"the rate of {currency}", rate)
    for scenario in prices.scenarios:
        if not scenario.items:
            raise InvalidConfig(f"{scenario.name} has no items")
        for item in scenario.items:
            _check_item(scenario.name, item, prices)
        for sum_of, amount in msgspec.structs.asdict(scenario.stated).items():
            if amount is not None and not isfinite(amount):
                raise InvalidConfig(f"{scenario.name}: stated.{sum_of} must be a number")


def _check_item(scenario: str, item: Item, prices: Prices) -> None:
    for name, value in (("price", item.price), ("count", item.count), ("gb", item.gb or 0)):
        if not isfinite(value) or value < 0:
            raise InvalidConfig(
                f"{scenario}, {item.name}: {name} must be a number from 0, not {value:g}"
            )
    if item.currency and item.currency != prices.currency and item.currency not in prices.rates:
        raise InvalidConfig(
            f"{scenario}, {item.name}: there is no rate for {item.currency}; add it to [rates]"
        )


def _check_number(name: str, value: float) -> None:
    if not (isfinite(value) and value > 0):
        raise InvalidConfig(f"{name} must be greater than 0, not {value:g}")
