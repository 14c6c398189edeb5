"""The `headrace` program: import the command's module, run it, and report failures in one line.

The start of the broker must not pay for other commands, so only the called command's module is
imported.
"""

import os
import sys
from collections.abc import Sequence

from headrace.errors import HeadraceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    command = given[0] if given else ""
    try:
        return _run(given)
    except HeadraceError as error:
        return _fail(_explained(error, command), error.exit_code)
    except ImportError as error:
        from headrace.cli.extras import missing_advice

        advice = missing_advice(error, command)
        if advice is None:
            raise
        return _fail(advice)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does; avoid Python's error message at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    from headrace.cli.group import run

    return run(arguments)


def _open_closed_streams() -> None:
    """Open /dev/null for standard streams that the parent process has closed.

    Otherwise the next socket would get the descriptor's number and be read as standard input.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _explained(error: HeadraceError, command: str) -> str:
    """Return the error's message, with advice if a client of a cluster raised it.

    A node that fails to start must not load the client in order to report that.
    """
    if "headrace.client.addresses" not in sys.modules:
        return str(error) or type(error).__name__
    from headrace.cli.advice import with_advice

    return with_advice(error, command)


def _fail(message: str, exit_code: int = 1) -> int:
    print(f"headrace: {message}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
