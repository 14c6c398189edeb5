"""`headrace format`: prepare the log directories of a node for a new cluster.

The options and the files are those of Kafka's kafka-storage: a directory formatted by either
program starts under the other.
"""

import time
from collections.abc import Mapping, Sequence

import click
import msgspec

from headrace.cli.options import json_option
from headrace.cli.output import print_json, print_line, print_rows, warn
from headrace.cli.up import properties_of
from headrace.errors import HeadraceError, InvalidConfig
from headrace.metadata.features import (
    DEFAULT_LEVELS,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    has_scram,
)
from headrace.metadata.image import Endpoint, unused_endpoint
from headrace.metadata.log.first_users import parse_first_user
from headrace.metadata.log.first_voters import parse_first_voters
from headrace.metadata.log.formatting import (
    NewNode,
    Voter,
    check_unformatted,
    format_directories,
    read_identity,
)
from headrace.metadata.log.release_levels import CLUSTER_LEVELS, new_cluster_levels
from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord
from headrace.protocol.uuids import random_uuid, to_text
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import load
from headrace.settings.properties import read_entries

_VOTERS = "controller.quorum.voters"


class Quorum(msgspec.Struct, frozen=True):
    """The options about the first voters of a cluster; at most one is given."""

    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False

    @property
    def options(self) -> list[str]:
        """The options that were given."""
        given = {
            "--standalone": self.standalone,
            "--initial-controllers": self.initial_controllers is not None,
            "--no-initial-controllers": self.no_initial_controllers,
        }
        return [option for option, is_given in given.items() if is_given]


class DirectoryState(msgspec.Struct, frozen=True, kw_only=True):
    """A log directory as `headrace format info` shows it."""

    directory: str
    state: str
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None


def level_of(text: str) -> tuple[str, int]:
    """Parse an option's value of the form `feature=level`."""
    feature, separator, level = text.partition("=")
    if not separator or not (level.isascii() and level.isdecimal()):
        raise click.BadParameter(f"{text!r} is not of the form FEATURE=LEVEL")
    return feature, int(level)


def _node_options(command: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option(
            "--set",
            "-s",
            "assignments",
            metavar="NAME=VALUE",
            multiple=True,
            help="Set one property, overriding the file; may be repeated.",
        ),
        click.option("--data", metavar="DIR", help="Log directory, overriding the file."),
        click.option(
            "--config",
            "-c",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            help="The node's server.properties.",
        ),
    ):
        command = option(command)
    return command


@click.group(
    "format",
    short_help="Prepare the log directories of a node for a new cluster.",
    invoke_without_command=True,
)
@_node_options
@click.option(
    "--cluster-id",
    "-t",
    metavar="ID",
    help="The id of the cluster, the same for all its nodes. Needed unless the node is the first.",
)
@click.option("--standalone", is_flag=True, help="This controller is the only first voter.")
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="The first voters, the same for all nodes of the cluster.",
)
@click.option(
    "--no-initial-controllers",
    "-N",
    is_flag=True,
    help="This node joins a cluster that has voters already.",
)
@click.option(
    "--release-version",
    "-r",
    metavar="VERSION",
    help="Enable the features of this release of Kafka, such as 4.1, so that it can join.",
)
@click.option(
    "--feature",
    "-f",
    "features",
    type=level_of,
    metavar="FEATURE=LEVEL",
    multiple=True,
    help="The level of one feature; may be repeated.",
)
@click.option(
    "--add-scram",
    "-S",
    "users",
    metavar="MECHANISM=[name=NAME,password=PASSWORD]",
    multiple=True,
    help="A first user with a SCRAM credential, so that somebody can log in; may be repeated.",
)
@click.option(
    "--ignore-formatted",
    "-g",
    is_flag=True,
    help="Skip directories that are formatted already.",
)
@click.pass_context
def command(
    context: click.Context,
    config: str | None,
    data: str | None,
    assignments: tuple[str, ...],
    cluster_id: str | None,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    release_version: str | None,
    features: tuple[tuple[str, int], ...],
    users: tuple[str, ...],
    ignore_formatted: bool,
) -> None:
    """Prepare the log directories of a node for a new cluster.

    A single node needs no formatting. Clusters do: each of their nodes is formatted once, with the
    same --cluster-id and first voters.

    \b
    headrace format random-uuid
    headrace format --config node-1.properties --standalone
    headrace format --config broker.properties --cluster-id 5L6g3nShT-eMCtK--X86sw
    headrace format --add-scram 'SCRAM-SHA-256=[name=admin,password=admin-secret]'
    headrace format info --config node-1.properties
    """
    if context.invoked_subcommand is not None:
        return
    settings = settings_of(config, assignments, data)
    quorum = Quorum(standalone, initial_controllers, no_initial_controllers)
    node = new_node(settings, quorum, cluster_id, release_version, dict(features))
    node = msgspec.structs.replace(node, bootstrap=first_users(users, node.levels))
    _format(settings, node, ignore_formatted=ignore_formatted)


@command.command("random-uuid")
def random_uuid_command() -> None:
    """Print a new id for a cluster or a log directory."""
    print_line(to_text(random_uuid()))


@command.command("info")
@_node_options
@json_option
def info(config: str | None, data: str | None, assignments: tuple[str, ...], as_json: bool) -> int:
    """Show the log directories of a node, and exit with 1 if one is not formatted."""
    settings = settings_of(config, assignments, data)
    states = [_state(directory) for directory in _directories(settings)]
    if as_json:
        print_json(states)
    else:
        print_rows(
            states,
            {
                "directory": lambda one: one.directory,
                "state": lambda one: one.state,
                "cluster": lambda one: one.cluster_id,
                "node": lambda one: one.node_id,
                "directory id": lambda one: one.directory_id,
            },
        )
    problems = list(problems_of(states, settings.node_id))
    for problem in problems:
        warn(problem)
    return 1 if problems else 0


