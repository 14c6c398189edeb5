"""The root click group: it imports a command's module when the command is called.

The table has the summaries of all commands. A command's module defines `command`, a click command.
"""

from difflib import get_close_matches
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from headrace.errors import HeadraceError

COMMANDS: dict[str, str] = {
    "up": "Start a node and serve Kafka clients until Ctrl-C.",
    "format": "Prepare the log directories of a node for a new cluster.",
    "topics": "List, describe, create, alter and delete topics.",
    "configs": "Describe and alter the settings of topics and brokers.",
    "produce": "Write lines from standard input as records.",
    "consume": "Write records to standard output.",
    "queue": "Use a topic as a work queue: put and take tasks, show statistics.",
    "offsets": "Show the first and end offsets of partitions, or offsets by time.",
    "records": "Show a record with its batch, list producers, delete records.",
    "groups": "List, describe, reset and delete groups.",
    "transactions": "List and describe transactions, abort hanging ones.",
    "users": "List, add and remove users of SCRAM logins.",
    "acls": "List, add, remove and explain the rules of who may do what.",
    "roles": "List roles, grant and revoke them, list their members.",
    "quotas": "List, set and remove quotas of users, clients and addresses.",
    "usage": "Show who uses the brokers: requests, bytes and time.",
    "tokens": "Create, list, renew and expire delegation tokens.",
    "profile": "Write and show settings for managed Kafka services.",
    "certs": "Make certificates for development, show any certificate.",
    "log": "Dump the files of a log as text, list segments and directories.",
    "cluster": "Describe a cluster, check its health, elect leaders, change controllers.",
    "pipelines": "Create, check, draw, test and run pipelines on Spark.",
    "tables": "Show the lake's tables: rows, history, lineage, differences.",
    "registry": "Run a schema registry with Confluent's REST interface.",
    "schema": "Register, compare, check, move and generate schemas.",
    "rest": "Run a REST proxy: produce, consume and administer over HTTP.",
    "serve": "Serve SQL over the lake's tables by HTTP.",
    "capture": "Write a topic into Avro or Parquet files, one per time window.",
    "spark": "Check Java and Spark, prepare faster starts, fetch connector jars.",
    "bench": "Measure throughput and latency of a cluster under load.",
    "doctor": "Check this machine for problems before they cost data.",
    "size": "Calculate the machines that a load needs.",
    "cost": "Calculate what clusters cost per month and year.",
    "completion": "Print the script that completes commands in bash, zsh or fish.",
}


class LazyGroup(click.Group):
    """A group that lists commands from a table and imports their modules on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"headrace.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; reject an unknown name with the nearest ones."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = get_close_matches(name, COMMANDS, n=2, cutoff=0.7)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise click.UsageError(f"No such command {name!r}.{hint}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table, without importing the commands."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=summary)
            for name, summary in COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def run(arguments: list[str]) -> int:
    """Run a click command line without click's own `sys.exit`; `main` decides the exit code."""
    try:
        result = headrace.main(arguments, prog_name="headrace", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as abort:
        raise KeyboardInterrupt from abort
    return result if isinstance(result, int) else 0


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"headrace {version('headrace')}")
        except PackageNotFoundError as error:
            raise HeadraceError("headrace is not installed; run: pip install -e .") from error
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and exit.",
)
def headrace() -> None:
    """Headrace: a Kafka-compatible streaming platform.

    Commands that connect to a broker work with any Kafka cluster; name one with --bootstrap or the
    environment variable HEADRACE_BOOTSTRAP.
    """
