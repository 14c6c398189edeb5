"""`headrace quotas`: list, set and remove the quotas of users, clients and addresses."""

from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec

from headrace.cli.options import (
    ClusterOptions,
    admin_options,
    as_mapping,
    name_value,
    options_as,
    size_bytes,
    validate_only_option,
)
from headrace.cli.output import print_json, print_table, report
from headrace.client.descriptions import Outcome
from headrace.client.quotas import ClientQuota, Entity, Match, QuotaFilter

QUOTAS = {
    "producer_byte_rate": "bytes per second that producers send",
    "consumer_byte_rate": "bytes per second that consumers receive",
    "request_percentage": "share of one thread's time, in percent",
    "controller_mutation_rate": "partitions per second that are created or deleted",
    "connection_creation_rate": "new connections per second, of an address",
}
"""The quotas of Kafka and their units."""

_IN_BYTES = {"producer_byte_rate", "consumer_byte_rate"}
_KINDS = ("user", "client-id", "ip")


class EntityOptions(msgspec.Struct, frozen=True):
    """The owner of a quota as the command line names it."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    default_user: bool = False
    default_client_id: bool = False
    default_ip: bool = False

    @property
    def entity(self) -> dict[str, str | None]:
        """The parts of the owner by kind; the value None is the default of a kind."""
        named = zip(_KINDS, (self.user, self.client_id, self.ip), strict=True)
        defaults = zip(
            _KINDS, (self.default_user, self.default_client_id, self.default_ip), strict=True
        )
        found: dict[str, str | None] = {kind: name for kind, name in named if name is not None}
        for kind, is_default in defaults:
            if is_default and kind in found:
                raise click.UsageError(f"--{kind} and --default-{kind} exclude each other")
            if is_default:
                found[kind] = None
        if "ip" in found and len(found) > 1:
            raise click.UsageError("a quota of an address has no user and client id")
        return found


def required_entity(options: EntityOptions) -> dict[str, str | None]:
    """Return the owner of a quota; raise if the command line names none."""
    found = options.entity
    if not found:
        raise click.UsageError(
            "name the owner: --user, --client-id or --ip, or --default-user, --default-client-id"
            " or --default-ip"
        )
    return found


def quota_names(given: tuple[str, ...]) -> tuple[str, ...]:
    """Check names of quotas."""
    for name in given:
        if name not in QUOTAS:
            raise click.UsageError(f"{name!r} is not a quota; use one of {', '.join(QUOTAS)}")
    return given


def quota_values(given: tuple[tuple[str, str], ...]) -> dict[str, float]:
    """Parse values of quotas; rates of bytes may have a unit."""
    quota_names(tuple(name for name, _ in given))
    return {name: _value(name, text) for name, text in as_mapping(given).items()}


def entity_text(entity: Mapping[str, str | None]) -> str:
    """Describe the owner of a quota."""
    return ", ".join(
        f"{kind} {'(default)' if entity[kind] is None else entity[kind]}"
        for kind in sorted(entity, key=_rank)
    )


def value_text(value: float) -> str:
    """Format a value without needless digits."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def _entity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--user`, `--client-id`, `--ip` and their defaults, passed as `owner`."""
    command = options_as(EntityOptions, "owner")(command)
    for option in reversed(
        (
            click.option("--user", metavar="NAME", help="A user, by name without `User:`."),
            click.option("--default-user", is_flag=True, help="Each user without an own quota."),
            click.option("--client-id", metavar="ID", help="Clients with this client.id."),
            click.option(
                "--default-client-id", is_flag=True, help="Each client.id without an own quota."
            ),
            click.option("--ip", metavar="ADDRESS", help="Connections from this address."),
            click.option("--default-ip", is_flag=True, help="Each address without an own quota."),
        )
    ):
        command = option(command)
    return command


