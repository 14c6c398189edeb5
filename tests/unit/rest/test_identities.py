"""Identities of requests to brokers."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidConfig
from headrace.http.access import SCOPE_KEY, Principal
from headrace.rest.clients import Clients
from headrace.rest.errors import RestError
from headrace.rest.identities import Identities
from headrace.rest.settings import settings_of


def scope(name: str | None = None, password: str | None = None) -> dict[str, Any]:
    return {} if name is None else {SCOPE_KEY: Principal(name, password)}


def identities(**settings: str) -> Identities:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Identities(settings_of({"bootstrap.servers": "127.0.0.1:1", **given}))


def login(clients: Clients) -> tuple[str | None, str | None]:
    found = clients.consumer_properties()
    return found.get("sasl.username"), found.get("sasl.password")


async def test_by_default_all_requests_use_the_proxys_identity() -> None:
    known = identities()
    assert known.of(scope("ada")) is known.of(scope("bob")) is known.own()


async def test_users_may_be_handed_on_to_the_brokers() -> None:
    known = identities(client_identity="basic", client_security_protocol="SASL_SSL")
    ada = known.of(scope("ada", "s3cret"))
    assert login(ada) == ("ada", "s3cret")
    assert ada.consumer_properties()["security.protocol"] == "SASL_SSL"
    assert known.of(scope("ada", "s3cret")) is ada
    assert known.of(scope("bob", "pw")) is not ada


async def test_a_file_maps_callers_to_identities(tmp_path: Path) -> None:
    path = tmp_path / "identities"
    path.write_text(
        "ada.sasl.username=svc-ada\nada.sasl.password=x\n"
        "CN\\=bob.example,O\\=x.sasl.username=svc-bob\n"
    )
    known = identities(client_identity="file", client_identity_file=str(path))
    assert login(known.of(scope("ada"))) == ("svc-ada", "x")
    assert login(known.of(scope("CN=bob.example,O=x"))) == ("svc-bob", None)
    with pytest.raises(RestError, match="no identity in") as refusal:
        known.of(scope("eve"))
    assert (refusal.value.status, refusal.value.code) == (403, 40301)


async def test_a_caller_without_a_name_is_rejected() -> None:
    known = identities(client_identity="basic")
    with pytest.raises(RestError, match="a login is required"):
        known.of(scope())
    with pytest.raises(RestError, match="passwords only"):
        known.of(scope("token"))


async def test_the_clients_that_were_not_used_for_longest_go() -> None:
    known = identities(client_identity="basic", client_identities_max="2")
    ada = known.of(scope("ada", "x"))
    bob = known.of(scope("bob", "x"))
    assert known.of(scope("ada", "x")) is ada
    known.of(scope("eve", "x"))
    assert known.of(scope("ada", "x")) is ada
    assert known.of(scope("bob", "x")) is not bob
    await known.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"client_identity": "everyone"}, "proxy, basic, file"),
        ({"client_identity": "file"}, r"client\.identity\.file"),
    ],
)
def test_an_unknown_mode_is_rejected(settings: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        identities(**settings)


def test_an_invalid_line_of_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "identities"
    path.write_text("# people\nada=x\n")
    with pytest.raises(InvalidConfig, match="line 2"):
        identities(client_identity="file", client_identity_file=str(path))
