"""The resources of a cluster for a load: formulas without a command line around them.

Kafka's own rules of thumb: disk for the retention of all replicas, memory for half a minute of
writes, network for replicas and consumers. The CPU figures are those of `make bench`.
"""

from collections.abc import Iterator
from math import ceil, isfinite

import msgspec

from headrace.errors import InvalidConfig

MB, GB = 1_000_000, 1_000_000_000
HOUR_S = 3_600
DISK_OVERHEAD = 1.02
"""Indexes and batch headers on top of the records."""
MEMORY_S = 30
"""Seconds of writes that the page cache should hold, so that consumers near the end skip disks."""
BROKER_MEMORY_BYTES = 100 * MB
PARTITION_BYTES_PER_S = 10 * MB
"""A rate that one partition and one consumer sustain."""
CPU_S_PER_GB_IN, CPU_S_PER_GB_OUT, CPU_S_PER_MILLION_RECORDS = 1.03, 0.5, 0.13

_MACHINES_MAX = 100_000
_TOO_LARGE = f"the load at the end of the planned years needs more than {_MACHINES_MAX:,} machines"


class Machine(msgspec.Struct, frozen=True):
    """One server; the defaults are the usual baseline of Kafka's handbooks."""

    cores: int = 4
    drives: int = 6
    drive_bytes: int = 1_000 * GB
    drive_bytes_per_s: int = 100 * MB
    memory_bytes: int = 32 * GB
    network_bytes_per_s: int = 125 * MB


class Load(msgspec.Struct, frozen=True):
    """The average load today, and its growth."""

    records_per_s: float
    record_bytes: float
    retention_h: float = 168
    replication_factor: int = 3
    consumers: int = 1
    members: int = 1
    peak: float = 2.0
    growth_percent: float = 0.0
    years: float = 1.0
    headroom_percent: float = 30.0
    compression: float = 1.0


class Step(msgspec.Struct, frozen=True):
    """One line of the calculation: the value, and the formula with its numbers."""

    name: str
    value: float
    unit: str
    formula: str


class Need(msgspec.Struct, frozen=True):
    """The machines that one resource requires."""

    resource: str
    machines: int
    formula: str


class Size(msgspec.Struct, frozen=True):
    """The result: every step, the machines per resource, machines, brokers and partitions."""

    steps: tuple[Step, ...]
    needs: tuple[Need, ...]
    machines: int
    bound_by: str
    brokers: int
    brokers_formula: str
    partitions: int
    partitions_formula: str


def size(load: Load, machine: Machine) -> Size:
    """Calculate the cluster for a load; raises `InvalidConfig` for impossible input."""
    _check(load, machine)
    try:
        rates = _Rates(load)
        needs = tuple(_needs(load, machine, rates))
    except OverflowError:
        raise InvalidConfig(_TOO_LARGE) from None
    largest = max(needs, key=lambda need: need.machines)
    if largest.machines > _MACHINES_MAX:
        raise InvalidConfig(_TOO_LARGE)
    brokers, brokers_formula = _brokers(load, rates, largest.machines)
    return Size(
        tuple(_steps(load, rates)),
        needs,
        largest.machines,
        largest.resource,
        brokers,
        brokers_formula,
        *_partitions(load, rates, brokers),
    )


class _Rates:
    """Bytes per second of the whole cluster, at the end of the planned growth."""

    def __init__(self, load: Load) -> None:
        self.growth: float = (1 + load.growth_percent / 100) ** load.years
        self.records = load.records_per_s * self.growth
        self.average = self.records * load.record_bytes / load.compression
        self.peak = self.average * load.peak
        self.written = self.peak * load.replication_factor
        self.read = self.peak * (load.consumers + load.replication_factor - 1)
        self.disk = self.average * load.retention_h * HOUR_S * load.replication_factor
        self.disk *= DISK_OVERHEAD
        self.memory = self.written * MEMORY_S
        self.cpu = (
            self.written / GB * CPU_S_PER_GB_IN
            + self.read / GB * CPU_S_PER_GB_OUT
            + self.records * load.peak / 1e6 * CPU_S_PER_MILLION_RECORDS
        )


