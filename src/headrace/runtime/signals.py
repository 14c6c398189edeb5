"""The signals by which a user, a supervisor or a closing terminal asks a program to end."""

import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heeded() -> list[signal.Signals]:
    """Those that end this program; what `nohup`, or a shell for its jobs, ignores stays so."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
