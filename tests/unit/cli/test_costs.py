"""Costs of clusters against sums done by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.cost import read_prices
from headrace.cli.costs import (
    Cost,
    Item,
    OwnPrices,
    Prices,
    Scenario,
    Stated,
    costs,
    needs,
    only,
    with_headrace,
)
from headrace.cli.main import main
from headrace.cli.sizing import Load, Machine, size
from headrace.errors import InvalidConfig

LOAD = Load(records_per_s=10_000, record_bytes=1_000, retention_h=100)


def prices(*items: Item, stated: Stated = Stated(), **more: Any) -> Prices:  # noqa: B008
    return Prices("BRL", (Scenario("one", items, stated),), rates={"USD": 5.0}, **more)


def cost_of(*items: Item, stated: Stated = Stated(), **more: Any) -> Cost:  # noqa: B008
    return costs(prices(*items, stated=stated, **more))[0]


def test_the_shipped_file_has_the_four_stated_costs() -> None:
    """CLD-7"""
    found = {cost.name: (cost.month, cost.stated_year) for cost in costs(read_prices(None))}
    assert found == {
        "Confluent Cloud": (6571, 78852),
        "HDInsight": (4140, 49788),
        "MSK": (3394, 38328),
        "Strimzi": (1426, 17111),
    }


def test_stated_years_that_are_not_twelve_months_are_reported() -> None:
    """CLD-7"""
    found = {cost.name: cost.discrepancies for cost in costs(read_prices(None))}
    assert found["Confluent Cloud"] == ()
    assert found["MSK"] == (
        "the source states 38,328.00 a year, but 12 x 3,394.00 is 40,728.00 (-2,400.00)",
    )
    assert [len(found[name]) for name in ("HDInsight", "Strimzi")] == [1, 1]


def test_instances_storage_hours_and_exchange_rates_are_multiplied() -> None:
    """CLD-7"""
    cost = cost_of(
        Item("instances", 0.2, "hour", 3, currency="USD"),
        Item("storage", 0.1, "month", 3, gb=500),
        Item("support", 1_200, "year"),
    )
    assert [line.month for line in cost.lines] == pytest.approx([3 * 0.2 * 730 * 5, 150, 100])
    assert cost.lines[0].formula == "3 x 0.2 USD x 730 h x 5 BRL/USD"
    assert cost.month == pytest.approx(2_440)
    assert cost.year == pytest.approx(12 * 2_440)


def test_a_stated_month_that_its_items_do_not_reach_is_reported() -> None:
    """CLD-7"""
    items = Item("instances", 100, count=3), Item("storage", 50)
    assert cost_of(*items, stated=Stated(month=350)).discrepancies == ()
    assert cost_of(*items, stated=Stated(month=340)).discrepancies == (
        "the source states 340.00 a month, but its items add up to 350.00 (-10.00)",
    )


def test_a_load_adds_the_machines_that_headrace_needs() -> None:
    """CLD-7: three machines and their disks, as `headrace size` calculates them."""
    result = size(LOAD, Machine())
    own = prices(Item("a", 1), headrace=OwnPrices(machine=100, gb_month=0.1))
    added = costs(with_headrace(own, LOAD, result))[-1]
    disk_gb = next(step.value for step in result.steps if step.name == "disk")
    assert [line.month for line in added.lines] == pytest.approx(
        [100 * result.machines, round(disk_gb / 0.7, 1) * 0.1]
    )
    assert f"{result.machines} machines" in needs(LOAD, result)


def test_a_file_without_prices_of_machines_has_no_scenario_for_headrace() -> None:
    without = prices(Item("a", 1))
    assert with_headrace(without, LOAD, size(LOAD, Machine())) is without


def test_scenarios_are_chosen_by_name_in_the_given_order() -> None:
    found = only(read_prices(None), ["msk", "Strimzi"])
    assert [scenario.name for scenario in found.scenarios] == ["MSK", "Strimzi"]
    assert only(read_prices(None), ["msk", "MSK"]) == only(read_prices(None), ["MSK"])
    with pytest.raises(InvalidConfig, match="no scenario 'Kinesis'; the price file has Confluent"):
        only(read_prices(None), ["Kinesis"])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (prices(Item("a", 1, currency="EUR")), "one, a: there is no rate for EUR"),
        (prices(Item("a", -1)), "price must be a number from 0, not -1"),
        (prices(Item("a", float("nan"))), "price must be a number from 0, not nan"),
        (prices(Item("a", 1, count=float("inf"))), "count must be a number from 0"),
        (prices(Item("a", 1), stated=Stated(year=float("nan"))), "stated.year must be a number"),
        (prices(Item("a", 1), hours_per_month=0), "hours_per_month must be greater than 0"),
        (prices(), "one has no items"),
        (Prices("BRL", ()), "no scenarios"),
        (Prices("BRL", (Scenario("A", ()), Scenario("a", ()))), "two scenarios are named 'a'"),
        (Prices("BRL", (), rates={"USD": -5.0}), "no scenarios"),
    ],
)
def test_invalid_prices_are_rejected(bad: Prices, reason: str) -> None:
    with pytest.raises(InvalidConfig, match=reason):
        costs(bad)


@pytest.mark.parametrize(
    "text", ["currency = 1", "currency = 'BRL'", "not toml", "currency='BRL'\nscenarios=[]\nx=1"]
)
def test_an_invalid_price_file_is_reported_with_its_name(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert main(["cost", "--prices", str(file)]) == 1
    assert "mine.toml: " in capsys.readouterr().err


def test_the_command_prints_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """CLD-7"""
    assert (
        main(["cost", "--scenario", "MSK", "--rate", "5000", "--record-size", "1KB", "--json"]) == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert [one["month"] for one in document["scenarios"]] == [3394]
    assert document["size"]["machines"] == 3


def test_the_command_shows_scenarios_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLD-7: the example of the commands page."""
    monkeypatch.setenv("COLUMNS", "200")
    page = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"
    file = tmp_path / "mine.toml"
    file.write_text(page.read_text().partition("```toml\ncurrency")[2].partition("```")[0])
    file.write_text("currency" + file.read_text())
    assert main(["cost", "--prices", str(file), "--rate", "5000", "--record-size", "1KB"]) == 0
    shown = capsys.readouterr().out
    for row in page.read_text().partition("headrace cost --prices")[2].splitlines():
        if row.startswith(("BRL", "Managed", "Headrace")):
            assert " ".join(row.split()) in " ".join(shown.split())


def test_half_a_load_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--retention", "3d"]) == 2
    assert "--rate is missing" in capsys.readouterr().err


def test_a_load_without_prices_of_machines_shows_how_to_add_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cost", "--rate", "5000", "--record-size", "1KB"]) == 0
    assert "no [headrace] table" in capsys.readouterr().out
