"""Runs that are asked to end by a signal."""

import os
import signal

import pytest

from headrace.pipelines.stopping import StopRequest

pytestmark = pytest.mark.usefixtures("heeds_hangups")


def test_a_signal_requests_the_end_and_is_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda _, text: told.append(text))
    with StopRequest([], None) as stop:
        before = stop()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert (before, stop(), len(told)) == (False, True, 1)


def test_a_terminal_that_was_closed_ends_the_run_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It sends SIGHUP, and what is written to it fails."""

    def write(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", write)
    with StopRequest([], None) as stop:
        signal.raise_signal(signal.SIGHUP)
        assert stop()
