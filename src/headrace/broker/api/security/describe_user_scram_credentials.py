"""DescribeUserScramCredentials v0: list users with their mechanisms and iterations (KIP-554).

Salts and keys never leave the metadata.
"""

from collections import Counter
from collections.abc import Mapping

from headrace.broker.api.registry import Call, api
from headrace.errors import DuplicateResource, ResourceNotFound
from headrace.metadata.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.DESCRIBE, ResourceType.CLUSTER),)


@api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=range(1), rights=_RIGHTS)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, call: Call
) -> DescribeUserScramCredentialsResponse:
    call.access.check_on_cluster(Operation.DESCRIBE)
    known = _credentials(call.broker.image)
    asked = Counter(one.name for one in request.users or ()) or Counter(sorted(known))
    results = [_described(user, count, known) for user, count in asked.items()]
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def _credentials(image: MetadataImage) -> dict[str, list[CredentialInfo]]:
    """Return the credentials of each user, in the order of mechanisms."""
    users: dict[str, list[CredentialInfo]] = {}
    for (mechanism, user), record in sorted(image.scram_credentials.items()):
        users.setdefault(user, []).append(CredentialInfo(mechanism, record.iterations))
    return users


def _described(
    user: str, count: int, known: Mapping[str, list[CredentialInfo]]
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        message = f"user {user} is described twice in the same request"
        return DescribeUserScramCredentialsResult(user, DuplicateResource.code, message)
    if user not in known:
        message = f"user {user} has no SCRAM credential"
        return DescribeUserScramCredentialsResult(user, ResourceNotFound.code, message)
    return DescribeUserScramCredentialsResult(user, 0, None, known[user])
