"""SCRAM credentials out of the metadata: those of users, and those of delegation tokens."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.security.sasl.scram import Mechanism
from headrace.security.sasl.scram_server import TokenCredential
from headrace.security.scram_credentials import MECHANISM_IDS, ScramCredential

if TYPE_CHECKING:
    from headrace.metadata.image import MetadataImage
    from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord

TokenLookup = Callable[[str, Mechanism], TokenCredential | None]
"""Returns the credential of a delegation token by its id."""


class ImageCredentials:
    """The credentials of the present image."""

    def __init__(self, image: "Callable[[], MetadataImage]", tokens: TokenLookup) -> None:
        self._image = image
        self._tokens = tokens
        self._counted: object = None
        self._examples: dict[int, ScramCredential] = {}

    def of_user(self, name: str, mechanism: Mechanism) -> ScramCredential | None:
        record = self._image().scram_credentials.get((MECHANISM_IDS[mechanism], name))
        return None if record is None else _credential(record)

    def of_token(self, token_id: str, mechanism: Mechanism) -> TokenCredential | None:
        return self._tokens(token_id, mechanism)

    def example(self, mechanism: Mechanism) -> ScramCredential | None:
        """Return a credential of the most frequent form; counted once for each set of users."""
        users = self._image().scram_credentials
        if users is not self._counted:
            self._counted = users
            self._examples = {
                number: found
                for number in MECHANISM_IDS.values()
                if (found := _most_usual([one for key, one in users.items() if key[0] == number]))
            }
        return self._examples.get(MECHANISM_IDS[mechanism])


def no_tokens(token_id: str, mechanism: Mechanism) -> TokenCredential | None:
    """The lookup of a cluster without delegation tokens."""
    return None


def _most_usual(records: "list[UserScramCredentialRecord]") -> ScramCredential | None:
    if not records:
        return None
    forms = Counter(_form(one) for one in records)
    usual = max(sorted(forms), key=lambda form: forms[form])
    return _credential(next(one for one in records if _form(one) == usual))


def _form(record: "UserScramCredentialRecord") -> tuple[int, int, bool]:
    return record.iterations, len(record.salt), bytes(record.salt).isalnum()


def _credential(record: "UserScramCredentialRecord") -> ScramCredential:
    return ScramCredential(
        bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
    )