def _steps(load: Load, rates: _Rates) -> Iterator[Step]:
    factor, hours = load.replication_factor, load.retention_h
    yield Step(
        "growth",
        rates.growth,
        "times",
        f"(1 + {load.growth_percent:g} %) ^ {load.years:g} years",
    )
    yield Step(
        "write rate, average",
        rates.average / MB,
        "MB/s",
        f"{load.records_per_s:g} records/s x {rates.growth:.3g} growth x {load.record_bytes:g} B"
        f" / {load.compression:g} compression",
    )
    yield Step(
        "write rate, peak", rates.peak / MB, "MB/s", f"average x {load.peak:g} (peak to average)"
    )
    yield Step("network in", rates.written / MB, "MB/s", f"peak x {factor} replicas")
    yield Step(
        "network out",
        rates.read / MB,
        "MB/s",
        f"peak x ({load.consumers} consumer groups + {factor - 1} followers)",
    )
    yield Step(
        "disk",
        rates.disk / GB,
        "GB",
        f"average x {hours:g} h x 3,600 s x {factor} replicas x {DISK_OVERHEAD:g} indexes",
    )
    yield Step(
        "page cache", rates.memory / GB, "GB", f"network in x {MEMORY_S} s for reads near the end"
    )
    yield Step(
        "CPU",
        rates.cpu,
        "cores",
        f"in x {CPU_S_PER_GB_IN:g} s/GB + out x {CPU_S_PER_GB_OUT:g} s/GB"
        f" + records x {CPU_S_PER_MILLION_RECORDS:g} s/million, at the peak",
    )


def _needs(load: Load, machine: Machine, rates: _Rates) -> Iterator[Need]:
    usable = 1 - load.headroom_percent / 100
    for resource, wanted, per_machine, unit, scale in (
        ("disk space", rates.disk, machine.drives * machine.drive_bytes, "GB", GB),
        ("disk writes", rates.written, machine.drives * machine.drive_bytes_per_s, "MB/s", MB),
        ("network in", rates.written, machine.network_bytes_per_s, "MB/s", MB),
        ("network out", rates.read, machine.network_bytes_per_s, "MB/s", MB),
        ("memory", rates.memory, machine.memory_bytes - BROKER_MEMORY_BYTES, "GB", GB),
        ("CPU", rates.cpu, machine.cores, "cores", 1),
    ):
        machines = ceil(wanted / (per_machine * usable))
        yield Need(
            resource,
            max(machines, 1),
            f"{wanted / scale:,.1f} / ({per_machine / scale:,.1f} {unit} x {usable:.0%})",
        )
    yield Need("replicas", load.replication_factor, "a broker holds one replica of a partition")


def _brokers(load: Load, rates: _Rates, machines: int) -> tuple[int, str]:
    """One broker per machine, and more if one core each is not enough."""
    usable = 1 - load.headroom_percent / 100
    for_cpu = max(ceil(rates.cpu / usable), 1)
    return max(machines, for_cpu), (
        f"the larger of {machines} machines and {for_cpu} ({rates.cpu:,.1f} / (1 core x"
        f" {usable:.0%})), as a broker uses one core"
    )


def _partitions(load: Load, rates: _Rates, brokers: int) -> tuple[int, str]:
    """Enough partitions for the rate and for every member, in a multiple of the brokers."""
    for_rate = ceil(rates.peak / PARTITION_BYTES_PER_S)
    partitions = ceil(max(for_rate, load.members) / brokers) * brokers
    return partitions, (
        f"the larger of {for_rate} ({rates.peak / MB:,.1f} / {PARTITION_BYTES_PER_S / MB:g} MB/s)"
        f" and {load.members} members, equally many on all brokers"
    )


def _check(load: Load, machine: Machine) -> None:
    positive = {
        "records per second": load.records_per_s,
        "record size": load.record_bytes,
        "retention": load.retention_h,
        "replication factor": load.replication_factor,
        "members": load.members,
        "compression": load.compression,
        "cores": machine.cores,
        "drives": machine.drives,
        "drive size": machine.drive_bytes,
        "drive rate": machine.drive_bytes_per_s,
        "network rate": machine.network_bytes_per_s,
    }
    for name, value in positive.items():
        if not 0 < value < float("inf"):
            raise InvalidConfig(f"{name} must be greater than 0, not {value:g}")
    for name in ("peak", "growth_percent", "years", "headroom_percent"):
        if not isfinite(getattr(load, name)):
            raise InvalidConfig(f"{name.partition('_')[0]} must be a number")
    if machine.memory_bytes <= BROKER_MEMORY_BYTES:
        raise InvalidConfig("memory must be greater than 100 MB, which the broker itself takes")
    if load.consumers < 0 or load.years < 0:
        raise InvalidConfig("consumers and years must not be negative")
    if load.peak < 1:
        raise InvalidConfig(
            f"peak is the peak rate divided by the average: 1 or more, not {load.peak:g}"
        )
    if not 0 <= load.headroom_percent < 100:
        raise InvalidConfig(f"headroom must be from 0 to 99 %, not {load.headroom_percent:g}")
    if load.growth_percent <= -100:
        raise InvalidConfig(f"growth must be greater than -100 %, not {load.growth_percent:g}")
