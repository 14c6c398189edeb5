"""SCRAM users by the wire."""

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.client.users import ScramUser
from headrace.errors import ResourceNotFound, UnacceptableCredential
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from headrace.protocol.schemas.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from headrace.security.sasl.scram import Mechanism, salted_password
from tests.unit.client.scripted import connected, knowing_all


class Guarding:
    """A broker with the user ada, which accepts new credentials of everybody but eve."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Message] = []
        opened = connected(knowing_all(lambda request, _: self.answer(request)))[0]
        monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
        self.users = Admin("broker:9092", timeout_s=1).users

    def answer(self, request: Message) -> Message:
        if isinstance(request, MetadataRequest):
            return MetadataResponse()
        self.asked.append(request)
        if isinstance(request, DescribeUserScramCredentialsRequest):
            infos = [CredentialInfo(1, 4096), CredentialInfo(9, 5000)]
            return DescribeUserScramCredentialsResponse(
                results=[
                    DescribeUserScramCredentialsResult("eve", ResourceNotFound.code, "none"),
                    DescribeUserScramCredentialsResult("ada", 0, None, infos),
                ]
            )
        assert isinstance(request, AlterUserScramCredentialsRequest)
        names = [one.name for one in request.deletions]
        (user,) = names + [one.name for one in request.upsertions]
        code, text = (UnacceptableCredential.code, "no") if user == "eve" else (0, None)
        return AlterUserScramCredentialsResponse(
            results=[AlterUserScramCredentialsResult(user, code, text)]
        )


def test_users_are_returned_with_their_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    guarding = Guarding(monkeypatch)
    assert guarding.users.describe(["eve", "ada", "ada"]) == [
        ScramUser("ada", {"SCRAM-SHA-256": 4096, "mechanism 9": 5000})
    ]
    (asked,) = guarding.asked
    assert isinstance(asked, DescribeUserScramCredentialsRequest)
    assert [one.name for one in asked.users or ()] == ["eve", "ada"]


def test_all_users_are_asked_for_without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    guarding = Guarding(monkeypatch)
    guarding.users.describe()
    (asked,) = guarding.asked
    assert isinstance(asked, DescribeUserScramCredentialsRequest)
    assert asked.users is None


def test_a_password_is_sent_salted_and_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    guarding = Guarding(monkeypatch)
    outcome = guarding.users.set_password("ada", "secret", Mechanism.SHA_256, iterations=5000)
    (asked,) = guarding.asked
    assert isinstance(asked, AlterUserScramCredentialsRequest)
    (entry,) = asked.upsertions
    assert (entry.name, entry.mechanism, entry.iterations) == ("ada", 1, 5000)
    assert entry.salted_password == salted_password(Mechanism.SHA_256, "secret", entry.salt, 5000)
    assert outcome.error is None


def test_a_credential_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    guarding = Guarding(monkeypatch)
    assert guarding.users.remove("ada", Mechanism.SHA_512).error is None
    (asked,) = guarding.asked
    assert isinstance(asked, AlterUserScramCredentialsRequest)
    assert [(one.name, one.mechanism) for one in asked.deletions] == [("ada", 2)]


def test_a_rejected_password_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Guarding(monkeypatch).users.set_password("eve", "secret")
    assert str(outcome) == "eve: UNACCEPTABLE_CREDENTIAL: no"
