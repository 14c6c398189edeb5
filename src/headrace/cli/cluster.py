"""`headrace cluster`: brokers, metadata quorum and features in brief."""

from typing import Any

import click

from headrace.cli.options import admin, cluster_options, confirm, json_option
from headrace.cli.output import print_json, print_line, print_table, report
from headrace.client.descriptions import ClusterDescription


@click.group(
    "cluster",
    short_help="Describe brokers, metadata quorum and features.",
    invoke_without_command=True,
)
@cluster_options
@json_option
@click.pass_context
def command(context: click.Context, /, as_json: bool, **cluster: Any) -> None:
    """Describe brokers, metadata quorum and features."""
    if context.invoked_subcommand is not None:
        return
    with admin(**cluster) as client:
        found = client.nodes.describe()
    if as_json:
        print_json(found)
    else:
        _print(found)


@command.command("unregister")
@click.argument("broker", type=click.IntRange(min=0))
@click.option("--yes", "-y", is_flag=True, help="Do not ask; scripts are never asked.")
@cluster_options
@json_option
def unregister(broker: int, yes: bool, as_json: bool, **cluster: Any) -> int:
    """Forget a broker that is gone for good; one that still runs must be stopped first."""
    confirm(f"Unregister broker {broker}?", yes=yes)
    with admin(**cluster) as client:
        outcome = client.nodes.unregister(broker)
    return report([outcome], done="unregistered", as_json=as_json)


def _print(found: ClusterDescription) -> None:
    print_line(f"cluster {found.cluster_id}")
    print_table(
        ("broker", "host", "port", "rack", "state"),
        [
            (one.id, one.host, one.port, one.rack, "fenced" if one.is_fenced else "up")
            for one in found.brokers
        ],
    )
    if found.quorum is not None:
        quorum = found.quorum
        print_line(
            f"\nmetadata quorum: leader {quorum.leader} in epoch {quorum.leader_epoch},"
            f" high watermark {quorum.high_watermark}"
        )
        print_table(
            ("node", "role", "log end offset", "lag"),
            [(one.id, one.role, one.log_end_offset, one.lag) for one in quorum.replicas],
        )
    print_line("")
    print_table(
        ("feature", "level", "supported"),
        [
            (one.name, one.finalized, f"{one.min_version}-{one.max_version}")
            for one in found.features
        ],
    )
