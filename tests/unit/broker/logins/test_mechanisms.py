"""The mechanisms of a listener, from settings, files and the metadata."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from joserfc import jwk, jwt

from headrace.broker.logins.credentials import ImageCredentials, no_tokens
from headrace.broker.logins.mechanisms import LoginMechanisms, decoy_key
from headrace.broker.logins.sources import WatchedKeys, WatchedUsers
from headrace.errors import InvalidConfig, SaslAuthenticationFailed
from headrace.metadata.image import EMPTY
from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord
from headrace.runtime.clock import SystemClock
from headrace.runtime.tasks import Tasks
from headrace.security.sasl.oauthbearer import unsecured_token
from headrace.security.sasl.scram import Mechanism
from headrace.settings.broker_loading import load
from tests.builders.metadata_images import replayed

SASL = {"listeners": "OUT://:9092", "listener.security.protocol.map": "OUT:SASL_PLAINTEXT"}


def mechanisms(**properties: str) -> LoginMechanisms:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    settings = load({**SASL, **given})[0]
    credentials = ImageCredentials(lambda: EMPTY, no_tokens)
    return LoginMechanisms(settings, credentials, SystemClock(), lambda: b"key")


def test_users_of_plain_come_from_options_and_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("bob=2\nada=other\n")
    made = mechanisms(
        sasl_enabled_mechanisms="PLAIN",
        headrace_sasl_plain_users_file=str(path),
        listener_name_out_plain_sasl_jaas_config='x.Plain required user_ada="1";',
    ).of("OUT")
    for message in (b"\0ada\x001", b"\0bob\x002"):
        assert made.exchanges["PLAIN"]().answer(message) == b""
    with pytest.raises(SaslAuthenticationFailed):
        made.exchanges["PLAIN"]().answer(b"\0ada\0other")


def test_a_mechanism_has_its_own_limit_of_sessions() -> None:
    made = mechanisms(
        sasl_enabled_mechanisms="SCRAM-SHA-256,SCRAM-SHA-512",
        connections_max_reauth_ms="5",
        **{"listener_name_out_scram-sha-512_connections_max_reauth_ms": "7"},
    ).of("OUT")
    assert made.max_reauth_ms == {"SCRAM-SHA-256": 5, "SCRAM-SHA-512": 7}


def test_unsigned_tokens_are_accepted_if_an_option_allows_them() -> None:
    made = mechanisms(
        sasl_enabled_mechanisms="OAUTHBEARER",
        listener_name_out_oauthbearer_sasl_jaas_config=(
            'x.OAuth required unsecuredValidatorScopeClaimName="scope";'
        ),
    ).of("OUT")
    exchange = made.exchanges["OAUTHBEARER"]()
    token = unsecured_token("ada", SystemClock().now_ms() / 1000)
    assert exchange.answer(f"n,,\1auth=Bearer {token}\1\1".encode()) == b""


def test_a_missing_or_invalid_file_of_users_is_rejected_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="No such file"):
        WatchedUsers(str(tmp_path / "missing"))
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(InvalidConfig, match="not UTF-8"):
        WatchedUsers(str(tmp_path / "binary"))


def test_keys_have_an_address_of_a_known_kind() -> None:
    with pytest.raises(InvalidConfig, match="must begin with one of http, https, file"):
        WatchedKeys("ftp://id/keys", refresh_ms=1, backoff_ms=1, backoff_max_ms=1)


async def test_keys_of_a_file_are_read_and_kept_while_it_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = jwk.ECKey.generate_key("P-256", {"kid": "a"})
    watched = WatchedKeys(path.as_uri(), refresh_ms=1, backoff_ms=1, backoff_max_ms=1)
    tasks = Tasks(asyncio.get_running_loop())
    watched.watch(tasks)
    path.with_suffix(".new").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    os.replace(path.with_suffix(".new"), path)
    async with asyncio.timeout(30):
        while not len(watched.keys):
            await asyncio.sleep(0.01)
    path.write_text("broken")
    token = jwt.encode({"alg": "ES256", "kid": "a"}, {"sub": "ada"}, key)
    assert watched.keys.claims_of(token) == {"sub": "ada"}
    await tasks.stop()


def record(name: str, iterations: int) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(name, 1, b"salt-of-it", b"stored", b"server", iterations)


def test_credentials_come_from_the_present_image() -> None:
    image = EMPTY
    credentials = ImageCredentials(lambda: image, no_tokens)
    assert credentials.of_user("ada", Mechanism.SHA_256) is None
    image = replayed(EMPTY, [record("ada", 4096)])
    found = credentials.of_user("ada", Mechanism.SHA_256)
    assert found is not None
    assert (found.salt, found.stored_key, found.server_key) == (b"salt-of-it", b"stored", b"server")
    assert credentials.of_user("ada", Mechanism.SHA_512) is None
    assert credentials.of_token("ada", Mechanism.SHA_256) is None


def test_the_example_has_the_most_frequent_form() -> None:
    image = EMPTY
    credentials = ImageCredentials(lambda: image, no_tokens)
    assert credentials.example(Mechanism.SHA_256) is None
    image = replayed(EMPTY, [record("a", 4096), record("b", 8192), record("c", 8192)])
    example = credentials.example(Mechanism.SHA_256)
    assert example is not None
    assert example.iterations == 8192
    assert credentials.example(Mechanism.SHA_512) is None


def test_decoys_are_the_same_on_all_nodes_of_a_cluster() -> None:
    assert decoy_key("cluster", "secret") == decoy_key("cluster", "secret")
    keys = {decoy_key("a", "s"), decoy_key("b", "s"), decoy_key("a", "t"), decoy_key("a", None)}
    assert len(keys) == 4