def settings_of(config: str | None, assignments: Sequence[str], data: str | None) -> BrokerSettings:
    """Return the settings of a node, as `headrace up` reads them."""
    entries = read_entries(config) if config is not None else []
    places = {entry.name: f"{config} line {entry.line}" for entry in entries}
    settings, _ = load(properties_of(entries, assignments, data=data), places)
    return settings


def new_node(
    settings: BrokerSettings,
    quorum: Quorum,
    cluster_id: str | None,
    release: str | None,
    features: Mapping[str, int],
) -> NewNode:
    """Return the facts to write; raise if options and settings exclude each other."""
    _check_quorum(settings, quorum)
    is_first = quorum.standalone or settings.is_single_node
    if cluster_id is None and not is_first:
        raise InvalidConfig(
            "give --cluster-id, the same for all nodes of the cluster; headrace format random-uuid "
            "prints a new one"
        )
    return NewNode(
        node_id=settings.node_id,
        controller_endpoint=_endpoint(settings) if is_first else None,
        voters=_voters(settings, quorum),
        cluster_id=cluster_id,
        levels=new_cluster_levels(
            release,
            features,
            default=DEFAULT_LEVELS if settings.is_single_node else CLUSTER_LEVELS,
            has_static_quorum=bool(settings.quorum_voters),
        ),
    )


def first_users(users: Sequence[str], levels: Mapping[str, int]) -> list[UserScramCredentialRecord]:
    """Return the records of the first users."""
    if users and not has_scram(levels[METADATA_VERSION]):
        raise InvalidConfig("--add-scram needs a --release-version of 3.5 or later")
    return [parse_first_user(user) for user in users]


def problems_of(states: Sequence[DirectoryState], node_id: int) -> list[str]:
    """Return why a node could not start on these directories; empty if it can."""
    problems = [f"{one.directory} is not formatted" for one in states if one.cluster_id is None]
    problems += [
        f"{one.directory} belongs to node {one.node_id}, and node.id is {node_id}"
        for one in states
        if one.node_id not in (None, node_id)
    ]
    clusters = {one.cluster_id for one in states if one.cluster_id is not None}
    if len(clusters) > 1:
        problems.append(f"the directories belong to clusters {', '.join(sorted(clusters))}")
    return problems


def _check_quorum(settings: BrokerSettings, quorum: Quorum) -> None:
    given = quorum.options
    if len(given) > 1:
        raise InvalidConfig(f"{' and '.join(given)} exclude each other; give one")
    is_dynamic = quorum.standalone or quorum.initial_controllers is not None
    if settings.quorum_voters and is_dynamic:
        raise InvalidConfig(
            f"{_VOTERS} makes a static quorum, which needs no {given[0]}: remove the option, or "
            "set controller.quorum.bootstrap.servers instead of the voters"
        )
    if quorum.standalone and not settings.is_controller:
        raise InvalidConfig(
            "--standalone is for controllers: add controller to process.roles, or use "
            "--no-initial-controllers"
        )
    needs_choice = settings.is_controller and not settings.is_single_node
    if needs_choice and not settings.quorum_voters and not given:
        raise InvalidConfig(
            "say how the quorum begins: --standalone for the first controller, "
            "--initial-controllers for several, --no-initial-controllers to join one"
        )


def _voters(settings: BrokerSettings, quorum: Quorum) -> tuple[Voter, ...]:
    if quorum.initial_controllers is None:
        return ()
    return parse_first_voters(quorum.initial_controllers, settings.controller_listener_names[0])


def _endpoint(settings: BrokerSettings) -> Endpoint:
    """The address of a controller that is the only voter at first."""
    name = settings.controller_listener_names[0]
    if settings.is_single_node:
        return unused_endpoint(name)
    listener = settings.advertised[name]
    if not listener.port:
        raise InvalidConfig(f"listeners: {listener} needs a port, by which others find it")
    host = "localhost" if listener.is_every_interface else listener.host
    return Endpoint(name, host, listener.port)


def _format(settings: BrokerSettings, node: NewNode, *, ignore_formatted: bool) -> None:
    directories = _directories(settings)
    if not ignore_formatted:
        check_unformatted(directories)
    before = {path for path in directories if read_identity(path) is not None}
    now_ms = time.time_ns() // 1_000_000
    identities = format_directories(directories, settings.metadata_directory, node, now_ms)
    level = node.levels[METADATA_VERSION]
    for path in directories:
        if path in before:
            print_line(f"{path} is already formatted")
            continue
        print_line(
            f"formatted {path} for node {node.node_id} of cluster {identities[path].cluster_id} "
            f"with {METADATA_VERSION} {METADATA_VERSION_NAMES[level]}"
        )


def _directories(settings: BrokerSettings) -> list[str]:
    """The metadata directory first."""
    return list(dict.fromkeys((settings.metadata_directory, *settings.directories)))


def _state(directory: str) -> DirectoryState:
    try:
        identity = read_identity(directory)
    except (OSError, HeadraceError) as error:
        return DirectoryState(directory=directory, state=f"unreadable: {error}")
    if identity is None:
        return DirectoryState(directory=directory, state="not formatted")
    return DirectoryState(
        directory=directory,
        state="formatted",
        cluster_id=identity.cluster_id,
        node_id=identity.node_id,
        directory_id=to_text(identity.directory_id),
    )
