"""SCRAM users over the wire: list them, set passwords, remove credentials.

The password itself is not sent: the client salts and hashes it, as Kafka's tools do.
"""

from collections.abc import Iterable

import msgspec

from headrace.client.cluster import Cluster, check_code, outcome_of
from headrace.client.descriptions import Outcome
from headrace.errors import ResourceNotFound
from headrace.protocol.schemas.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schemas.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from headrace.security.sasl.scram import ITERATIONS_MIN, Mechanism, salted_password
from headrace.security.scram_credentials import MECHANISM_IDS, mechanism_of, new_salt


class ScramUser(msgspec.Struct, frozen=True, order=True):
    """A user, with the iterations of each mechanism by name."""

    name: str
    credentials: dict[str, int]


class Users:
    """The SCRAM users of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe(self, names: Iterable[str] = ()) -> list[ScramUser]:
        """Return the named users, or all; unknown names are left out."""
        wanted = [UserName(name) for name in dict.fromkeys(names)]
        request = DescribeUserScramCredentialsRequest(users=wanted or None)
        answer = self._cluster.query(request, DescribeUserScramCredentialsResponse)
        found = []
        for one in answer.results:
            if one.error_code != ResourceNotFound.code:
                check_code(one.error_code, one.error_message, f"user {one.user!r}")
                credentials = {
                    _name(info.mechanism): info.iterations for info in one.credential_infos
                }
                found.append(ScramUser(one.user, credentials))
        return sorted(found, key=lambda user: user.name)

    def set_password(
        self,
        name: str,
        password: str,
        mechanism: Mechanism = Mechanism.SHA_512,
        *,
        iterations: int = ITERATIONS_MIN,
    ) -> Outcome:
        """Create a user, or replace the credential of one mechanism."""
        salt = new_salt()
        upsertion = ScramCredentialUpsertion(
            name=name,
            mechanism=MECHANISM_IDS[mechanism],
            iterations=iterations,
            salt=salt,
            salted_password=salted_password(mechanism, password, salt, iterations),
        )
        return self._alter(AlterUserScramCredentialsRequest(upsertions=[upsertion]))

    def remove(self, name: str, mechanism: Mechanism) -> Outcome:
        """Remove the credential of one mechanism; a user without credentials is gone."""
        deletion = ScramCredentialDeletion(name, MECHANISM_IDS[mechanism])
        return self._alter(AlterUserScramCredentialsRequest(deletions=[deletion]))

    def _alter(self, request: AlterUserScramCredentialsRequest) -> Outcome:
        """Send a change; it has one user, because brokers accept one entry of each user."""
        answer = self._cluster.ask_controller(request, AlterUserScramCredentialsResponse)
        (result,) = answer.results
        message = result.error_message if result.error_code else None
        return outcome_of(result.user, result.error_code, message)


def _name(number: int) -> str:
    """Return the name of a mechanism; newer brokers may have more."""
    return mechanism_of(number) or f"mechanism {number}"
