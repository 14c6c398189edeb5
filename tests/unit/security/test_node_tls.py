"""Contexts of a node follow its files, once these have been written in full."""

import logging
from pathlib import Path

import pytest

from headrace.security.node_tls import NodeTls
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import load
from tests.builders.certificates import Authority

AUTHORITY = Authority()


def settings_of(keys: Path) -> BrokerSettings:
    settings, _ = load(
        {
            "listeners": "SSL://localhost:9093",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keys),
        }
    )
    return settings


def test_files_are_read_when_they_are_the_same_at_two_looks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-2: a file that is half written causes no error."""
    keys = AUTHORITY.issue().write(tmp_path / "own.pem")
    settings = settings_of(keys)
    tls = NodeTls(settings)
    listener = tls.of("SSL")
    assert listener is not None
    old = listener.server
    new = AUTHORITY.issue()
    keys.write_text(new.key_pem()[:40])
    tls.follow(settings)
    new.write(keys)
    tls.follow(settings)
    assert listener.server is old
    tls.follow(settings)
    assert listener.server is not old
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


def test_broken_files_are_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SEC-2."""
    keys = AUTHORITY.issue().write(tmp_path / "own.pem")
    settings = settings_of(keys)
    tls = NodeTls(settings)
    keys.write_text("broken")
    for _ in range(5):
        tls.follow(settings)
    assert [one.message for one in caplog.records] == [
        "new certificates rejected, the old ones stay"
    ]
    assert tls.reload_failures == 1
