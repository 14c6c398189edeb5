"""`headrace configs`: describe and alter the settings of topics, brokers and groups."""

import fnmatch
from collections.abc import Sequence

import click
import msgspec

from headrace.cli.options import (
    ClusterOptions,
    SettingOptions,
    admin_options,
    name_value,
    options_as,
    set_option,
    unset_option,
    validate_only_option,
)
from headrace.cli.output import print_json, print_line, print_table, report
from headrace.client.configs import CLUSTER_DEFAULT
from headrace.client.descriptions import RESOURCE_TYPES, ConfigChange, ConfigEntry

KINDS = click.Choice(list(RESOURCE_TYPES))
OWN_SOURCES = {
    ("topic", False): "DYNAMIC_TOPIC_CONFIG",
    ("broker", False): "DYNAMIC_BROKER_CONFIG",
    ("broker", True): "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ("broker-logger", False): "DYNAMIC_BROKER_LOGGER_CONFIG",
    ("client-metrics", False): "DYNAMIC_CLIENT_METRICS_CONFIG",
    ("group", False): "DYNAMIC_GROUP_CONFIG",
}
"""Sources of settings that were set on the resource itself, or on all brokers."""


@click.group("configs", short_help="Describe and alter settings of topics, brokers and groups.")
def command() -> None:
    """List, describe and alter settings of topics, brokers, groups and client metrics.

    A broker is named by its id, and `default` is all brokers. The settings of a broker-logger are
    the levels of its log, by logger. Client metrics are subscriptions to metrics that
    clients push (KIP-714).
    """


@command.command("list")
@click.argument("kind", type=KINDS)
@admin_options
def list_names(kind: str, as_json: bool, cluster: ClusterOptions) -> None:
    """List resources: all topics or brokers, and groups and client metrics with settings."""
    with cluster.admin() as client:
        found = client.configs.names(kind)
    if as_json:
        print_json(found)
        return
    for name in found:
        print_line(name)


@command.command("describe")
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.option("--all", "show_all", is_flag=True, help="Include settings that have their default.")
@click.option("--filter", "pattern", metavar="PATTERN", help="Only names such as 'log.*'.")
@click.option(
    "--synonyms", is_flag=True, help="Show all sources of a value, in order of precedence."
)
@click.option("--documentation", is_flag=True, help="Print the documentation of each setting.")
@admin_options
def describe(
    kind: str,
    name: str,
    show_all: bool,
    pattern: str | None,
    synonyms: bool,
    documentation: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Show changed settings, or with --all every setting, with the source of each value.

    \b
    headrace configs describe topic orders
    headrace configs describe broker 1 --all --filter 'log.*'
    """
    with cluster.admin() as client:
        entries = client.configs.describe(
            kind, resource_name(kind, name), include_documentation=documentation
        )
    shown = selected(entries, show_all=show_all, pattern=pattern)
    if as_json:
        print_json(shown)
        return
    _print_entries(shown, synonyms=synonyms)
    if documentation:
        for entry in shown:
            print_line(f"{entry.name}: {entry.documentation or '-'}")
    if not show_all and pattern is None:
        print_line(f"{len(entries) - len(shown)} more have their default; see them with --all")


@command.command("alter")
@click.argument("kind", type=KINDS)
@click.argument("name")
@set_option("Set this; may be repeated.")
@unset_option
@click.option(
    "--append",
    "appends",
    type=name_value,
    metavar="NAME=VALUE",
    multiple=True,
    help="Add to a list; may be repeated.",
)
@click.option(
    "--subtract",
    "subtracts",
    type=name_value,
    metavar="NAME=VALUE",
    multiple=True,
    help="Remove from a list; may be repeated.",
)
@click.option("--unset-all", is_flag=True, help="Remove all settings, so that the defaults apply.")
@validate_only_option
@admin_options
@options_as(SettingOptions, "settings")
def alter(
    kind: str,
    name: str,
    settings: SettingOptions,
    unset_all: bool,
    validate_only: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Change some settings and keep the others.

    \b
    headrace configs alter topic orders --set retention.ms=3600000 --unset segment.bytes
    headrace configs alter broker default --set log.cleaner.backoff.ms=5000
    headrace configs alter broker-logger 1 --set headrace.storage=DEBUG
    headrace configs alter client-metrics slow --set metrics= --set interval.ms=5000
    """
    changes = settings.changes()
    if bool(changes) == unset_all:
        raise click.UsageError(
            "nothing to alter: give --set, --unset, --append, --subtract, or --unset-all alone"
        )
    wire_name = resource_name(kind, name)
    with cluster.admin() as client:
        if unset_all:
            changes = [
                ConfigChange(name=entry.name, operation="delete")
                for entry in client.configs.describe(kind, wire_name)
                if entry.source == OWN_SOURCES[kind, wire_name == CLUSTER_DEFAULT]
            ]
        outcome = client.configs.alter(kind, wire_name, changes, validate_only=validate_only)
    done = "can be altered" if validate_only else "altered"
    named = msgspec.structs.replace(outcome, name=f"{kind} {name}")
    return report([named], done=done, as_json=as_json)


def resource_name(kind: str, name: str) -> str:
    """Return the name on the wire; the default for all brokers has an empty name."""
    return CLUSTER_DEFAULT if kind == "broker" and name == "default" else name


def selected(
    entries: Sequence[ConfigEntry], *, show_all: bool, pattern: str | None
) -> list[ConfigEntry]:
    """Return the settings to show: with a pattern all that match, else only changed ones."""
    if pattern is not None:
        return [entry for entry in entries if fnmatch.fnmatchcase(entry.name, pattern)]
    return [entry for entry in entries if show_all or not entry.is_default]


def _print_entries(entries: Sequence[ConfigEntry], *, synonyms: bool) -> None:
    print_table(
        ("name", "value", "source", "read only", *(["synonyms"] if synonyms else [])),
        [
            (
                entry.name,
                "(hidden)" if entry.is_sensitive else entry.value,
                entry.source,
                "yes" if entry.is_read_only else "no",
                *([synonyms_text(entry)] if synonyms else []),
            )
            for entry in entries
        ],
    )


def synonyms_text(entry: ConfigEntry) -> str:
    """Return the sources of a value, the effective one first."""
    return "\n".join(
        f"{synonym.source}: {synonym.name}={'(hidden)' if entry.is_sensitive else synonym.value}"
        for synonym in entry.synonyms
    )
