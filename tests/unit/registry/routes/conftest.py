"""A client of a registry without Kafka."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.processes.registries import RegistryWithoutKafka, client_of


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(RegistryWithoutKafka()) as client:
        yield client
