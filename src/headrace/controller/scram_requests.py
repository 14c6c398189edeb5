"""AlterUserScramCredentials, from request to response.

An error of one entry discards all entries of its user. A user can have one entry per request, even
if the entries are for different mechanisms.
"""

from headrace.controller.decision import Decision, check_size
from headrace.controller.requests import Context
from headrace.errors import (
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from headrace.metadata.features import has_scram
from headrace.metadata.image import MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schemas.records.metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from headrace.security.sasl.scram import ITERATIONS_MIN, Mechanism
from headrace.security.scram_credentials import (
    STORED_ITERATIONS_MAX,
    credential_of_salted,
    mechanism_of,
)

_Entry = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_user_scram_credentials(
    image: MetadataImage, request: AlterUserScramCredentialsRequest, context: Context
) -> Decision[AlterUserScramCredentialsResponse]:
    records: dict[str, Message] = {}
    errors: dict[str, KafkaError] = {}
    entries: list[_Entry] = [*request.deletions, *request.upsertions]
    for entry in entries:
        user = entry.name
        if user in errors:
            continue
        try:
            if records.pop(user, None) is not None:
                raise DuplicateResource("a user cannot be altered twice in the same request")
            records[user] = _record(image, entry)
        except KafkaError as error:
            errors[user] = error
    written = [VersionedRecord(record) for record in records.values()]
    check_size(written, "the change of credentials")
    results = [AlterUserScramCredentialsResult(user, 0, None) for user in records]
    results += [
        AlterUserScramCredentialsResult(user, error.code, str(error))
        for user, error in errors.items()
    ]
    return Decision(written, AlterUserScramCredentialsResponse(results=results))


def _record(image: MetadataImage, entry: _Entry) -> Message:
    """Return the record of an entry; raise if the entry is invalid."""
    if not has_scram(image.metadata_version):
        raise UnsupportedVersion("the metadata.version of this cluster has no SCRAM credentials")
    if not entry.name:
        raise UnacceptableCredential("the name of a user must not be empty")
    mechanism = mechanism_of(entry.mechanism)
    if mechanism is None:
        raise UnsupportedSaslMechanism(f"{entry.mechanism} is not a SCRAM mechanism")
    if isinstance(entry, ScramCredentialDeletion):
        if (entry.mechanism, entry.name) not in image.scram_credentials:
            raise ResourceNotFound(f"user {entry.name} has no {mechanism} credential")
        return RemoveUserScramCredentialRecord(entry.name, entry.mechanism)
    return _upsertion(mechanism, entry)


def _upsertion(mechanism: Mechanism, entry: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    if entry.iterations < ITERATIONS_MIN:
        raise UnacceptableCredential(
            f"too few iterations: {entry.iterations}; the minimum is {ITERATIONS_MIN}"
        )
    if entry.iterations > STORED_ITERATIONS_MAX:
        raise UnacceptableCredential(
            f"too many iterations: {entry.iterations}; the maximum is {STORED_ITERATIONS_MAX}"
        )
    if not entry.salted_password:
        raise UnacceptableCredential("the salted password must not be empty")
    found = credential_of_salted(mechanism, entry.salted_password, entry.salt, entry.iterations)
    return UserScramCredentialRecord(
        name=entry.name,
        mechanism=entry.mechanism,
        salt=found.salt,
        stored_key=found.stored_key,
        server_key=found.server_key,
        iterations=found.iterations,
    )
