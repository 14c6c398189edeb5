"""Options for a load and for a machine, of commands that size clusters."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

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


def has_load_options() -> bool:
    """Return whether the command line of the running command has an option of a load."""
    context = click.get_current_context()
    return any(
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for name in Load.__struct_fields__
    )


def load_of(figures: Mapping[str, Any]) -> Load:
    """Return the load with these figures; rate and record size have no default."""
    for name, option in (("records_per_s", "--rate"), ("record_bytes", "--record-size")):
        if name not in figures:
            raise click.UsageError(f"{option} is missing; or measure a topic with --from TOPIC")
    return Load(**figures)


def measure(topic: str, cluster: ClusterOptions, given: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the given figures those of a topic: rate, record size, retention, replicas, groups."""
    with cluster.admin() as client:
        described, failed = client.topics.describe([topic])
        if failed:
            raise HeadraceError(f"{topic}: {failed[0].message or failed[0].error}")
        figures: dict[str, Any] = {
            "replication_factor": described[0].replication_factor,
            "consumers": _readers(client, topic),
            **given,
        }
        if "retention_h" not in given:
            configs = {entry.name: entry.value for entry in client.configs.describe("topic", topic)}
            figures["retention_h"] = _retention_h(topic, configs)
    if "records_per_s" in given and "record_bytes" in given:
        return figures
    return {**_sampled(topic, cluster, needs_rate="records_per_s" not in given), **figures}


def _retention_h(topic: str, configs: Mapping[str, str | None]) -> float:
    if "delete" not in (configs.get("cleanup.policy") or ""):
        raise HeadraceError(f"{topic} is compacted and not limited by time; give --retention")
    retention_ms = int(configs.get("retention.ms") or -1)
    if retention_ms < 0:
        raise HeadraceError(f"{topic} keeps its records for ever; give --retention")
    return retention_ms / 3_600_000


def _sampled(topic: str, cluster: ClusterOptions, *, needs_rate: bool) -> dict[str, Any]:
    from headrace.client import profiling

    profile = profiling.profile_topic(cluster.bootstrap, topic, cluster.settings(), records=_SAMPLE)
    rate = profile.velocity.records_per_s
    if rate is None and needs_rate:
        raise HeadraceError(
            f"the records of {topic} have one timestamp, so their rate is unknown; give --rate"
        )
    return {"records_per_s": rate, "record_bytes": profile.size.mean}


def _readers(client: "Admin", topic: str) -> int:
    """Count the groups with offsets of a topic, among the first groups of the cluster."""
    return sum(
        any(read == topic for read, _ in client.groups.committed(listed.group))
        for listed in client.groups.all()[:_GROUPS_MAX]
    )
