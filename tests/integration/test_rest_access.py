"""Access to a REST proxy: authentication, authorization, and cross-origin requests."""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
import trustme

from headrace.http.users import PasswordHash
from tests.processes.nodes import Node
from tests.processes.rest_proxies import proxy

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> Path:
    """A folder with users, tokens, certificates and keys."""
    (tmp_path / "users").write_text(f"# people\nada:{PasswordHash.of('s3cret')}\n")
    (tmp_path / "tokens").write_text(f"{TOKEN}\n")
    for name in ("users", "tokens"):
        (tmp_path / name).chmod(0o600)
    server = authority.issue_cert("127.0.0.1")
    server.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    client = authority.issue_cert("ada@example.org", common_name="ada")
    client.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "client.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return tmp_path


def test_users_log_in_by_password_and_others_are_challenged(node: Node, files: Path) -> None:
    options = ["--user-file", str(files / "users")]
    with proxy(node.address, files / "proxy.log", options) as found:
        url = f"{found.url}/topics"
        refused = httpx2.get(url)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic")
        assert refused.json()["error_code"] == 401
        assert httpx2.get(url, auth=("ada", "wrong")).status_code == 401
        assert httpx2.get(url, auth=("eve", "s3cret")).status_code == 401
        assert httpx2.get(url, auth=("ada", "s3cret")).status_code == 200
        assert httpx2.get(url, auth=("ada", "s3cret")).status_code == 200
        assert httpx2.get(f"{found.url}/health").status_code == 200


def test_one_of_several_ways_in_is_enough(node: Node, files: Path) -> None:
    options = ["--user-file", str(files / "users"), "--token-file", str(files / "tokens")]
    with proxy(node.address, files / "proxy.log", options) as found:
        url = f"{found.url}/topics"
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx2.get(url, headers=bearer).status_code == 200
        assert httpx2.get(url, auth=("ada", "s3cret")).status_code == 200
        assert httpx2.get(url, headers={"Authorization": "Bearer no"}).status_code == 401


def test_the_line_of_a_user_is_made_by_a_program(node: Node, files: Path) -> None:
    program = [sys.executable, "-m", "headrace.http.users", "bob"]
    made = subprocess.run(program, input=b"pw\n", check=True, capture_output=True)
    (files / "users").write_bytes(made.stdout)
    options = ["--user-file", str(files / "users")]
    with proxy(node.address, files / "proxy.log", options) as found:
        assert httpx2.get(f"{found.url}/brokers", auth=("bob", "pw")).status_code == 200


def test_clients_need_a_certificate(node: Node, files: Path) -> None:
    options = ["--tls-certificate", str(files / "server.pem")]
    options += ["--tls-client-ca", str(files / "ca.pem")]
    with proxy(node.address, files / "proxy.log", options) as found:
        assert found.url.startswith("https://")
        with client(files, certificate=True) as known:
            assert known.get(f"{found.url}/topics").status_code == 200
        with client(files) as unknown, pytest.raises(httpx2.TransportError):
            unknown.get(f"{found.url}/topics")


def test_a_client_without_a_certificate_may_use_a_password(node: Node, files: Path) -> None:
    options = ["--tls-certificate", str(files / "server.pem")]
    options += ["--tls-client-ca", str(files / "ca.pem")]
    options += ["--tls-client-certificates", "requested", "--user-file", str(files / "users")]
    with proxy(node.address, files / "proxy.log", options) as found:
        with client(files, certificate=True) as known:
            assert known.get(f"{found.url}/topics").status_code == 200
        with client(files) as unknown:
            assert unknown.get(f"{found.url}/topics").status_code == 401
            assert unknown.get(f"{found.url}/topics", auth=("ada", "s3cret")).status_code == 200


def test_curl_speaks_tls_with_the_proxy(node: Node, files: Path) -> None:
    options = ["--tls-certificate", str(files / "server.pem")]
    with proxy(node.address, files / "proxy.log", options) as found:
        command = ["curl", "-sS", "-m", "30", "--cacert", str(files / "ca.pem")]
        answer = subprocess.run([*command, f"{found.url}/brokers"], check=True, capture_output=True)
        assert json.loads(answer.stdout)["brokers"]


