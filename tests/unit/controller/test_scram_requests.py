"""Changes of SCRAM credentials, as ScramControlManager decides them."""

import pytest

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.requests import Context, decide
from headrace.errors import (
    ClusterAuthorizationFailed,
    DuplicateResource,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schemas.records.metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from headrace.security.access import OPEN, Access
from headrace.security.acls import Operation, ResourceType
from headrace.security.sasl.scram import Mechanism, salted_password
from headrace.security.scram_credentials import credential_of
from headrace.settings.broker import BrokerSettings
from tests.builders.authorizers import ListedRights, access_of
from tests.builders.metadata_images import applied, image_with

SALT = b"salt"


def context(access: Access = OPEN) -> Context:
    settings = BrokerSettings()
    return Context(
        node_id=1,
        settings=settings,
        defaults=ClusterDefaults.of(settings),
        version=0,
        next_offset=7,
        kraft_version=1,
        access=access,
    )


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = salted_password(Mechanism.SHA_256, "secret", SALT, 4096)
    return ScramCredentialUpsertion(name, mechanism, iterations, SALT, salted)


def decided(
    image: MetadataImage, *entries: ScramCredentialDeletion | ScramCredentialUpsertion
) -> Decision[AlterUserScramCredentialsResponse]:
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in entries if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in entries if isinstance(one, ScramCredentialUpsertion)],
    )
    return decide(image, request, context())


def codes(decision: Decision[AlterUserScramCredentialsResponse]) -> dict[str, int]:
    return {one.user: one.error_code for one in decision.reply.results}


def with_users(*names: str) -> MetadataImage:
    image = image_with()
    return applied(image, decided(image, *map(upsertion, names)))


def test_a_credential_has_the_keys_of_the_password() -> None:
    """SEC-5: the salted password itself is not stored."""
    (record,) = decided(image_with(), upsertion("ada")).records
    expected = credential_of(Mechanism.SHA_256, "secret", SALT, 4096)
    assert record.message == UserScramCredentialRecord(
        "ada", 1, SALT, expected.stored_key, expected.server_key, 4096
    )


def test_a_credential_is_found_by_mechanism_and_user() -> None:
    """SEC-8: logins look a credential up in the image."""
    assert list(with_users("ada", "bob").scram_credentials) == [(1, "ada"), (1, "bob")]


def test_a_credential_is_removed() -> None:
    decision = decided(with_users("ada", "bob"), ScramCredentialDeletion("ada", 1))
    assert [one.message for one in decision.records] == [RemoveUserScramCredentialRecord("ada", 1)]
    assert list(applied(with_users("ada", "bob"), decision).scram_credentials) == [(1, "bob")]


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (upsertion("ada", iterations=4095), UnacceptableCredential),
        (upsertion("ada", iterations=16385), UnacceptableCredential),
        (upsertion("", 1), UnacceptableCredential),
        (upsertion("ada", mechanism=0), UnsupportedSaslMechanism),
        (upsertion("ada", mechanism=3), UnsupportedSaslMechanism),
        (ScramCredentialUpsertion("ada", 1, 4096, SALT, b""), UnacceptableCredential),
        (ScramCredentialDeletion("", 1), UnacceptableCredential),
        (ScramCredentialDeletion("ada", 7), UnsupportedSaslMechanism),
        (ScramCredentialDeletion("eve", 1), ResourceNotFound),
        (ScramCredentialDeletion("ada", 2), ResourceNotFound),
    ],
)
def test_an_invalid_entry_is_rejected_and_changes_nothing(
    entry: ScramCredentialDeletion | ScramCredentialUpsertion,
    error: type[UnacceptableCredential | ResourceNotFound],
) -> None:
    decision = decided(with_users("ada"), entry)
    assert codes(decision) == {entry.name: error.code}
    assert decision.records == []


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_the_limits_of_iterations_are_allowed(iterations: int) -> None:
    assert codes(decided(image_with(), upsertion("ada", iterations=iterations))) == {"ada": 0}


@pytest.mark.parametrize(
    "entries",
    [
        (upsertion("ada", 1), upsertion("ada", 2)),
        (ScramCredentialDeletion("ada", 1), ScramCredentialDeletion("ada", 1)),
        (ScramCredentialDeletion("ada", 1), upsertion("ada", 2)),
        (upsertion("ada", 1), upsertion("ada", 1), upsertion("ada", 1)),
    ],
)
def test_two_entries_of_a_user_are_rejected_together(
    entries: tuple[ScramCredentialDeletion | ScramCredentialUpsertion, ...],
) -> None:
    decision = decided(with_users("ada"), *entries)
    assert codes(decision) == {"ada": DuplicateResource.code}
    assert decision.records == []


def test_the_first_error_of_a_user_is_answered_and_other_users_are_changed() -> None:
    entries = (upsertion("ada", 9), upsertion("ada", 1), upsertion("bob"))
    decision = decided(image_with(), *entries)
    assert codes(decision) == {"ada": UnsupportedSaslMechanism.code, "bob": 0}
    assert [type(one.message) for one in decision.records] == [UserScramCredentialRecord]


def test_a_cluster_of_an_old_release_has_no_credentials() -> None:
    image = image_with(levels={"metadata.version": 10})
    assert codes(decided(image, upsertion("ada"))) == {"ada": UnsupportedVersion.code}


def test_the_right_to_alter_the_cluster_is_needed() -> None:
    authorizer = ListedRights()
    with pytest.raises(ClusterAuthorizationFailed):
        decide(
            image_with(),
            AlterUserScramCredentialsRequest(upsertions=[upsertion("ada")]),
            context(access_of("ada", authorizer)),
        )
    assert authorizer.asked == [(Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")]
