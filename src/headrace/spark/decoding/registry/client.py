"""The client of the schema registry for decoders, with the errors of options.

An unavailable registry fails the batch, because its payloads may be valid.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.schema_clients.registry_client import (
    InvalidRegistryAddress,
    RegisteredSchema,
    RegistryClient,
    RegistryFailure,
    RegistryRefusal,
)
from headrace.spark.decoding.errors import InvalidFormatOption, RegistryUnavailable

__all__ = ["RegisteredSchema", "Registry"]


class Registry:
    """Gets schemas from one registry; pickled without its cache."""

    def __init__(
        self, url: str, login: str = "", sleep: Callable[[float], None] = time.sleep
    ) -> None:
        try:
            self._client = RegistryClient(url, login, sleep=sleep)
        except InvalidRegistryAddress as error:
            raise InvalidFormatOption(
                "schema.registry.url is the address of a registry such as http://127.0.0.1:8081"
            ) from error
        self._given = url, login

    def __reduce__(self) -> Any:
        return Registry, self._given

    def __repr__(self) -> str:
        return repr(self._client)

    def schema(self, id_: int) -> RegisteredSchema | None:
        """Return the schema with this id, or None if the registry has none."""
        with _translated():
            return self._client.schema(id_)

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the newest schema of a subject."""
        with _translated():
            try:
                return self._client.latest(subject)
            except RegistryRefusal as error:
                if not error.is_not_found:
                    raise
                raise InvalidFormatOption(
                    f"the registry has no subject {subject}; name another by the option "
                    "schema.registry.subject, or give the schema by the option schema"
                ) from error


@contextmanager
def _translated() -> Iterator[None]:
    """Translate errors of the client to those of the source."""
    try:
        yield
    except RegistryRefusal as error:
        raise RegistryUnavailable(
            f"the schema registry rejected the request: {error}; check schema.registry.url and its"
            " login"
        ) from error
    except RegistryFailure as error:
        raise RegistryUnavailable(str(error)) from error
