"""`headrace cluster`: describe a cluster, check its health, elect leaders, change controllers."""

import click
import msgspec

from headrace.cli.options import ClusterOptions, admin_options, confirm, yes_option
from headrace.cli.output import print_json, print_line, print_rows, print_table, report
from headrace.client.descriptions import ClusterDescription, Outcome
from headrace.client.elections import ElectionType
from headrace.client.health import Health, Problem, problems_of
from headrace.errors import HeadraceError, InvalidConfig

_NOT_NEEDED = {"ELECTION_NOT_NEEDED": "has the right leader already"}


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON document of `headrace cluster health`."""

    is_healthy: bool
    brokers: int
    topics: int
    partitions: int
    problems: list[Problem]


@click.group(
    "cluster",
    short_help="Describe a cluster, check its health, elect leaders, change controllers.",
    invoke_without_command=True,
)
@admin_options
@click.pass_context
def command(context: click.Context, /, as_json: bool, cluster: ClusterOptions) -> None:
    """Describe brokers, metadata quorum and features."""
    if context.invoked_subcommand is None:
        _describe(cluster, as_json=as_json)


@command.command("describe")
@admin_options
def describe(as_json: bool, cluster: ClusterOptions) -> None:
    """Describe brokers, metadata quorum and features."""
    _describe(cluster, as_json=as_json)


@command.command("health")
@admin_options
def health(as_json: bool, cluster: ClusterOptions) -> int:
    """Report missing leaders, replicas and nodes; exit with 1 if there is a problem."""
    with cluster.admin() as client:
        found = Health.read(client)
    problems = problems_of(found)
    if as_json:
        print_json(
            HealthReport(
                is_healthy=not problems,
                brokers=len(found.brokers),
                topics=len(found.topics),
                partitions=found.partition_count,
                problems=problems,
            )
        )
    elif problems:
        print_rows(
            problems,
            {
                "problem": lambda one: one.kind,
                "of": lambda one: one.subject,
                "found": lambda one: one.found,
            },
        )
    else:
        print_line(
            f"healthy: {len(found.brokers)} brokers and {found.partition_count} partitions of "
            f"{len(found.topics)} topics are in sync"
        )
    return 1 if problems else 0


@command.command("elect")
@click.option("--topic", metavar="TOPIC", help="Only partitions of this topic.")
@click.option(
    "--partition",
    "-p",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition of the topic; may be repeated.",
)
@click.option(
    "--unclean",
    is_flag=True,
    help="Elect any running replica of partitions without a leader; loses records.",
)
@yes_option
@admin_options
def elect(
    topic: str | None,
    partitions: tuple[int, ...],
    unclean: bool,
    yes: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Return leaders to the first replica of each partition, or elect any replica.

    \b
    headrace cluster elect
    headrace cluster elect --topic orders --partition 0 --unclean
    """
    if partitions and topic is None:
        raise click.UsageError("--partition needs --topic")
    if unclean:
        confirm("Records that only the missing replicas have are lost. Go on?", yes=yes)
    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    with cluster.admin() as client:
        chosen = None
        if topic is not None:
            numbers = partitions or client.partitions.of(topic)
            chosen = [(topic, number) for number in numbers]
        results = client.elections.hold(kind, chosen)
    outcomes = [
        Outcome(name=f"{one.topic}-{one.partition}", error=one.error, message=one.message)
        for one in results
    ]
    if not outcomes and not as_json:
        print_line("every partition has its preferred leader")
    return report(outcomes, done="elected a leader", as_json=as_json, forgiven=_NOT_NEEDED)


