"""`headrace size`: the cluster that a load needs, with every formula shown."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import ClusterOptions, admin_options, duration_ms, options_as, size_bytes
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.sizing import GB, MB, Load, Machine, Size, size
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client.admin import Admin

_GROUPS_MAX = 500
_SAMPLE = 10_000


@click.command("size", short_help="Calculate the machines that a load needs.")
@click.option(
    "--rate", "records_per_s", type=float, metavar="RECORDS/S", help="Average records per second."
)
@click.option(
    "--record-size",
    "record_bytes",
    type=size_bytes,
    metavar="SIZE",
    help="Mean record size: 500B, 1KB.",
)
@click.option(
    "--retention",
    "retention_h",
    type=lambda text: duration_ms(text) / 3_600_000,
    metavar="DURATION",
    help="Time that records are kept: 12h, 7d. The default is 7d.",
)
@click.option("--replication-factor", "--rf", type=int, help="Replicas of a partition; 3 if unset.")
@click.option("--consumers", type=int, help="Consumer groups that read all records; 1 if unset.")
@click.option(
    "--members", type=int, default=1, show_default=True, help="Members of the largest group."
)
@click.option(
    "--peak", type=float, default=2.0, show_default=True, help="Peak rate divided by average."
)
@click.option(
    "--growth",
    "growth_percent",
    type=float,
    default=0.0,
    show_default=True,
    help="Growth per year in percent.",
)
@click.option("--years", type=float, default=1.0, show_default=True, help="Years to plan for.")
@click.option(
    "--headroom",
    "headroom_percent",
    type=float,
    default=30.0,
    show_default=True,
    help="Percent to keep free.",
)
@click.option(
    "--compression",
    type=float,
    default=1.0,
    show_default=True,
    help="Size before divided by size after compression.",
)
@click.option("--cores", type=int, default=4, show_default=True, help="Cores of a machine.")
@click.option("--drives", type=int, default=6, show_default=True, help="Drives of a machine.")
@click.option(
    "--drive-size",
    "drive_bytes",
    type=size_bytes,
    default="1000GB",
    show_default=True,
    metavar="SIZE",
    help="Size of a drive.",
)
@click.option(
    "--drive-rate",
    "drive_bytes_per_s",
    type=size_bytes,
    default="100MB",
    show_default=True,
    metavar="SIZE",
    help="Data that a drive writes in a second.",
)
@click.option(
    "--memory",
    "memory_bytes",
    type=size_bytes,
    default="32GB",
    show_default=True,
    metavar="SIZE",
    help="Memory of a machine.",
)
@click.option(
    "--network",
    "network_bytes_per_s",
    type=size_bytes,
    default="125MB",
    show_default=True,
    metavar="SIZE",
    help="Data that the network transfers in a second.",
)
@click.option(
    "--from", "topic", metavar="TOPIC", help="Measure the load of a topic of a running cluster."
)
@admin_options
@options_as(Machine, "machine")
def command(
    topic: str | None, machine: Machine, as_json: bool, cluster: ClusterOptions, **load: Any
) -> None:
    """Calculate disk, memory, network, CPU, brokers and partitions for a load.

    \b
    headrace size --rate 50000 --record-size 1KB --retention 7d --consumers 3
    headrace size --from orders --growth 40 --years 2

    With --from, measurements of the topic replace missing options. The default machine has 4
    cores, 6 drives, 32 GB of memory and 1 GbE.
    """
    given = {name: value for name, value in load.items() if value is not None}
    average = load_of({**(measure(topic, cluster) if topic else {}), **given})
    result = size(average, machine)
    if as_json:
        print_json({"load": average, "machine": machine, "size": result})
    else:
        _print(average, machine, result)


def load_of(figures: Mapping[str, Any]) -> Load:
    """Return the load with these figures; rate and record size have no default."""
    for name, option in (("records_per_s", "--rate"), ("record_bytes", "--record-size")):
        if name not in figures:
            raise click.UsageError(f"{option} is missing; or measure a topic with --from TOPIC")
    return Load(**figures)


def measure(topic: str, cluster: ClusterOptions) -> dict[str, float]:
    """Measure rate and record size of a topic; read its retention, replicas and groups."""
    from headrace.client import profiling

    with cluster.admin() as client:
        described, failed = client.topics.describe([topic])
        if failed:
            raise HeadraceError(f"{topic}: {failed[0].message or failed[0].error}")
        measured: dict[str, float] = {
            "replication_factor": described[0].replication_factor,
            "consumers": _readers(client, topic),
        }
        for entry in client.configs.describe("topic", topic):
            if entry.name == "retention.ms" and entry.value not in (None, "-1"):
                measured["retention_h"] = int(entry.value or 0) / 3_600_000
    profile = profiling.profile_topic(cluster.bootstrap, topic, cluster.settings(), records=_SAMPLE)
    if profile.velocity.records_per_s is None:
        raise HeadraceError(
            f"the records of {topic} have one timestamp, so their rate is unknown; give --rate"
        )
    measured["records_per_s"] = profile.velocity.records_per_s
    measured["record_bytes"] = profile.size.mean
    return measured


def _readers(client: "Admin", topic: str) -> int:
    """Count the groups with offsets of a topic, among the first groups of the cluster."""
    return sum(
        any(read == topic for read, _ in client.groups.committed(listed.group))
        for listed in client.groups.all()[:_GROUPS_MAX]
    )


def _print(load: Load, machine: Machine, result: Size) -> None:
    print_table(
        ("step", "value", "unit", "formula"),
        [(step.name, f"{step.value:,.2f}", step.unit, step.formula) for step in result.steps],
    )
    print_line("")
    print_line(
        f"One machine: {machine.cores} cores, {machine.drives} drives of"
        f" {machine.drive_bytes / GB:g} GB and {machine.drive_bytes_per_s / MB:g} MB/s,"
        f" {machine.memory_bytes / GB:g} GB memory,"
        f" {machine.network_bytes_per_s / MB:g} MB/s network; {load.headroom_percent:g} % free."
    )
    print_line("")
    print_table(
        ("resource", "machines", "formula"),
        [(need.resource, need.machines, need.formula) for need in result.needs],
    )
    print_line("")
    print_line(f"brokers     {result.brokers}, bound by {result.bound_by}")
    print_line(f"partitions  {result.partitions} at least, of topics with this load")
    print_line("")
    print_line("CPU figures are those of a Headrace broker, which uses one core; more cores need")
    print_line("more brokers per machine. Apache Kafka takes about three times the CPU.")
