"""`headrace topics`: list, describe, create, alter, delete and measure topics of any cluster."""

import fnmatch
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click
import msgspec

from headrace.cli.advice import LIST_TOPICS
from headrace.cli.options import (
    ClusterOptions,
    SettingOptions,
    admin_options,
    as_mapping,
    confirm,
    options_as,
    set_option,
    unset_option,
    validate_only_option,
    yes_option,
)
from headrace.cli.output import (
    counted,
    print_json,
    print_line,
    print_rows,
    print_table,
    report,
    warn,
)
from headrace.client.descriptions import (
    ConfigEntry,
    NewTopic,
    Outcome,
    PartitionDescription,
    TopicDescription,
)
from headrace.errors import HeadraceError

TROUBLES: dict[str, Callable[[PartitionDescription, int], bool]] = {
    "under-replicated": lambda part, _: part.is_under_replicated,
    "unavailable": lambda part, _: part.leader is None,
    "under-min-isr": lambda part, isr_min: len(part.isr) < isr_min,
    "at-min-isr": lambda part, isr_min: len(part.isr) == isr_min,
}
"""Problems of a partition, given `min.insync.replicas`."""


def parse_replicas(text: str) -> tuple[tuple[int, ...], ...]:
    """Parse replicas: `1:2,2:3` is two partitions, on brokers 1 and 2 and on brokers 2 and 3."""
    try:
        return tuple(tuple(int(broker) for broker in part.split(":")) for part in text.split(","))
    except ValueError as error:
        raise HeadraceError(
            f"{text!r} is not an assignment; join the brokers of a partition by ':' and partitions"
            " by ',' as in 1:2,2:3"
        ) from error


assignment_option = partial(
    click.option, "--assignment", "assignments", type=parse_replicas, metavar="IDS,..."
)


@click.group("topics", short_help="List, describe, create, alter and delete topics.")
def command() -> None:
    """List, describe, create, alter and delete topics."""


@command.command("list")
@click.argument("pattern", default="*")
@click.option("--internal", is_flag=True, help="Include the cluster's internal topics.")
@admin_options
def list_topics(pattern: str, internal: bool, as_json: bool, cluster: ClusterOptions) -> None:
    """List topics, all or those whose name matches PATTERN (as in 'orders-*')."""
    with cluster.admin() as client:
        found = [
            topic
            for topic in client.topics.all()
            if fnmatch.fnmatchcase(topic.name, pattern) and (internal or not topic.is_internal)
        ]
    if as_json:
        print_json([_listed(topic) for topic in found])
        return
    print_table(
        ("topic", "partitions", "replicas", "id"),
        [(t.name, len(t.partitions), t.replication_factor, t.topic_id) for t in found],
    )


@command.command("describe")
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@click.option(
    "--only",
    type=click.Choice(list(TROUBLES)),
    help="Only partitions with this problem, and their topics.",
)
@admin_options
def describe_topics(
    names: tuple[str, ...], only: str | None, as_json: bool, cluster: ClusterOptions
) -> int:
    """Show partitions, replicas and changed settings of the named topics, or of all.

    \b
    headrace topics describe orders
    headrace topics describe --only under-replicated
    """
    with cluster.admin() as client:
        found, missing = client.topics.describe(names) if names else (client.topics.all(), [])
        settings = {topic.name: client.configs.describe("topic", topic.name) for topic in found}
    if only is not None:
        narrowed = [troubled(topic, settings[topic.name], only) for topic in found]
        found = [topic for topic in narrowed if topic.partitions]
    configs = {name: _overrides(entries) for name, entries in settings.items()}
    if as_json:
        print_json([_described(topic, configs[topic.name]) for topic in found])
    else:
        for topic in found:
            _print_topic(topic, configs[topic.name])
    for outcome in missing:
        is_unknown = outcome.error == "UNKNOWN_TOPIC_OR_PARTITION"
        warn(f"{outcome.name}: {outcome.message}{f'; {LIST_TOPICS}' if is_unknown else ''}")
    return 1 if missing else 0


