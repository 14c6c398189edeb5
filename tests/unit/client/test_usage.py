"""Usage of a cluster: windows of nodes are added up by client."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from click.testing import CliRunner

from headrace.cli.usage import command
from headrace.client.usage import UsageUnavailable, added_up, by_part, read_usage
from headrace.quotas.usage_windows import MINUTE_MS, NodeUsage, UsageRow, UsageWindow


def used(user: str, client_id: str, size: int) -> UsageRow:
    return UsageRow(user, client_id, 1, size, 2 * size, 0.5)


def window(minute: int, *rows: UsageRow) -> UsageWindow:
    return UsageWindow(minute * MINUTE_MS, (minute + 1) * MINUTE_MS, list(rows))


FIRST = [window(1, used("ada", "app", 10)), window(2, used("ada", "app", 20))]
SECOND = [window(2, used("ada", "app", 1), used("bob", "app", 5))]


def test_windows_of_the_same_minute_are_added_up() -> None:
    """CLD-2(b)."""
    first, second = added_up([FIRST, SECOND], MINUTE_MS)
    assert first == FIRST[0]
    assert second.rows == [UsageRow("ada", "app", 2, 21, 42, 1.0), used("bob", "app", 5)]


def test_rows_of_a_client_id_are_added_up() -> None:
    (found,) = by_part(SECOND, "client_id")
    assert found.rows == [UsageRow("", "app", 2, 6, 12, 1.0)]


@pytest.fixture
def metrics_port() -> Iterator[str]:
    """A node's metrics port with the usage of the first node."""
    page = msgspec.json.encode(NodeUsage(1, FIRST, []))

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/usage" else 404)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_usage_is_read_from_the_metrics_port(metrics_port: str) -> None:
    assert read_usage(metrics_port) == NodeUsage(1, FIRST, [])


def test_a_node_without_a_metrics_port_is_reported() -> None:
    with pytest.raises(
        UsageUnavailable, match=r"no usage from 127\.0\.0\.1:1: connection refused$"
    ):
        read_usage("127.0.0.1:1")


def test_the_command_adds_up_nodes(metrics_port: str) -> None:
    """CLD-2(b)."""
    options = ["--metrics", metrics_port, "--metrics", metrics_port, "--json", "--last", "1"]
    shown = CliRunner().invoke(command, options)
    (found,) = msgspec.json.decode(shown.output)
    assert found["rows"][0]["bytes_in"] == 40


def test_the_command_prints_a_table(metrics_port: str) -> None:
    shown = CliRunner().invoke(command, ["--metrics", metrics_port])
    assert "ada" in shown.output
    assert "40 B" in shown.output
