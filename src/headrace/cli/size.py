"""`headrace size`: the cluster that a load needs, with every formula shown."""

from typing import Any

import click

from headrace.cli.options import ClusterOptions, admin_options
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.size_options import load_of, load_options, machine_options, measure
from headrace.cli.sizing import GB, MB, Load, Machine, Size, size


@click.command("size", short_help="Calculate the machines that a load needs.")
@load_options
@machine_options
@admin_options
def command(
    topic: str | None, machine: Machine, as_json: bool, cluster: ClusterOptions, **load: Any
) -> None:
    """Calculate disk, memory, network, CPU, machines, brokers and partitions for a load.

    \b
    headrace size --rate 50000 --record-size 1KB --retention 7d --consumers 3
    headrace size --from orders --growth 40 --years 2

    With --from, measurements of the topic replace missing options. The default machine has 4
    cores, 6 drives, 32 GB of memory and 1 GbE.
    """
    given = {name: value for name, value in load.items() if value is not None}
    average = load_of(measure(topic, cluster, given) if topic else given)
    result = size(average, machine)
    if as_json:
        print_json({"load": average, "machine": machine, "size": result})
    else:
        _print(average, machine, result)


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
    print_line(f"machines    {result.machines}: the most for one resource, {result.bound_by}")
    print_line(f"brokers     {result.brokers}: {result.brokers_formula}")
    print_line(f"partitions  {result.partitions} at least: {result.partitions_formula}")
    print_line("")
    print_line(
        "CPU figures are those of Headrace. Apache Kafka takes about three times the CPU for"
    )
    print_line("writes and 1.6 times for reads, and one broker uses all cores.")
