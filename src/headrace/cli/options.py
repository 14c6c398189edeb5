"""Options and value types that several commands share."""

import datetime as dt
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from headrace.cli.defaults import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client.admin import Admin
    from headrace.client.descriptions import ConfigChange

_Command = TypeVar("_Command", bound=Callable[..., Any])

_AGO = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]i?B|B)?", re.IGNORECASE)
_UNIT_BYTES = {
    "b": 1,
    "kb": 1_000,
    "mb": 1_000_000,
    "gb": 1_000_000_000,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class ClusterOptions(msgspec.Struct, frozen=True):
    """The addresses of a cluster, the settings of its clients and their time limit."""

    bootstrap: str
    command_config: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    timeout: float = 30.0

    def admin(self) -> "Admin":
        """Connect an admin client to the cluster."""
        from headrace.client.admin import Admin

        return Admin(self.bootstrap, self.settings(), self.timeout)

    def settings(self) -> dict[str, str]:
        """Return the settings of clients; `bootstrap` has their brokers."""
        return without_brokers(client_properties(self.command_config, self.properties))


class SettingOptions(msgspec.Struct, frozen=True):
    """Changes of a resource's settings, from `--set`, `--unset` and others."""

    configs: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    appends: tuple[tuple[str, str], ...] = ()
    subtracts: tuple[tuple[str, str], ...] = ()

    def changes(self) -> "list[ConfigChange]":
        """Return the steps of an incremental change."""
        from headrace.client.descriptions import ConfigChange

        steps = (("set", self.configs), ("append", self.appends), ("subtract", self.subtracts))
        return [
            *(ConfigChange(name=name, operation="delete") for name in self.unset),
            *(
                ConfigChange(name=name, operation=operation, value=value)
                for operation, given in steps
                for name, value in given
            ),
        ]


class LocalFolder(click.Path):
    """A folder of this machine; the URL of an object store is rejected."""

    reason = ""
    """Follows `is not a folder` in the error."""

    def __init__(self, *, exists: bool = False, path_type: type = Path) -> None:
        super().__init__(exists=exists, file_okay=False, path_type=path_type)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reject a URL, which would become a folder of that name."""
        if "://" in str(value):
            self.fail(
                f"{value} is not a folder{self.reason}. Mount other storage, and give its path",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class LakeFolder(LocalFolder):
    """The folder of a lake."""

    reason = ": tables, their locks and checkpoints are files of one file system"


def moment(text: str) -> int:
    """Parse an option's point in time into milliseconds since 1970."""
    try:
        return parse_moment(text, now_ms=time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a time; give one like 2026-03-01T12:00:00Z,"
            " milliseconds since 1970, or how long ago: 90s, 15m, 2h, 7d"
        ) from error


def duration_ms(text: str) -> int:
    """Parse an option's duration into milliseconds."""
    found = _AGO.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration; give one like 90s, 15m, 2h, 7d")
    return int(float(found[1]) * _UNIT_MS[found[2]])


def size_bytes(text: str) -> int:
    """Parse an option's size into bytes."""
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * _UNIT_BYTES[(found[2] or "B").lower()]) if found else 0
    if size < 1:
        raise click.BadParameter(f"{text!r} is not a size; give one like 128MB, 1GB, 64MiB")
    return size


def name_value(text: str) -> tuple[str, str]:
    """Parse an option's value of the form `name=value`."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not of the form name=value")
    return name, value


def parse_moment(text: str, *, now_ms: int) -> int:
    """Return milliseconds since 1970; a time without a zone is local time."""
    if text.isdigit():
        return int(text)
    if ago := _AGO.fullmatch(text):
        return now_ms - int(float(ago[1]) * _UNIT_MS[ago[2]])
    return round(dt.datetime.fromisoformat(text).timestamp() * 1000)


def options_as(
    kind: type[msgspec.Struct], name: str = "given"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Pass the options named like a struct's fields as one argument, a struct of that type.

    An absent option gets the field's default.
    """

    def gather(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*arguments: Any, **values: Any) -> Any:
            fields = {field: values.pop(field, None) for field in kind.__struct_fields__}
            given = {field: value for field, value in fields.items() if value is not None}
            return command(*arguments, **values, **{name: kind(**given)})

        return run

    return gather


def bootstrap_option(command: _Command) -> _Command:
    """`--bootstrap`: the addresses of the cluster."""
    return click.option(
        "--bootstrap",
        "-b",
        envvar=BOOTSTRAP_VARIABLE,
        default=_default_bootstrap,
        show_default=DEFAULT_BOOTSTRAP,
        metavar="HOST:PORT,...",
        help=f"Brokers to connect to first; also from {BOOTSTRAP_VARIABLE}, or from"
        " bootstrap.servers in --command-config.",
    )(command)


