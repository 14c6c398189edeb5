"""Sizes of clusters against sums done by hand."""

import pytest

from headrace.cli.sizing import GB, MB, Load, Machine, size
from headrace.errors import InvalidConfig

LOAD = Load(records_per_s=10_000, record_bytes=1_000, retention_h=100, consumers=2, peak=2.0)


def test_every_step_follows_its_formula() -> None:
    """OPS-5: disk is rate by retention by replicas, memory is half a minute of writes."""
    steps = {step.name: step.value for step in size(LOAD, Machine()).steps}
    assert steps["write rate, average"] == pytest.approx(10)
    assert steps["write rate, peak"] == pytest.approx(20)
    assert steps["network in"] == pytest.approx(20 * 3)
    assert steps["network out"] == pytest.approx(20 * (2 + 2))
    assert steps["disk"] == pytest.approx(10e6 * 100 * 3600 * 3 * 1.02 / 1e9)
    assert steps["page cache"] == pytest.approx(60e6 * 30 / 1e9)


def test_the_scarcest_resource_decides_the_brokers() -> None:
    result = size(LOAD, Machine(drives=2, drive_bytes=1_000 * GB))
    machines = {need.resource: need.machines for need in result.needs}
    assert machines["disk space"] == 8  # 11,016 GB on 2,000 GB of which 70 % are used.
    assert machines["network out"] == 1
    assert (result.machines, result.bound_by) == (8, "disk space")


def test_a_slow_network_decides_the_brokers() -> None:
    result = size(LOAD, Machine(network_bytes_per_s=10 * MB))
    assert (result.machines, result.bound_by) == (12, "network out")


def test_there_are_never_fewer_brokers_than_replicas() -> None:
    tiny = Load(records_per_s=1, record_bytes=100)
    result = size(tiny, Machine())
    assert (result.machines, result.bound_by) == (3, "replicas")


def test_growth_is_compounded() -> None:
    grown = Load(records_per_s=10_000, record_bytes=1_000, growth_percent=50, years=2)
    steps = {step.name: step.value for step in size(grown, Machine()).steps}
    assert steps["growth"] == pytest.approx(2.25)
    assert steps["write rate, average"] == pytest.approx(22.5)


def test_every_member_has_a_partition_and_brokers_have_equally_many() -> None:
    load = Load(records_per_s=10_000, record_bytes=1_000, retention_h=1, members=10)
    result = size(load, Machine())
    assert (result.brokers, result.partitions) == (3, 12)


def test_a_machine_has_several_brokers_if_one_core_each_is_not_enough() -> None:
    machine = Machine(cores=64, drives=24, network_bytes_per_s=12_500 * MB, memory_bytes=512 * GB)
    load = Load(records_per_s=1_000_000, record_bytes=1_000, retention_h=1)
    result = size(load, machine)
    cpu = next(step.value for step in result.steps if step.name == "CPU")
    assert cpu == pytest.approx(6 * 1.03 + 6 * 0.5 + 2 * 0.13)
    assert (result.machines, result.brokers) == (4, 14)  # 9.4 cores are 70 % of 13.5.


def test_brokers_and_partitions_have_formulas() -> None:
    """OPS-5"""
    load = Load(records_per_s=10_000, record_bytes=1_000, retention_h=1, members=10)
    result = size(load, Machine())
    assert result.brokers_formula == (
        "the larger of 3 machines and 1 (0.1 / (1 core x 70%)), as a broker uses one core"
    )
    assert result.partitions_formula == (
        "the larger of 2 (20.0 / 10 MB/s) and 10 members, equally many on all brokers"
    )


@pytest.mark.parametrize(
    "load",
    [
        Load(records_per_s=1, record_bytes=1, growth_percent=1_000, years=100_000),
        Load(records_per_s=1e308, record_bytes=1_000),
        Load(records_per_s=1e290, record_bytes=1_000),
    ],
)
def test_loads_beyond_any_cluster_are_rejected(load: Load) -> None:
    with pytest.raises(InvalidConfig, match="needs more than 100,000 machines"):
        size(load, Machine())


@pytest.mark.parametrize(
    ("load", "machine", "reason"),
    [
        (Load(records_per_s=0, record_bytes=1), Machine(), "records per second"),
        (Load(records_per_s=float("inf"), record_bytes=1), Machine(), "records per second"),
        (Load(records_per_s=float("nan"), record_bytes=1), Machine(), "records per second"),
        (Load(records_per_s=1, record_bytes=-1), Machine(), "record size"),
        (Load(records_per_s=1, record_bytes=1, headroom_percent=100), Machine(), "headroom"),
        (Load(records_per_s=1, record_bytes=1, peak=0.5), Machine(), "peak"),
        (Load(records_per_s=1, record_bytes=1, peak=float("nan")), Machine(), "peak"),
        (Load(records_per_s=1, record_bytes=1, years=float("inf")), Machine(), "years"),
        (Load(records_per_s=1, record_bytes=1, growth_percent=-100), Machine(), "growth"),
        (Load(records_per_s=1, record_bytes=1, consumers=-1), Machine(), "consumers"),
        (Load(records_per_s=1, record_bytes=1), Machine(memory_bytes=MB), "memory"),
        (Load(records_per_s=1, record_bytes=1), Machine(drives=0), "drives"),
    ],
)
def test_impossible_input_is_rejected(load: Load, machine: Machine, reason: str) -> None:
    with pytest.raises(InvalidConfig, match=reason):
        size(load, machine)
