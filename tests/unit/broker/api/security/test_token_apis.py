"""Delegation tokens of a broker and its controller, as Kafka decides about them."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from headrace.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenAuthorizationFailed,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    DelegationTokenRequestNotAllowed,
    InvalidPrincipalType,
    UnsupportedVersion,
)
from headrace.metadata.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from headrace.protocol.schemas.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from headrace.protocol.schemas.expire_delegation_token import ExpireDelegationTokenRequest
from headrace.protocol.schemas.renew_delegation_token import RenewDelegationTokenRequest
from headrace.security.acls import Operation, ResourceType
from headrace.security.principals import ANONYMOUS, Caller, Principal
from headrace.security.tokens import token_secret
from tests.builders.authorizers import ListedRights
from tests.unit.broker.api.builders import FixedPeer, UnitBroker, a_broker, ask

KEY = "cluster secret"
DAY_MS = 24 * 3_600_000
NOW_MS = 1_700_000_000_000
USER, TOKEN = ResourceType.USER, ResourceType.DELEGATION_TOKEN


class Client(NamedTuple):
    """A client by its name; it has a new connection for each request."""

    name: str | None
    listener: str = "SASL"
    by_token: bool = False

    @property
    def principal(self) -> Principal:
        if self.name is None:
            return ANONYMOUS
        return Principal("User", self.name, is_token_authenticated=self.by_token)

    def peer(self) -> FixedPeer:
        made = FixedPeer()
        made.listener, made.principal = self.listener, self.principal
        return made


ADA, BOB, EVE = Client("ada"), Client("bob"), Client("eve")


def broker_with(directory: Path, **settings: Any) -> UnitBroker:
    given = {"delegation_token_secret_key": KEY, **settings}
    protocols = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    broker = a_broker(directory, listener_security_protocol_map=protocols, **given)
    broker.controller.wall_ms = NOW_MS
    return broker


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    return broker_with(tmp_path)


async def create(
    broker: UnitBroker,
    client: Client = ADA,
    *,
    version: int = 3,
    **fields: Any,
) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(**{"max_lifetime_ms": -1, **fields})
    answer = await ask(broker, ApiKey.CREATE_DELEGATION_TOKEN, request, version, client.peer())
    assert isinstance(answer, CreateDelegationTokenResponse)
    return answer


async def renew(broker: UnitBroker, secret: bytes, client: Client = ADA, ms: int = -1) -> Any:
    request = RenewDelegationTokenRequest(secret, ms)
    return await ask(broker, ApiKey.RENEW_DELEGATION_TOKEN, request, None, client.peer())


async def expire(broker: UnitBroker, secret: bytes, client: Client = ADA, ms: int = -1) -> Any:
    request = ExpireDelegationTokenRequest(secret, ms)
    return await ask(broker, ApiKey.EXPIRE_DELEGATION_TOKEN, request, None, client.peer())


async def describe(
    broker: UnitBroker, client: Client = ADA, owners: tuple[str, ...] | None = None
) -> Any:
    request = DescribeDelegationTokenRequest(None)
    if owners is not None:
        request.owners = [DescribeDelegationTokenOwner("User", owner) for owner in owners]
    return await ask(broker, ApiKey.DESCRIBE_DELEGATION_TOKEN, request, None, client.peer())


def image_of(broker: UnitBroker) -> MetadataImage:
    return broker.controller.image


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_token_is_created_with_its_times_and_secret(
    broker: UnitBroker, version: int
) -> None:
    answer = await create(broker, version=version)
    assert answer.error_code == 0
    assert (answer.principal_type, answer.principal_name) == ("User", "ada")
    assert answer.token_requester_principal_name == ("ada" if version == 3 else "")
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms) == (
        NOW_MS,
        NOW_MS + DAY_MS,
        NOW_MS + 7 * DAY_MS,
    )
    assert answer.hmac == token_secret(KEY, answer.token_id)
    (record,) = image_of(broker).delegation_tokens.values()
    assert (record.token_id, record.owner, record.requester) == (
        answer.token_id,
        "User:ada",
        "User:ada",
    )


@pytest.mark.parametrize(
    ("asked_ms", "expiry_ms", "max_ms"),
    [(1000, 1000, 1000), (2 * DAY_MS, DAY_MS, 2 * DAY_MS), (9 * DAY_MS, DAY_MS, 7 * DAY_MS)],
)
async def test_a_lifetime_is_shortened_by_the_request_and_limited_by_the_settings(
    broker: UnitBroker, asked_ms: int, expiry_ms: int, max_ms: int
) -> None:
    answer = await create(broker, max_lifetime_ms=asked_ms)
    assert answer.expiry_timestamp_ms - NOW_MS == expiry_ms
    assert answer.max_timestamp_ms - NOW_MS == max_ms


@pytest.mark.parametrize(
    "client",
    [
        Client("ada", "PLAINTEXT"),
        Client(None, "SSL"),
        Client("ada", by_token=True),
        Client(None),
    ],
)
async def test_a_connection_without_a_login_of_its_own_has_no_tokens(
    broker: UnitBroker, client: Client
) -> None:
    """SEC-8: a token cannot create, renew, expire or list tokens."""
    denied = DelegationTokenRequestNotAllowed.code
    assert (await create(broker, client)).error_code == denied
    assert (await renew(broker, b"x", client)).error_code == denied
    assert (await expire(broker, b"x", client)).error_code == denied
    if client.principal != ANONYMOUS or client.listener == "SSL":
        assert (await describe(broker, client)).error_code == denied


async def test_the_controller_rejects_tokens_as_well(broker: UnitBroker) -> None:
    """A request may reach it without a broker between."""
    caller = Caller(Client("ada", by_token=True).principal, "10.0.0.7")
    with pytest.raises(DelegationTokenRequestNotAllowed):
        await broker.controller.ask(CreateDelegationTokenRequest(), 3, caller)


@pytest.mark.parametrize("key", [None, ""])
async def test_without_a_secret_key_there_are_no_tokens(tmp_path: Path, key: str | None) -> None:
    broker = broker_with(tmp_path, delegation_token_secret_key=key)
    disabled = DelegationTokenAuthDisabled.code
    assert (await create(broker)).error_code == disabled
    assert (await renew(broker, b"x")).error_code == disabled
    assert (await expire(broker, b"x")).error_code == disabled
    assert (await describe(broker)).error_code == disabled


async def test_a_cluster_of_an_old_release_has_no_tokens(broker: UnitBroker) -> None:
    image = image_of(broker)
    broker.controller.image = msgspec.structs.replace(image, features={"metadata.version": 13})
    assert (await create(broker)).error_code == UnsupportedVersion.code
    assert (await renew(broker, b"x")).error_code == UnsupportedVersion.code


async def test_renewers_are_users(broker: UnitBroker) -> None:
    answer = await create(broker, renewers=[CreatableRenewers("Group", "admins")])
    assert answer.error_code == InvalidPrincipalType.code
    assert not image_of(broker).delegation_tokens


async def test_a_token_for_another_owner_needs_a_right_to_that_user(broker: UnitBroker) -> None:
    broker.controller.authorizer = ListedRights((Operation.CREATE_TOKENS, USER, "User:bob"))
    for owner, code in (("bob", 0), ("eve", DelegationTokenAuthorizationFailed.code), ("ada", 0)):
        answer = await create(broker, owner_principal_type="User", owner_principal_name=owner)
        assert answer.error_code == code, owner
    owned = [(one.owner, one.requester) for one in image_of(broker).delegation_tokens.values()]
    assert sorted(owned) == [("User:ada", "User:ada"), ("User:bob", "User:ada")]


async def test_owner_and_renewers_renew_a_token_and_others_do_not(broker: UnitBroker) -> None:
    secret = (await create(broker, renewers=[CreatableRenewers("User", "bob")])).hmac
    broker.controller.wall_ms += 1000
    for client in (ADA, BOB):
        answer = await renew(broker, secret, client)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (0, NOW_MS + 1000 + DAY_MS)
    assert (await renew(broker, secret, EVE)).error_code == DelegationTokenOwnerMismatch.code


async def test_the_requester_of_a_token_for_another_does_not_renew_it(broker: UnitBroker) -> None:
    broker.controller.authorizer = ListedRights((Operation.CREATE_TOKENS, USER, "User:bob"))
    answer = await create(broker, owner_principal_type="User", owner_principal_name="bob")
    mismatch = DelegationTokenOwnerMismatch.code
    assert (await renew(broker, answer.hmac, ADA)).error_code == mismatch
    assert (await renew(broker, answer.hmac, BOB)).error_code == 0


@pytest.mark.parametrize(
    ("asked_ms", "passed_ms", "expected_ms"),
    [(500, 0, 500), (9 * DAY_MS, 0, DAY_MS), (-1, DAY_MS, DAY_MS), (0, 0, DAY_MS)],
)
async def test_a_renewal_is_limited_by_the_settings(
    broker: UnitBroker, asked_ms: int, passed_ms: int, expected_ms: int
) -> None:
    secret = (await create(broker)).hmac
    broker.controller.wall_ms += passed_ms
    answer = await renew(broker, secret, ms=asked_ms)
    assert answer.expiry_timestamp_ms == NOW_MS + passed_ms + expected_ms


async def test_no_renewal_goes_beyond_the_longest_lifetime(broker: UnitBroker) -> None:
    answer = await create(broker, max_lifetime_ms=1000)
    assert (await renew(broker, answer.hmac)).expiry_timestamp_ms == NOW_MS + 1000
    assert (await expire(broker, answer.hmac, ms=1 << 62)).expiry_timestamp_ms == NOW_MS + 1000


async def test_an_expired_token_is_not_renewed(broker: UnitBroker) -> None:
    secret = (await create(broker, max_lifetime_ms=1000)).hmac
    broker.controller.wall_ms += 1001
    assert (await renew(broker, secret)).error_code == DelegationTokenExpired.code
    assert (await expire(broker, secret, ms=5)).error_code == DelegationTokenExpired.code


async def test_a_token_expires_at_a_time_or_at_once(broker: UnitBroker) -> None:
    secret = (await create(broker)).hmac
    assert (await expire(broker, secret, ms=60_000)).expiry_timestamp_ms == NOW_MS + 60_000
    (token,) = image_of(broker).delegation_tokens.values()
    assert token.expiration_timestamp == NOW_MS + 60_000
    assert (await expire(broker, secret)).expiry_timestamp_ms == NOW_MS
    assert not image_of(broker).delegation_tokens
    assert (await expire(broker, secret)).error_code == DelegationTokenNotFound.code


async def test_an_expired_token_can_be_removed(broker: UnitBroker) -> None:
    secret = (await create(broker, max_lifetime_ms=1000)).hmac
    broker.controller.wall_ms += 2000
    assert (await expire(broker, secret)).error_code == 0
    assert not image_of(broker).delegation_tokens


async def test_only_owner_and_renewers_expire_a_token(broker: UnitBroker) -> None:
    secret = (await create(broker, renewers=[CreatableRenewers("User", "bob")])).hmac
    assert (await expire(broker, secret, EVE)).error_code == DelegationTokenOwnerMismatch.code
    assert (await expire(broker, secret, BOB)).error_code == 0


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_token_is_described_with_its_secret(broker: UnitBroker, version: int) -> None:
    created = await create(broker, renewers=[CreatableRenewers("User", "bob")])
    request = DescribeDelegationTokenRequest(None)
    answer = await ask(broker, ApiKey.DESCRIBE_DELEGATION_TOKEN, request, version, BOB.peer())
    (token,) = answer.tokens
    assert (token.token_id, token.hmac, token.principal_name) == (
        created.token_id,
        created.hmac,
        "ada",
    )
    assert token.token_requester_principal_name == ("ada" if version == 3 else "")
    assert [(one.principal_type, one.principal_name) for one in token.renewers] == [("User", "bob")]
    assert token.expiry_timestamp == created.expiry_timestamp_ms


async def test_others_see_a_token_by_a_right_to_it_or_to_its_owner(broker: UnitBroker) -> None:
    created = await create(broker)
    broker.controller.authorizer = ListedRights()
    assert (await describe(broker, EVE)).tokens == []
    assert len((await describe(broker, ADA)).tokens) == 1
    for right in (
        (Operation.DESCRIBE, TOKEN, created.token_id),
        (Operation.DESCRIBE_TOKENS, USER, "User:ada"),
    ):
        broker.controller.authorizer = ListedRights(right)
        assert len((await describe(broker, EVE)).tokens) == 1


async def test_tokens_are_filtered_by_owner(broker: UnitBroker) -> None:
    await create(broker, ADA)
    await create(broker, BOB)
    filters: list[tuple[tuple[str, ...] | None, int]] = [
        (None, 2),
        (("ada",), 1),
        (("ada", "bob"), 2),
        (("eve",), 0),
        ((), 0),
    ]
    for owners, count in filters:
        answer = await describe(broker, EVE, owners)
        assert (answer.error_code, len(answer.tokens)) == (0, count)