def _default_bootstrap() -> str:
    """Return the address in the file of `--command-config`, which is parsed first."""
    context = click.get_current_context(silent=True)
    path = context.params.get("command_config") if context is not None else None
    # While options are parsed, click marks those without a value by an object of its own.
    given = client_properties(path) if isinstance(path, str) else {}
    return given.get("bootstrap.servers") or DEFAULT_BOOTSTRAP


def command_config_option(command: _Command) -> _Command:
    """`--command-config`: client settings such as logins and certificates."""
    return click.option(
        "--command-config",
        is_eager=True,
        envvar="HEADRACE_COMMAND_CONFIG",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Properties file with client settings, such as sasl.username; also from"
        " HEADRACE_COMMAND_CONFIG.",
    )(command)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that connects to a cluster, passed as `cluster`."""
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Fail after this long.",
    )
    command = options_as(ClusterOptions, "cluster")(command)
    return bootstrap_option(command_config_option(property_option(timeout(command))))


def admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`cluster_options` and `--json`."""
    return cluster_options(json_option(command))


def delivery_options(command: _Command) -> _Command:
    """`--acks` and `--compression` of commands that produce."""
    codecs = click.Choice(["none", "gzip", "snappy", "lz4", "zstd"])
    compression = click.option(
        "--compression",
        type=codecs,
        default="none",
        show_default=True,
        help="Compression of batches.",
    )
    acks = click.option(
        "--acks",
        type=click.Choice(["0", "1", "all"]),
        default="all",
        show_default=True,
        help="Acknowledgement required for delivery.",
    )
    return acks(compression(command))


def log_format_option(command: _Command) -> _Command:
    """`--log-format` of commands that serve."""
    return click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Format of the log, for people or programs.",
    )(command)


def json_option(command: _Command) -> _Command:
    """`--json`: one document for programs instead of a table for people."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def yes_option(command: _Command) -> _Command:
    """`--yes` of commands that ask for confirmation."""
    help = "Skip the confirmation; scripts are never asked."
    return click.option("--yes", "-y", is_flag=True, help=help)(command)


def validate_only_option(command: _Command) -> _Command:
    """`--validate-only` of commands that change settings."""
    help = "Check, but change nothing."
    return click.option("--validate-only", is_flag=True, help=help)(command)


def partitions_option(help: str) -> Callable[[_Command], _Command]:
    """`--partition`: some partitions of the topic."""
    return click.option(
        "--partition",
        "-p",
        "partitions",
        type=click.IntRange(min=0),
        multiple=True,
        help=help,
    )


def set_option(help: str) -> Callable[[_Command], _Command]:
    """`--set name=value`: a setting of the command's resource, spelled alike everywhere."""
    return click.option(
        "--set",
        "-s",
        "configs",
        type=name_value,
        metavar="NAME=VALUE",
        multiple=True,
        help=help,
    )


def unset_option(command: _Command) -> _Command:
    """`--unset name`: restore the default of a setting."""
    return click.option(
        "--unset",
        "-u",
        "unset",
        metavar="NAME",
        multiple=True,
        help="Restore the default; may be repeated.",
    )(command)


def property_option(command: _Command) -> _Command:
    """`-X name=value`: one client setting, overriding the file."""
    return click.option(
        "--property",
        "-X",
        "properties",
        type=name_value,
        metavar="NAME=VALUE",
        multiple=True,
        help="One client setting, by librdkafka's name; may be repeated.",
    )(command)


def client_properties(
    path: str | None, properties: Iterable[tuple[str, str]] = ()
) -> dict[str, str]:
    """Return the settings of `--command-config`, overridden by those of `--property`."""
    if path is None:
        return dict(properties)
    from headrace.settings.properties import read

    return {**read(path), **dict(properties)}


def without_brokers(settings: Mapping[str, str]) -> dict[str, str]:
    """Return client settings without the brokers of a file, which options override."""
    return {name: value for name, value in settings.items() if name != "bootstrap.servers"}


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation on a terminal; scripts are not asked."""
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        click.confirm(question, abort=True, err=True)


def check_partitions(topic: str, wanted: Iterable[int], present: Sequence[int]) -> None:
    """Reject a partition that the topic does not have, naming the valid range."""
    if missing := sorted(set(wanted) - set(present)):
        raise HeadraceError(f"{topic} has no partition {missing[0]}; it has 0 to {present[-1]}")


def as_mapping(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Convert repeated `name=value` options to a mapping; reject a repeated name."""
    settings: dict[str, str] = {}
    for name, value in pairs:
        if name in settings:
            raise HeadraceError(f"{name} is given twice; remove one")
        settings[name] = value
    return settings