@click.group("quotas", short_help="List, set and remove quotas of users, clients and addresses.")
def command() -> None:
    """List, set and remove quotas of users, clients and addresses.

    Quotas are in force at once. A client above its quota is delayed and loses no request. The most
    specific quota applies: first of user and client id, then of the user, then of the client id.

    \b
    headrace quotas set --user ada producer_byte_rate=1MB consumer_byte_rate=2MB
    headrace quotas set --default-client-id request_percentage=50
    headrace quotas set --ip 10.0.0.7 connection_creation_rate=20
    headrace quotas remove --user ada
    """


@command.command("list")
@_entity_options
@admin_options
def list_quotas(owner: EntityOptions, as_json: bool, cluster: ClusterOptions) -> None:
    """List all quotas, or those of an owner and its parts.

    \b
    headrace quotas list
    headrace quotas list --user ada
    """
    filters = [
        QuotaFilter(kind, Match.DEFAULT if name is None else Match.EXACT, name)
        for kind, name in owner.entity.items()
    ]
    with cluster.admin() as client:
        found = client.quotas.describe(filters)
    found.sort(key=lambda one: entity_text(one.entity))
    if as_json:
        print_json(found)
        return
    print_table(
        ("owner", "quota", "value"),
        [
            (entity_text(one.entity), name, value_text(value))
            for one in found
            for name, value in sorted(one.values.items())
        ],
    )


@command.command("set")
@click.argument("values", type=name_value, nargs=-1, required=True, metavar="QUOTA=VALUE...")
@_entity_options
@validate_only_option
@admin_options
def set_quotas(
    values: tuple[tuple[str, str], ...],
    owner: EntityOptions,
    validate_only: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Set quotas of a user, a client id, both, or an address, and keep its others.

    \b
    producer_byte_rate        bytes per second that producers send, such as 1MB
    consumer_byte_rate        bytes per second that consumers receive
    request_percentage        share of one thread's time
    controller_mutation_rate  partitions per second that are created or deleted
    connection_creation_rate  new connections per second, for addresses

    \b
    headrace quotas set --user ada --client-id loader producer_byte_rate=1MB
    """
    done = "can be set" if validate_only else "set"
    return _alter(
        cluster,
        required_entity(owner),
        quota_values(values),
        done,
        as_json=as_json,
        validate_only=validate_only,
    )


@command.command("remove")
@click.argument("names", nargs=-1, metavar="[QUOTA]...")
@_entity_options
@admin_options
def remove_quotas(
    names: tuple[str, ...], owner: EntityOptions, as_json: bool, cluster: ClusterOptions
) -> int:
    """Remove the named quotas of an owner, or all of them.

    \b
    headrace quotas remove --user ada producer_byte_rate
    headrace quotas remove --default-client-id
    """
    entity = required_entity(owner)
    wanted = quota_names(names)
    if not wanted:
        with cluster.admin() as client:
            wanted = tuple(_own_values(client.quotas.describe(), entity))
    if not wanted:
        outcome = Outcome(name=entity_text(entity))
        return report([outcome], done="has no quota", as_json=as_json)
    return _alter(cluster, entity, dict.fromkeys(wanted), "removed", as_json=as_json)


def _alter(
    cluster: ClusterOptions,
    entity: Entity,
    values: Mapping[str, float | None],
    done: str,
    *,
    as_json: bool,
    validate_only: bool = False,
) -> int:
    with cluster.admin() as client:
        outcome = client.quotas.alter(entity, values, validate_only=validate_only)
    name = f"{', '.join(values)} of {entity_text(entity)}"
    return report([msgspec.structs.replace(outcome, name=name)], done=done, as_json=as_json)


def _own_values(found: list[ClientQuota], entity: Entity) -> list[str]:
    return [name for one in found if one.entity == entity for name in sorted(one.values)]


def _value(name: str, text: str) -> float:
    try:
        value = float(size_bytes(text)) if name in _IN_BYTES else float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise click.UsageError(f"{name}={text}: the value must be a number above 0")
    return value


def _rank(kind: str) -> int:
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
