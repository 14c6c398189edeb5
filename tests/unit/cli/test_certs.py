"""`headrace certs`: a folder of certificates, and facts of any."""

import datetime as dt
import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from headrace.cli.certificate_folder import CertificateFolder
from headrace.cli.certs import host_and_port, names_of
from headrace.cli.main import main
from headrace.errors import HeadraceError

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)


def folder(path: Path, now: dt.datetime = NOW) -> CertificateFolder:
    place = CertificateFolder(str(path / "certs"), now)
    place.authority("tests")
    return place


def test_keys_belong_to_their_owner_only(tmp_path: Path) -> None:
    """SEC-9: secrets are not readable by others."""
    folder(tmp_path).certificate("node", ("n.lan",), 90)
    certs = tmp_path / "certs"
    modes = {path.name: path.stat().st_mode & 0o777 for path in certs.iterdir()}
    assert modes.pop("ca.crt") == modes.pop("node.crt") == 0o644
    assert modes == dict.fromkeys(("ca.key", "node.key", "node.pem"), 0o600)
    assert certs.stat().st_mode & 0o777 == 0o700


def test_valid_certificates_are_kept(tmp_path: Path) -> None:
    first = folder(tmp_path).certificate("node", ("n.lan",), 90)
    again = folder(tmp_path).certificate("node", ("n.lan",), 90)
    assert (first.reason, again.reason) == ("new", None)
    assert again.facts == first.facts


@pytest.mark.parametrize(
    ("days", "hosts", "renew", "reason"),
    [
        (70, ("n.lan",), False, "expires"),
        (0, ("n.lan", "m.lan"), False, "renewed for m.lan"),
        (0, ("n.lan",), True, "on request"),
    ],
)
def test_certificates_are_renewed_by_the_same_authority(
    tmp_path: Path, days: int, hosts: tuple[str, ...], renew: bool, reason: str
) -> None:
    first = folder(tmp_path).certificate("node", ("n.lan",), 90)
    later = folder(tmp_path, NOW + dt.timedelta(days=days))
    renewed = later.certificate("node", hosts, 90, renew=renew)
    assert renewed.reason is not None
    assert reason in renewed.reason
    assert renewed.facts.issuer == first.facts.issuer
    assert renewed.facts.serial_number != first.facts.serial_number
    assert later.authority("other").reason is None


def test_an_interrupted_creation_is_repeated(tmp_path: Path) -> None:
    place = folder(tmp_path)
    place.certificate("node", (), 90)
    os.unlink(place.file("node", "crt"))
    assert place.certificate("node", (), 90).reason == "new"


@pytest.mark.parametrize("name", ["../ada", "", "ca"])
def test_names_that_are_no_file_names_are_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(HeadraceError):
        folder(tmp_path).certificate(name, (), 90)


def test_this_machine_has_several_names() -> None:
    assert names_of("127.0.0.1") == ("localhost", "127.0.0.1", "::1")
    assert names_of("n.lan") == ("n.lan",)
    assert names_of("kafka,*.kafka.svc") == ("kafka", "*.kafka.svc")


def test_a_place_is_a_file_or_an_address() -> None:
    assert host_and_port("[::1]:9092") == ("::1", 9092)
    with pytest.raises(click.UsageError, match="neither a file nor"):
        host_and_port("missing.crt")


def test_certificates_are_made_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certs = str(tmp_path / "certs")
    assert main(["certs", "dev", "--to", certs, "--user", "ada", "--host", "n.lan"]) == 0
    made = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in made] == [
        f"{certs}/{name}" for name in ("ca.crt", "n.lan.pem", "ada.pem")
    ]
    assert main(["certs", "show", f"{certs}/n.lan.crt"]) == 0
    shown = capsys.readouterr().out
    assert "subject      CN=n.lan\nnames        n.lan\n" in shown
    assert "issuer       CN=Headrace development CA" in shown
    assert main(["certs", "show", f"{certs}/ca.crt", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["certificates"]
    assert (facts["is_authority"], facts["is_self_signed"]) == (True, True)


@contextmanager
def tls_server(place: CertificateFolder, name: str) -> Iterator[str]:
    """Serve handshakes by a certificate of the folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place.file(name, "pem"))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    opened, _ = listening.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(opened, server_side=True).close()
                except (ssl.SSLError, ConnectionError):
                    opened.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_the_certificate_of_a_server_is_shown_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SEC-2: a wrong authority is noticed before a client fails."""
    place = folder(tmp_path)
    place.certificate("localhost", ("localhost", "127.0.0.1"), 90)
    with tls_server(place, "localhost") as address:
        assert main(["certs", "show", address, "--ca", place.authority_path]) == 0
        assert "subject      CN=localhost" in capsys.readouterr().out
        assert main(["certs", "show", address]) == 1
        assert "not trusted  " in capsys.readouterr().out


def test_a_server_without_tls_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"

        def answer() -> None:
            opened, _ = listening.accept()
            opened.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            opened.close()

        thread = threading.Thread(target=answer)
        thread.start()
        assert main(["certs", "show", address]) == 1
        thread.join()
    assert "does not serve TLS" in capsys.readouterr().err
