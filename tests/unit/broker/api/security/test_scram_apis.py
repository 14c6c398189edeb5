"""AlterUserScramCredentials and DescribeUserScramCredentials of a broker."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.errors import ClusterAuthorizationFailed, DuplicateResource, ResourceNotFound
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schemas.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from headrace.security.acls import Operation
from tests.builders.authorizers import ListedRights
from tests.unit.broker.api.builders import UnitBroker, a_broker, ask


@pytest.fixture
async def broker(tmp_path: Path) -> UnitBroker:
    """A broker with ada, who has both mechanisms, and bob, who has one."""
    broker = a_broker(tmp_path)
    for name, mechanism in (("bob", 1), ("ada", 2), ("ada", 1)):
        entry = ScramCredentialUpsertion(name, mechanism, 4095 + mechanism, b"salt", b"salted")
        request = AlterUserScramCredentialsRequest(upsertions=[entry])
        answer = await ask(broker, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request)
        assert [(one.user, one.error_code) for one in answer.results] == [(name, 0)]
    return broker


async def described(
    broker: UnitBroker, names: Sequence[str] | None
) -> DescribeUserScramCredentialsResponse:
    users = None if names is None else [UserName(name) for name in names]
    request = DescribeUserScramCredentialsRequest(users=users)
    answer = await ask(broker, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, request)
    assert isinstance(answer, DescribeUserScramCredentialsResponse)
    return answer


@pytest.mark.parametrize("names", [None, []])
async def test_all_users_are_described_if_none_is_named(
    broker: UnitBroker, names: list[str] | None
) -> None:
    """SEC-5: mechanisms and iterations, never salts or keys."""
    answer = await described(broker, names)
    assert [
        (one.user, [(info.mechanism, info.iterations) for info in one.credential_infos])
        for one in answer.results
    ] == [("ada", [(1, 4096), (2, 4097)]), ("bob", [(1, 4096)])]


async def test_missing_and_repeated_users_are_errors_of_their_own(broker: UnitBroker) -> None:
    answer = await described(broker, ["ada", "eve", "bob", "bob"])
    assert [(one.user, one.error_code, len(one.credential_infos)) for one in answer.results] == [
        ("ada", 0, 2),
        ("eve", ResourceNotFound.code, 0),
        ("bob", DuplicateResource.code, 0),
    ]


async def test_describing_needs_the_right_to_describe_the_cluster(broker: UnitBroker) -> None:
    broker.controller.authorizer = authorizer = ListedRights()
    answer = await described(broker, ["ada"])
    assert answer.error_code == ClusterAuthorizationFailed.code
    assert answer.results == []
    assert [operation for operation, _, _ in authorizer.asked] == [Operation.DESCRIBE]


async def test_a_request_without_the_right_is_rejected_user_by_user(broker: UnitBroker) -> None:
    broker.controller.authorizer = ListedRights()
    request = AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion("bob", 1)],
        [ScramCredentialUpsertion("ada", 1, 4096, b"s", b"p")] * 2,
    )
    answer = await ask(broker, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request)
    code = ClusterAuthorizationFailed.code
    assert [(one.user, one.error_code) for one in answer.results] == [("ada", code), ("bob", code)]