@command.command("create")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--partitions",
    "-p",
    type=click.IntRange(min=1),
    show_default="the broker's",
    help="Number of partitions of each topic.",
)
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(min=1),
    show_default="the broker's",
    help="Number of replicas of each partition.",
)
@assignment_option(
    help="Replicas chosen by hand: brokers of a partition joined by ':', partitions by ','."
)
@set_option("A setting such as retention.ms=60000; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="Accept an existing topic.")
@click.option("--validate-only", is_flag=True, help="Check, but create nothing.")
@admin_options
def create_topics(
    names: tuple[str, ...],
    configs: tuple[tuple[str, str], ...],
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
    cluster: ClusterOptions,
    **layout: Any,
) -> int:
    """Create topics.

    \b
    headrace topics create orders --partitions 6 --set cleanup.policy=compact
    """
    layout = {name: value for name, value in layout.items() if value is not None}
    if "assignments" in layout and len(layout) > 1:
        raise click.UsageError(
            "--assignment sets partitions and replicas: leave out --partitions and"
            " --replication-factor"
        )
    wanted = [NewTopic(name=name, configs=as_mapping(configs), **layout) for name in names]
    with cluster.admin() as client:
        outcomes = client.topics.create(wanted, validate_only=validate_only)
    return report(
        outcomes,
        done="can be created" if validate_only else "created",
        forgiven={"TOPIC_ALREADY_EXISTS": "exists already"} if if_not_exists else {},
        as_json=as_json,
    )


@command.command("alter")
@click.argument("name", metavar="TOPIC")
@click.option(
    "--partitions", "-p", type=click.IntRange(min=1), help="Grow to this number of partitions."
)
@set_option("Set this; may be repeated.")
@unset_option
@validate_only_option
@admin_options
@options_as(SettingOptions, "settings")
def alter_topic(
    name: str,
    partitions: int | None,
    settings: SettingOptions,
    validate_only: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Change the settings or the number of partitions of a topic."""
    changes = settings.changes()
    if not changes and partitions is None:
        raise click.UsageError("nothing to alter; give --set, --unset or --partitions")
    outcomes: list[Outcome] = []
    with cluster.admin() as client:
        if changes:
            outcomes.append(
                client.configs.alter("topic", name, changes, validate_only=validate_only)
            )
        if partitions is not None and not any(one.error for one in outcomes):
            outcomes.append(
                client.topics.add_partitions(name, partitions, validate_only=validate_only)
            )
    done = "can be altered" if validate_only else "altered"
    return report(outcomes[-1:], done=done, as_json=as_json)


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--by-id", is_flag=True, help="The arguments are topic ids.")
@click.option("--if-exists", is_flag=True, help="Accept a missing topic.")
@yes_option
@admin_options
def delete_topics(
    names: tuple[str, ...],
    by_id: bool,
    if_exists: bool,
    yes: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Delete topics and all their records."""
    confirm(f"Delete {', '.join(names)} and all records in it?", yes=yes)
    with cluster.admin() as client:
        outcomes = client.topics.delete_by_id(names) if by_id else client.topics.delete(names)
    missing = dict.fromkeys(("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"), "does not exist")
    return report(outcomes, done="deleted", forgiven=missing if if_exists else {}, as_json=as_json)


@command.command("add-partitions")
@click.argument("name", metavar="TOPIC")
@click.option("--total", type=click.IntRange(min=1), help="New number of partitions.")
@click.option("--by", type=click.IntRange(min=1), help="Number of partitions to add.")
@assignment_option(help="Replicas of the new partitions, as in `create`.")
@validate_only_option
@admin_options
def add_partitions(
    name: str,
    total: int | None,
    by: int | None,
    assignments: tuple[tuple[int, ...], ...] | None,
    validate_only: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Add partitions to a topic; keys may map to other partitions from then on."""
    if (total is None) == (by is None):
        raise click.UsageError("give --total or --by")
    with cluster.admin() as client:
        wanted = total if total is not None else len(client.partitions.of(name)) + (by or 0)
        outcome = client.topics.add_partitions(
            name, wanted, assignments or (), validate_only=validate_only
        )
    done = f"can have {wanted} partitions" if validate_only else f"has {wanted} partitions"
    return report([outcome], done=done, as_json=as_json)


@command.command("profile")
@click.argument("topic")
@click.option(
    "--records",
    "-n",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    help="Measure this many of the last records.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Measure the records of the last seconds instead.",
)
@admin_options
def profile_topic(
    topic: str, records: int, seconds: float | None, as_json: bool, cluster: ClusterOptions
) -> None:
    """Measure TOPIC: rate, sizes, gaps, format, keys, skew.

    \b
    headrace topics profile orders
    headrace topics profile orders --seconds 60 --json

    Partitions are sampled in proportion to their size. The output ends with a source for
    pipeline.toml that reads the topic.
    """
    from headrace.cli.topic_profile import print_profile
    from headrace.client import profiling
    from headrace.client.cluster import check_reachable

    settings = cluster.settings()
    check_reachable(cluster.bootstrap, settings)
    found = profiling.profile_topic(
        cluster.bootstrap, topic, settings, records=records, seconds=seconds
    )
    if as_json:
        print_json(found)
    else:
        print_profile(found)


def troubled(
    topic: TopicDescription, configs: Sequence[ConfigEntry], trouble: str
) -> TopicDescription:
    """Return the topic with only those partitions that have a problem."""
    by_name = {entry.name: entry.value for entry in configs}
    isr_min = int(by_name.get("min.insync.replicas") or 1)
    is_in_trouble = TROUBLES[trouble]
    partitions = [part for part in topic.partitions if is_in_trouble(part, isr_min)]
    return msgspec.structs.replace(topic, partitions=partitions)


def _overrides(entries: Sequence[ConfigEntry]) -> list[ConfigEntry]:
    return [entry for entry in entries if entry.source == "DYNAMIC_TOPIC_CONFIG"]


def _listed(topic: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "is_internal": topic.is_internal,
    }


def _described(topic: TopicDescription, configs: Sequence[ConfigEntry]) -> dict[str, Any]:
    return {
        **_listed(topic),
        "configs": {entry.name: entry.value for entry in configs},
        "partitions": topic.partitions,
    }


def _print_topic(topic: TopicDescription, configs: Sequence[ConfigEntry]) -> None:
    print_line(
        f"{topic.name}: {counted(len(topic.partitions), 'partition')},"
        f" {counted(topic.replication_factor, 'replica')},"
        f" id {topic.topic_id}" + (", internal" if topic.is_internal else "")
    )
    for entry in configs:
        print_line(f"  {entry.name}={entry.value}")
    print_rows(
        topic.partitions,
        {
            "partition": lambda part: part.partition,
            "leader": lambda part: part.leader,
            "epoch": lambda part: part.leader_epoch,
            "replicas": lambda part: _ids(part.replicas),
            "in sync": lambda part: _ids(part.isr) + (" !" if part.is_under_replicated else ""),
            "offline": lambda part: _ids(part.offline_replicas),
        },
    )


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "-"
