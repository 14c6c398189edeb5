"""Requests to a small HTTP server: persistent connections, retries, other addresses."""

import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headrace.schema_clients.registry_client import connections as connecting
from headrace.schema_clients.registry_client.connections import (
    ATTEMPTS,
    RegistryConnections,
    access_to,
)
from headrace.schema_clients.registry_client.failures import (
    InvalidRegistryAddress,
    RegistryRefusal,
    RegistryUnavailable,
)


class SmallServer:
    """Gives every request the same answer, after a set number of failures."""

    def __init__(self) -> None:
        self.status, self.answer = 200, b'{"fine": true}'
        self.failures = 0
        self.speaks = threading.Event()
        self.speaks.set()
        self.closes_after_answers = False
        """Close it without a header that announces it, as a restart does."""
        self.requests: list[tuple[str, str, str]] = []
        self.connections = 0
        self.headers: dict[str, str] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def do_GET(self) -> None:
                outer.reply(self)

            def do_POST(self) -> None:
                outer.reply(self)

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        size = int(handler.headers.get("Content-Length", 0))
        self.requests.append((handler.command, handler.path, handler.rfile.read(size).decode()))
        self.headers = dict(handler.headers)
        self.speaks.wait(30)
        status, answer = self.status, self.answer
        if self.failures:
            self.failures -= 1
            status, answer = 503, b"not now"
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)
        handler.close_connection = self.closes_after_answers

    def close(self) -> None:
        self.speaks.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def server() -> Iterator[SmallServer]:
    made = SmallServer()
    yield made
    made.close()


@pytest.fixture
def other_server() -> Iterator[SmallServer]:
    made = SmallServer()
    yield made
    made.close()


def connections_to(*servers: SmallServer, path: str = "", login: str = "") -> RegistryConnections:
    access = access_to([f"{server.url}{path}" for server in servers], login)
    return RegistryConnections(access, sleep=lambda _: None)


def test_a_connection_is_used_again(server: SmallServer) -> None:
    connections = connections_to(server)
    answers = [connections.ask("GET", "/subjects") for _ in range(5)]
    connections.close()
    assert (answers, server.connections) == ([{"fine": True}] * 5, 1)


def test_a_silence_on_an_open_connection_is_a_failure_of_that_registry(
    server: SmallServer, other_server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "TIMEOUT_S", 0.2)
    connections = connections_to(server, other_server)
    connections.ask("GET", "/subjects")
    server.speaks.clear()
    connections.ask("GET", "/subjects")
    connections.close()
    assert (len(server.requests), len(other_server.requests)) == (2, 1)


def test_a_connection_closed_meanwhile_is_opened_again(server: SmallServer) -> None:
    pauses: list[float] = []
    connections = RegistryConnections(access_to(server.url), sleep=pauses.append)
    server.closes_after_answers = True
    answers = [connections.ask("GET", "/subjects") for _ in range(2)]
    connections.close()
    assert (answers, pauses, server.connections) == ([{"fine": True}] * 2, [], 2)


def test_a_body_is_sent_as_json_under_the_path_of_the_address(server: SmallServer) -> None:
    connections = connections_to(server, path="/registry/")
    connections.ask("POST", "/subjects/a/versions", {"schema": "é"})
    connections.close()
    assert server.requests == [("POST", "/registry/subjects/a/versions", '{"schema":"é"}')]


def test_transient_errors_are_retried(server: SmallServer) -> None:
    server.failures = ATTEMPTS - 1
    connections = connections_to(server)
    assert connections.ask("GET", "/subjects") == {"fine": True}
    connections.close()
    assert len(server.requests) == ATTEMPTS


def test_a_registry_that_never_answers_is_given_up(server: SmallServer) -> None:
    server.failures = 100
    connections = connections_to(server)
    with pytest.raises(RegistryUnavailable, match="does not answer /subjects: HTTP 503"):
        connections.ask("GET", "/subjects")
    connections.close()
    assert len(server.requests) == ATTEMPTS


def test_another_instance_answers_for_one_that_is_gone(
    server: SmallServer, other_server: SmallServer
) -> None:
    connections = connections_to(server, other_server)
    server.failures = 100
    answers = [connections.ask("GET", "/subjects") for _ in range(3)]
    connections.close()
    assert answers == [{"fine": True}] * 3
    assert len(server.requests) == 1  # It is not asked first again.


def test_a_rejected_request_has_its_code_and_is_not_retried(server: SmallServer) -> None:
    server.status = 404
    server.answer = json.dumps({"error_code": 40401, "message": "Subject 'a' not found."}).encode()
    connections = connections_to(server)
    with pytest.raises(RegistryRefusal, match="Subject 'a' not found") as caught:
        connections.ask("GET", "/subjects/a/versions")
    connections.close()
    assert (caught.value.status, caught.value.code, len(server.requests)) == (404, 40401, 1)


def test_an_answer_that_is_not_json_is_an_error(server: SmallServer) -> None:
    server.answer = b"<html>"
    connections = connections_to(server)
    with pytest.raises(RegistryUnavailable, match="did not answer with JSON"):
        connections.ask("GET", "/subjects")
    connections.close()


def test_the_login_of_the_address_is_sent_and_never_shown(server: SmallServer) -> None:
    host = server.url.removeprefix("http://")
    access = access_to(f"http://ada:s3cret@{host}")
    connections = RegistryConnections(access)
    connections.ask("GET", "/subjects")
    connections.close()
    assert server.headers["Authorization"] == "Basic YWRhOnMzY3JldA=="
    assert "s3cret" not in repr(access) + str(access.urls)


def test_connections_can_be_pickled(server: SmallServer) -> None:
    connections = connections_to(server, login="ada:s3cret")
    connections.ask("GET", "/subjects")
    copied = pickle.loads(pickle.dumps(connections))
    assert copied.ask("GET", "/subjects") == {"fine": True}
    copied.close()
    connections.close()
    assert server.headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize("text", ["", "127.0.0.1:8081", "ftp://host", "http://", "http://h:x"])
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRegistryAddress, match="is not a registry's address such as"):
        access_to(text)


def test_an_address_that_is_refused_is_shown_without_its_login() -> None:
    with pytest.raises(InvalidRegistryAddress, match=r"^'127\.0\.0\.1:8081' is not"):
        access_to("127.0.0.1:8081")
    with pytest.raises(InvalidRegistryAddress, match=r"^'\.\.\.@host:8081' is not"):
        access_to("ftp://ada:s3cret@host:8081")


def test_several_addresses_may_be_joined_by_commas() -> None:
    assert access_to("http://a:1, http://b:2/").urls == ("http://a:1", "http://b:2")
