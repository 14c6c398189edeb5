"""Settings from the command line of `headrace up`, and errors about them."""

import errno
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headrace.cli.main import main
from headrace.cli.up import advised, listen_address, properties_of, warn_of_shared_disks
from headrace.errors import CannotListen
from headrace.settings.properties import Property


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A node sends the log of its process to standard error; this process is not a node."""
    root, ours = logging.getLogger(), logging.getLogger("headrace")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def test_options_override_properties_and_the_file() -> None:
    entries = [Property("log.dir", "/file", 1), Property("num.partitions", "2", 2)]
    properties = properties_of(entries, ["num.partitions=3"], data="/option", metrics=9)
    assert properties == {
        "log.dirs": "/option",
        "num.partitions": "3",
        "headrace.metrics.port": "9",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
    }


def test_a_bare_start_has_defaults() -> None:
    assert properties_of([], []) == {
        "log.dirs": "headrace-data",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
    }


def test_an_option_starts_a_registry() -> None:
    properties = properties_of([], [], registry="127.0.0.1:8081")
    assert properties["headrace.registry.listeners"] == "127.0.0.1:8081"


@pytest.mark.parametrize("listen", ["0.0.0.0:9092", "[::]:9092", ":9092"])
def test_every_interface_has_one_spelling(listen: str) -> None:
    given = [Property("advertised.listeners", "PLAINTEXT://far:1", 1)]
    properties = properties_of(given, [], listen=listen)
    assert properties["listeners"] == "PLAINTEXT://:9092"
    assert "advertised.listeners" not in properties


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("localhost", "HOST:PORT"),
        ("::1:9092", "HOST:PORT"),
        ("a:b", "HOST:PORT"),
        ("a:70000", "port 70000 of 'a:70000' is not between 0 and 65535"),
    ],
)
def test_an_invalid_address_is_rejected(text: str, reported: str) -> None:
    with pytest.raises(click.BadParameter, match=reported):
        listen_address(text)


def test_mistakes_in_a_file_are_reported_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# ours\nnum.partitions=many\n\nlog.retention.huors=\\\n  4\n")
    assert main(["up", "--config", str(file), "--data", str(tmp_path / "data")]) == 1
    shown = capsys.readouterr().err
    assert f"{file} line 2: num.partitions" in shown
    assert f"{file} line 4: " in shown
    assert "Did you mean log.retention.hours?" in shown


def test_a_rule_over_several_properties_is_reported_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("\nlisteners=PLAINTEXT://a:1,PLAINTEXT://b:2\n")
    assert main(["up", "--config", str(file), "--data", str(tmp_path / "data")]) == 1
    assert f"{file} line 2: listeners names PLAINTEXT more than once" in capsys.readouterr().err


def taken_port() -> socket.socket:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return taken


@pytest.mark.parametrize("format", ["text", "json"])
def test_an_address_that_is_taken_is_reported_with_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    with taken_port() as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ["--data", str(tmp_path), "--listen", address]
        assert main(["up", *options, "--set", f"headrace.log.format={format}"]) == 1
    reported = f"listeners: cannot listen on {address}, address already in use; choose another"
    last = capsys.readouterr().err.splitlines()[-1]
    if format == "json":
        entry = json.loads(last)
        assert (entry["message"], entry["error"][: len(reported)]) == ("node not started", reported)
    else:
        assert last.startswith(f"headrace: {reported} address with --listen")


def test_a_metrics_port_that_is_taken_is_reported_once_with_both_ways() -> None:
    """An error as asyncio raises it: the system's number, and a text that repeats the address."""
    essay = "error while attempting to bind on address ('127.0.0.1', 9644): address already in use"
    reported = advised(
        CannotListen(
            "127.0.0.1:9644",
            OSError(errno.EADDRINUSE, essay),
            config_name="headrace.metrics.port",
        )
    )
    assert reported.count("127.0.0.1") == 1
    assert "choose another address with --metrics (make run: METRICS=...)" in reported


KINDS = {"/remote": "nfs4", "/home": "fuse.sshfs", "/disk": "xfs", "/memory": "tmpfs"}


def test_disks_shared_with_other_programs_cause_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_shared_disks([*KINDS, "/remote"], KINDS.get)
    fields = [vars(record) for record in caplog.records]
    assert [(one["directory"], one["file_system"]) for one in fields] == [
        ("/remote", "nfs4"),
        ("/home", "fuse.sshfs"),
    ]
    assert all("local disk" in one["advice"] for one in fields)


def test_an_unknown_disk_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_shared_disks(["/disk"], lambda path: None)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nodes", "3", "--brokers", "2"], "exclude each other"),
        (["--no-restart"], "needs --nodes or --brokers"),
        (["--nodes", "2"], "3<=x<=32"),
    ],
)
def test_options_of_clusters_that_do_not_fit_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_single_node_does_not_start_on_the_data_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.properties").write_text(
        "cluster.id=c\nhost=127.0.0.1\nports=1,2,3\ncontrollers=1@h:4:A,2@h:5:B,3@h:6:C\n"
    )
    assert main(["up", "--data", str(tmp_path)]) == 1
    assert "start it with --nodes 3" in capsys.readouterr().err


def test_a_secured_node_does_not_start_open_by_its_own_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SEC-1: the directory of the node is not the one that `--secure` was given."""
    (tmp_path / "security").mkdir()
    (tmp_path / "security" / "client.properties").touch()
    assert main(["up", "--data", str(tmp_path / "node-1")]) == 1
    assert "was made by --secure" in capsys.readouterr().err
