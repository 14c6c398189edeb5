"""SCRAM credentials in memory."""

from collections.abc import Mapping

from headrace.security.sasl.scram import Mechanism
from headrace.security.sasl.scram_server import Credential, TokenCredential


class Credentials:
    """Users and tokens in memory, for any mechanism."""

    def __init__(
        self,
        users: Mapping[str, Credential] | None = None,
        tokens: Mapping[str, TokenCredential] | None = None,
        iterations: int = 4096,
    ) -> None:
        self.users = users or {}
        self.tokens = tokens or {}
        self.iterations = iterations

    def of_user(self, name: str, mechanism: Mechanism) -> Credential | None:
        return self.users.get(name)

    def of_token(self, token_id: str, mechanism: Mechanism) -> TokenCredential | None:
        return self.tokens.get(token_id)

    def usual_iterations(self, mechanism: Mechanism) -> int:
        return self.iterations
