"""Requests about users and tokens that reach a controller by the network."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from headrace.errors import DelegationTokenOwnerMismatch, DelegationTokenRequestNotAllowed
from headrace.peers.channel import Channel
from headrace.protocol.api_messages import response_type_of
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schemas.create_delegation_token import CreateDelegationTokenRequest
from headrace.protocol.schemas.renew_delegation_token import RenewDelegationTokenRequest
from headrace.quorum.envelopes import enclosed, opened
from headrace.quorum.quorum_node import QuorumNode
from headrace.security.principals import USER, Caller, Principal
from headrace.security.tokens import token_secret
from tests.builders.quorum_nodes import HOST, bound, node_in, port_of

KEY = "cluster secret"


@contextlib.asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[tuple[QuorumNode, Channel]]:
    sock = bound()
    node = node_in(directory, {1: port_of(sock)}, delegation_token_secret_key=KEY)
    await node.start([sock])
    await node.controller.wait_until_active()
    channel = Channel(HOST, port_of(sock), "test")
    yield node, channel
    channel.close()
    await node.close()


def caller(name: str, *, by_token: bool = False) -> Caller:
    return Caller(Principal(USER, name, is_token_authenticated=by_token), "10.0.0.7")


async def forwarded(channel: Channel, request: Message, client: Caller) -> Any:
    """Send a request in an envelope, as a broker does."""
    version = request.VERSIONS[-1]
    envelope = await channel.ask(enclosed(request, version, None, client))
    assert envelope.error_code == 0
    return opened(envelope, response_type_of(type(request)), request.API_KEY, version)


async def test_the_principal_of_an_envelope_owns_the_token(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, channel):
        answer = await forwarded(channel, CreateDelegationTokenRequest(), caller("ada"))
        assert (answer.error_code, answer.principal_name) == (0, "ada")
        assert answer.hmac == token_secret(KEY, answer.token_id)
        assert list(node.controller.image.delegation_tokens) == [answer.token_id]
        renewal = RenewDelegationTokenRequest(answer.hmac)
        assert (await forwarded(channel, renewal, caller("ada"))).error_code == 0
        mismatch = DelegationTokenOwnerMismatch.code
        assert (await forwarded(channel, renewal, caller("eve"))).error_code == mismatch


async def test_a_client_by_a_token_gets_no_token_through_an_envelope(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, channel):
        client = caller("ada", by_token=True)
        answer = await forwarded(channel, CreateDelegationTokenRequest(), client)
        assert answer.error_code == DelegationTokenRequestNotAllowed.code
        assert not node.controller.image.delegation_tokens


async def test_an_anonymous_connection_to_the_controller_gets_no_token(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, channel):
        answer = await channel.ask(CreateDelegationTokenRequest())
        assert answer.error_code == DelegationTokenRequestNotAllowed.code


async def test_users_are_changed_through_an_envelope_and_each_gets_an_outcome(
    tmp_path: Path,
) -> None:
    request = AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion("eve", 1)],
        [ScramCredentialUpsertion("ada", 1, 4096, b"salt", b"salted")],
    )
    async with serving(tmp_path) as (node, channel):
        answer = await forwarded(channel, request, caller("admin"))
        assert {one.user: bool(one.error_code) for one in answer.results} == {
            "ada": False,
            "eve": True,
        }
        assert list(node.controller.image.scram_credentials) == [(1, "ada")]
