"""The click side of the program: a group that imports a command when it is called."""

import click

from headrace.cli.main import COMMANDS, load
from headrace.errors import HeadraceError


class LazyGroup(click.Group):
    """Knows its commands by name and summary; their modules are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = load(cmd_name).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def run(arguments: list[str]) -> int:
    """Run a click command line without click's own `sys.exit`, so that one place decides."""
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
    help="Show the version and stop.",
)
def headrace() -> None:
    """Headrace: a Kafka-compatible streaming platform.

    Every command but `up` and `doctor` works with any Kafka cluster; name one with --bootstrap
    or the environment variable HEADRACE_BOOTSTRAP.
    """
