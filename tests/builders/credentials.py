"""SCRAM credentials in memory."""

from collections.abc import Mapping

from headrace.security.sasl.scram import Mechanism
from headrace.security.sasl.scram_server import TokenCredential
from headrace.security.scram_credentials import ScramCredential


class Credentials:
    """Users and tokens in memory, for any mechanism."""

    def __init__(
        self,
        users: Mapping[str, ScramCredential] | None = None,
        tokens: Mapping[str, TokenCredential] | None = None,
    ) -> None:
        self.users = users or {}
        self.tokens = tokens or {}

    def of_user(self, name: str, mechanism: Mechanism) -> ScramCredential | None:
        return self.users.get(name)

    def of_token(self, token_id: str, mechanism: Mechanism) -> TokenCredential | None:
        return self.tokens.get(token_id)

    def example(self, mechanism: Mechanism) -> ScramCredential | None:
        return next(iter(self.users.values()), None)
