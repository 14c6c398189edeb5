"""Passwords for commands: from a prompt, standard input, a file or the environment.

No password is an argument of a command, because other users of the machine see arguments.
"""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace.cli.options import options_as
from headrace.cli.output import warn
from headrace.errors import HeadraceError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class PasswordOptions(msgspec.Struct, frozen=True):
    """The source of a password; a prompt if no option names one."""

    from_stdin: bool = False
    password_file: Path | None = None
    password_env: str | None = None

    def read(self, user: str, *, repeated: bool = True) -> str:
        """Return the password; raise if the source has none. A new one is entered twice."""
        sources = [self.from_stdin, self.password_file is not None, self.password_env is not None]
        if sum(sources) > 1:
            raise click.UsageError(
                "give one of --password-stdin, --password-file and --password-env"
            )
        password = self._read(user, repeated=repeated)
        if not password:
            raise HeadraceError("the password is empty")
        return password

    def _read(self, user: str, *, repeated: bool) -> str:
        if self.password_file is not None:
            return _of_file(self.password_file)
        if self.password_env is not None:
            if self.password_env not in os.environ:
                raise HeadraceError(f"the environment has no variable {self.password_env}")
            return os.environ[self.password_env]
        if self.from_stdin:
            return _without_line_end(sys.stdin.readline())
        if not sys.stdin.isatty():
            raise click.UsageError(
                "there is no terminal to ask for the password: give --password-stdin,"
                " --password-file or --password-env"
            )
        asked: str = click.prompt(
            f"Password of {user}", hide_input=True, confirmation_prompt=repeated, err=True
        )
        return asked


def password_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--password-stdin`, `--password-file` and `--password-env`, passed as `password`."""
    command = options_as(PasswordOptions, "password")(command)
    for option in reversed(
        (
            click.option(
                "--password-stdin",
                "from_stdin",
                is_flag=True,
                help="Read the password from a line of standard input, instead of asking for it.",
            ),
            click.option(
                "--password-file",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Read the password from the first line of a file.",
            ),
            click.option(
                "--password-env",
                metavar="VARIABLE",
                help="Read the password from a variable of the environment.",
            ),
        )
    ):
        command = option(command)
    return command


def _of_file(path: Path) -> str:
    if path.stat().st_mode & _OTHERS:
        warn(f"{path} is readable by other users; chmod 600 protects it")
    with path.open(encoding="utf-8") as file:
        return _without_line_end(file.readline())


def _without_line_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")