@command.command("add-controller")
@click.option(
    "--config",
    "-c",
    type=click.Path(exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The server.properties of the controller, on its machine.",
)
@admin_options
def add_controller(config: str, as_json: bool, cluster: ClusterOptions) -> int:
    """Add a running controller to the voters; run this on its machine.

    The controller was formatted with --no-initial-controllers and runs, so that it has the
    metadata log already.
    """
    node_id, directory_id, endpoints = _controller_of(config)
    with cluster.admin() as client:
        outcome = client.nodes.add_controller(node_id, directory_id, endpoints)
    return report([outcome], done="is a voter", as_json=as_json)


@command.command("remove-controller")
@click.argument("controller", type=click.IntRange(min=0))
@click.argument("directory_id", required=False)
@yes_option
@admin_options
def remove_controller(
    controller: int,
    directory_id: str | None,
    yes: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Remove a controller from the voters; DIRECTORY_ID is needed if two have its number."""
    confirm(f"Remove controller {controller} from the voters?", yes=yes)
    with cluster.admin() as client:
        directory_id = directory_id or _directory_of(client.nodes.describe(), controller)
        outcome = client.nodes.remove_controller(controller, directory_id)
    return report([outcome], done="is no voter any more", as_json=as_json)


@command.command("unregister")
@click.argument("broker", type=click.IntRange(min=0))
@yes_option
@admin_options
def unregister(broker: int, yes: bool, as_json: bool, cluster: ClusterOptions) -> int:
    """Remove a broker that is gone for good; stop a running broker first."""
    confirm(f"Unregister broker {broker}?", yes=yes)
    with cluster.admin() as client:
        outcome = client.nodes.unregister(broker)
    return report([outcome], done="unregistered", as_json=as_json)


def _controller_of(config: str) -> tuple[int, str, list[tuple[str, str, int]]]:
    """Return id, directory and endpoints of the controller that a properties file starts."""
    from headrace.metadata.log.formatting import read_identity
    from headrace.protocol.uuids import to_text
    from headrace.settings.broker_loading import load
    from headrace.settings.properties import read

    settings, _ = load(read(config))
    identity = read_identity(settings.metadata_directory)
    if not settings.controller_listeners or not settings.is_controller:
        raise InvalidConfig(f"{config} starts no controller that others can reach")
    if identity is None:
        raise HeadraceError(
            f"{settings.metadata_directory} is not formatted; format it with "
            "headrace format --no-initial-controllers, and start the controller"
        )
    addresses = [settings.advertised[one.name] for one in settings.controller_listeners]
    for address in addresses:
        if address.is_every_interface:
            raise InvalidConfig(
                f"{config}: other nodes cannot reach {address}; give its host in "
                "advertised.listeners"
            )
    endpoints = [(one.name, one.host, one.port) for one in addresses]
    return identity.node_id, to_text(identity.directory_id), endpoints


def _directory_of(described: ClusterDescription, controller: int) -> str:
    """Return the log directory of a voter as the quorum has it."""
    replicas = described.quorum.replicas if described.quorum is not None else []
    voters = [one for one in replicas if one.role == "voter"]
    found = [one.directory_id for one in voters if one.id == controller]
    if len(found) == 1 and found[0] is not None:
        return found[0]
    if found:
        raise HeadraceError(f"name the directory id of controller {controller} as well")
    known = ", ".join(str(one.id) for one in voters) or "not known"
    raise HeadraceError(f"controller {controller} is not a voter; the voters are {known}")


def _describe(cluster: ClusterOptions, *, as_json: bool) -> None:
    with cluster.admin() as client:
        found = client.nodes.describe()
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(found: ClusterDescription) -> None:
    print_line(f"cluster {found.cluster_id}")
    print_rows(
        found.brokers,
        {
            "broker": lambda one: one.id,
            "host": lambda one: one.host,
            "port": lambda one: one.port,
            "rack": lambda one: one.rack,
            "state": lambda one: "fenced" if one.is_fenced else "up",
        },
    )
    if found.quorum is not None:
        quorum = found.quorum
        print_line(
            f"\nmetadata quorum: leader {quorum.leader} in epoch {quorum.leader_epoch},"
            f" high watermark {quorum.high_watermark}"
        )
        print_table(
            ("node", "role", "log end offset", "lag", "directory id"),
            [
                (one.id, one.role, one.log_end_offset, one.lag, one.directory_id)
                for one in quorum.replicas
            ],
        )
    print_line("")
    print_table(
        ("feature", "level", "supported"),
        [
            (one.name, one.finalized, f"{one.min_version}-{one.max_version}")
            for one in found.features
        ],
    )
