"""`headrace doctor`: check the machine, and optionally a cluster, for known problems."""

from collections import Counter
from collections.abc import Sequence

import click

from headrace.cli.defaults import DEFAULT_DATA
from headrace.cli.doctor_checks import (
    ClusterFacts,
    Finding,
    TopicFacts,
    Verdict,
    examine,
    examine_cluster,
    has_failed,
)
from headrace.cli.options import ClusterOptions, command_config_option, json_option, property_option
from headrace.cli.output import print_json, print_line, print_table
from headrace.client.admin import Admin
from headrace.errors import HeadraceError

_PATIENCE_S = 10.0


@click.command("doctor", short_help="Check this machine for problems before they cost data.")
@click.option(
    "--data",
    multiple=True,
    metavar="DIR",
    help="A log directory to check; may be repeated.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="A server.properties whose log.dirs to check.",
)
@click.option("--bootstrap", "-b", metavar="HOST:PORT,...", help="A running cluster to check.")
@command_config_option
@property_option
@json_option
def command(
    data: tuple[str, ...],
    config: str | None,
    bootstrap: str | None,
    command_config: str | None,
    properties: tuple[tuple[str, str], ...],
    as_json: bool,
) -> int:
    """Check the limits, disks and clock of this machine, and print what to change.

    Exits with 1 if a finding would lose data or stop a broker.
    """
    from headrace.runtime.machine import probe_machine

    findings = examine(probe_machine(_directories(data, config)))
    if bootstrap is not None:
        cluster = ClusterOptions(bootstrap, command_config, properties, _PATIENCE_S)
        findings += _cluster_findings(cluster.admin())
    if as_json:
        print_json(findings)
    else:
        _print(findings)
    return int(has_failed(findings))


def _directories(data: tuple[str, ...], config: str | None) -> Sequence[str]:
    if config is not None:
        from headrace.settings.broker_loading import load
        from headrace.settings.properties import read

        settings, _ = load(read(config))
        return data + settings.directories
    return data or (DEFAULT_DATA,)


def _cluster_findings(client: Admin) -> list[Finding]:
    try:
        return examine_cluster(_cluster_facts(client))
    except (HeadraceError, OSError) as error:
        advice = (
            "start it, or name another cluster with --bootstrap; put a login into --command-config"
        )
        return [Finding("cluster", Verdict.FAIL, f"not reachable: {error}", advice)]


def _cluster_facts(client: Admin) -> ClusterFacts:
    with client:
        topics = client.topics.all()
        directories = client.nodes.log_directories()
    sizes: Counter[str] = Counter()
    for directory in directories:
        for replica in directory.replicas:
            sizes[replica.topic] += replica.size_bytes
    return ClusterFacts(
        brokers=len({directory.broker for directory in directories}),
        topics=tuple(
            TopicFacts(topic.name, len(topic.partitions), sizes[topic.name]) for topic in topics
        ),
        offline_directories=tuple(
            f"{directory.path} of broker {directory.broker}"
            for directory in directories
            if directory.error is not None
        ),
    )


def _print(findings: Sequence[Finding]) -> None:
    print_table(
        ("check", "", "found"),
        [(finding.check, str(finding.verdict), finding.found) for finding in findings],
    )
    to_do = [finding for finding in findings if finding.verdict is not Verdict.OK]
    print_line("" if to_do else "\nNothing to change.")
    for finding in to_do:
        print_line(f"{finding.verdict}: {finding.check}: {finding.advice}")
