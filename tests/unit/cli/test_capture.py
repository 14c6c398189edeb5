"""Signals end `headrace capture`."""

import signal

from headrace.cli.capture import Stop


def test_a_signal_that_nohup_ignores_does_not_ask_for_the_end() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stop() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.is_requested()
            signal.raise_signal(signal.SIGTERM)
            assert stop.is_requested()
    finally:
        signal.signal(signal.SIGHUP, before)
