"""The signals of a user, a supervisor or a closing terminal that end a program."""

import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ending_signals() -> list[signal.Signals]:
    """The signals that end this program, without those that `nohup` or a shell ignores."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