def test_an_instance_belongs_to_its_creator(node: Node, files: Path) -> None:
    (files / "users").write_text(
        "".join(f"{name}:{PasswordHash.of('pw')}\n" for name in ("ada", "bob"))
    )
    options = ["--user-file", str(files / "users")]
    with proxy(node.address, files / "proxy.log", options) as found:
        made = httpx2.post(f"{found.url}/consumers/g", content="{}", auth=("ada", "pw")).json()
        path = f"{made['base_uri']}/subscription"
        assert httpx2.get(path, auth=("ada", "pw")).status_code == 200
        assert httpx2.get(path, auth=("bob", "pw")).json()["error_code"] == 40403


def test_holders_of_tokens_are_not_one_another(node: Node, files: Path) -> None:
    (files / "tokens").write_text("ada:first-token\nbob:second-token\n")
    ada, bob = ({"Authorization": f"Bearer {one}-token"} for one in ("first", "second"))
    options = ["--token-file", str(files / "tokens")]
    with proxy(node.address, files / "proxy.log", options) as found:
        made = httpx2.post(f"{found.url}/consumers/g", content="{}", headers=ada).json()
        assert httpx2.delete(made["base_uri"], headers=bob).json()["error_code"] == 40403
        assert httpx2.delete(made["base_uri"], headers=ada).status_code == 204


def test_requests_with_a_foreign_origin_cannot_write(node: Node, files: Path) -> None:
    with proxy(node.address, files / "proxy.log") as found:
        url = f"{found.url}/consumers/g"
        foreign = httpx2.post(url, content="{}", headers={"Origin": "https://b.example"})
        assert (foreign.status_code, foreign.json()["error_code"]) == (403, 403)
        assert httpx2.post(url, content="{}", headers={"Origin": found.url}).status_code == 200
        assert httpx2.post(url, content="{}").status_code == 200


def test_silent_or_oversized_clients_are_disconnected_before_login(node: Node, files: Path) -> None:
    options = ["--user-file", str(files / "users")]
    with proxy(node.address, files / "proxy.log", options) as found, ExitStack() as opened:
        address = (str(httpx2.URL(found.url).host), int(httpx2.URL(found.url).port or 0))
        silent, half, large = (
            opened.enter_context(socket.create_connection(address, timeout=60)) for _ in range(3)
        )
        half.sendall(b"GET /topics HTTP/1.1\r\nHost: ")
        large.sendall(b"GET /topics HTTP/1.1\r\nX-Large: " + b"x" * 1_000_000)
        head, _, body = read_all(large).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 431 ")
        assert json.loads(body)["error_code"] == 431
        assert (read_all(silent), read_all(half)) == (b"", b"")
        assert httpx2.get(f"{found.url}/health").status_code == 200


def read_all(connection: socket.socket) -> bytes:
    """All bytes that the server sends until it closes."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_pages_of_other_sites_may_ask_only_if_listed(node: Node, files: Path) -> None:
    preflight = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    with proxy(node.address, files / "closed.log") as found:
        answer = httpx2.options(f"{found.url}/topics/t", headers=preflight)
        assert "access-control-allow-origin" not in answer.headers
    options = ["--set", "access.control.allow.origin=https://a.example"]
    with proxy(node.address, files / "open.log", options) as found:
        answer = httpx2.options(f"{found.url}/topics/t", headers=preflight)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        other = httpx2.get(f"{found.url}/topics", headers={"Origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "no.such=1"], "unknown property 'no.such'"),
        (["--set", "consumer.instances.max=many"], "consumer.instances.max"),
        (["--set", "client.identity=everyone"], "proxy, basic, file"),
        (["--set", "access.control.allow.origin=a.example"], "invalid origin"),
        (["--registry", "nonsense"], "registry's address"),
        (["--tls-client-ca", "{ca}"], "--tls-certificate"),
        (["--tls-certificate", "{ca}"], "cannot be used"),
    ],
)
def test_a_misconfigured_proxy_reports_the_reason_and_ends(
    node: Node, files: Path, options: list[str], words: str
) -> None:
    given = [one.format(ca=files / "ca.pem") for one in options]
    program = str(Path(sys.executable).with_name("headrace"))
    command = [program, "rest", "--bootstrap", node.address, "--listen", "127.0.0.1:0", *given]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def client(files: Path, *, certificate: bool = False) -> httpx2.Client:
    import ssl

    context = ssl.create_default_context(cafile=str(files / "ca.pem"))
    if certificate:
        context.load_cert_chain(str(files / "client.pem"))
    return httpx2.Client(verify=context, timeout=60)
