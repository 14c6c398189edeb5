"""Options for a load and for a machine, of commands that size clusters."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import ClusterOptions, duration_ms, options_as, size_bytes
from headrace.cli.sizing import Load, Machine
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client.admin import Admin

_GROUPS_MAX = 500
_SAMPLE = 10_000

_LOAD = (
    click.option(
        "--rate",
        "records_per_s",
        type=float,
        metavar="RECORDS/S",
        help="Average records per second.",
    ),
    click.option(
        "--record-size",
        "record_bytes",
        type=size_bytes,
        metavar="SIZE",
        help="Mean record size: 500B, 1KB.",
    ),
    click.option(
        "--retention",
        "retention_h",
        type=lambda text: duration_ms(text) / 3_600_000,
        metavar="DURATION",
        help="Time that records are kept: 12h, 7d. The default is 7d.",
    ),
    click.option(
        "--replication-factor", "--rf", type=int, help="Replicas of a partition; 3 if unset."
    ),
    click.option(
        "--consumers", type=int, help="Consumer groups that read all records; 1 if unset."
    ),
    click.option(
        "--members", type=int, default=1, show_default=True, help="Members of the largest group."
    ),
    click.option(
        "--peak", type=float, default=2.0, show_default=True, help="Peak rate divided by average."
    ),
    click.option(
        "--growth",
        "growth_percent",
        type=float,
        default=0.0,
        show_default=True,
        help="Growth per year in percent.",
    ),
    click.option("--years", type=float, default=1.0, show_default=True, help="Years to plan for."),
    click.option(
        "--headroom",
        "headroom_percent",
        type=float,
        default=30.0,
        show_default=True,
        help="Percent to keep free.",
    ),
    click.option(
        "--compression",
        type=float,
        default=1.0,
        show_default=True,
        help="Size before divided by size after compression.",
    ),
    click.option(
        "--from", "topic", metavar="TOPIC", help="Measure the load of a topic of a running cluster."
    ),
)
_MACHINE = (
    click.option("--cores", type=int, default=4, show_default=True, help="Cores of a machine."),
    click.option("--drives", type=int, default=6, show_default=True, help="Drives of a machine."),
    click.option(
        "--drive-size",
        "drive_bytes",
        type=size_bytes,
        default="1000GB",
        show_default=True,
        metavar="SIZE",
        help="Size of a drive.",
    ),
    click.option(
        "--drive-rate",
        "drive_bytes_per_s",
        type=size_bytes,
        default="100MB",
        show_default=True,
        metavar="SIZE",
        help="Data that a drive writes in a second.",
    ),
    click.option(
        "--memory",
        "memory_bytes",
        type=size_bytes,
        default="32GB",
        show_default=True,
        metavar="SIZE",
        help="Memory of a machine.",
    ),
    click.option(
        "--network",
        "network_bytes_per_s",
        type=size_bytes,
        default="125MB",
        show_default=True,
        metavar="SIZE",
        help="Data that the network transfers in a second.",
    ),
)


def load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a load, passed by the names of `Load`, and `topic`."""
    for option in reversed(_LOAD):
        command = option(command)
    return command


def machine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a machine, passed as `machine`."""
    command = options_as(Machine, "machine")(command)
    for option in reversed(_MACHINE):
        command = option(command)
    return command


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
