"""Options and value types that several commands share, so that they look and act alike."""

import datetime as dt
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli.defaults import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client.admin import Admin

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


def moment(text: str) -> int:
    """An option's value that is a point in time, as milliseconds since 1970."""
    try:
        return parse_moment(text, now_ms=time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a time; give one like 2026-03-01T12:00:00Z,"
            " milliseconds since 1970, or how long ago: 90s, 15m, 2h, 7d"
        ) from error


def duration_ms(text: str) -> int:
    """An option's value that is a length of time, in milliseconds."""
    found = _AGO.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no duration; give one like 90s, 15m, 2h, 7d")
    return int(float(found[1]) * _UNIT_MS[found[2]])


def size_bytes(text: str) -> int:
    """An option's value that is a size, in bytes."""
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * _UNIT_BYTES[(found[2] or "B").lower()]) if found else 0
    if size < 1:
        raise click.BadParameter(f"{text!r} is no size; give one like 128MB, 1GB, 64MiB")
    return size


def name_value(text: str) -> tuple[str, str]:
    """An option's value of the form `name=value`."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not of the form name=value")
    return name, value


def parse_moment(text: str, *, now_ms: int) -> int:
    """Milliseconds since 1970; a time without a zone is local time, as people mean it."""
    if text.isdigit():
        return int(text)
    if ago := _AGO.fullmatch(text):
        return now_ms - int(float(ago[1]) * _UNIT_MS[ago[2]])
    return round(dt.datetime.fromisoformat(text).timestamp() * 1000)


def bootstrap_option(command: _Command) -> _Command:
    """`--bootstrap`: which cluster to talk to."""
    return click.option(
        "--bootstrap",
        "-b",
        envvar=BOOTSTRAP_VARIABLE,
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        metavar="HOST:PORT,...",
        help=f"Brokers to ask first; also from {BOOTSTRAP_VARIABLE}.",
    )(command)


def command_config_option(command: _Command) -> _Command:
    """`--command-config`: how to reach a cluster that asks for more than an address."""
    return click.option(
        "--command-config",
        envvar="HEADRACE_COMMAND_CONFIG",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Properties with client settings, such as sasl.username; also from"
        " HEADRACE_COMMAND_CONFIG.",
    )(command)


def cluster_options(command: _Command) -> _Command:
    """What every command that asks a cluster takes."""
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Give up after this long.",
    )
    return bootstrap_option(command_config_option(property_option(timeout(command))))


def json_option(command: _Command) -> _Command:
    """`--json`: one document for programs in place of a table for people."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


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
    """`--set name=value`: a setting of what the command is about; every command spells it so."""
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
    """`--unset name`: the setting has its default again."""
    return click.option(
        "--unset",
        "-u",
        "unset",
        metavar="NAME",
        multiple=True,
        help="Back to the default; may be repeated.",
    )(command)


def property_option(command: _Command) -> _Command:
    """`-X name=value`: one client setting, over those of the file."""
    return click.option(
        "--property",
        "-X",
        "properties",
        type=name_value,
        metavar="NAME=VALUE",
        multiple=True,
        help="One client setting, by librdkafka's name; may be repeated.",
    )(command)


def admin(
    bootstrap: str,
    command_config: str | None,
    timeout: float,
    properties: Iterable[tuple[str, str]] = (),
) -> "Admin":
    """The administration of the cluster that `cluster_options` name."""
    from headrace.client.admin import Admin

    return Admin(bootstrap, client_properties(command_config, properties), timeout)


def client_properties(
    path: str | None, properties: Iterable[tuple[str, str]] = ()
) -> dict[str, str]:
    """The settings of `--command-config`, and above them those of `--property`."""
    if path is None:
        return dict(properties)
    from headrace.settings.properties import read

    return {**read(path), **dict(properties)}


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost, when there is someone to ask; scripts are trusted."""
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        click.confirm(question, abort=True, err=True)


def as_mapping(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Settings from repeated `name=value` options; naming one twice is a mistake."""
    settings: dict[str, str] = {}
    for name, value in pairs:
        if name in settings:
            raise HeadraceError(f"{name} is given twice; keep the one that you mean")
        settings[name] = value
    return settings
