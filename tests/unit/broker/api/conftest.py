"""A whole node whose authorizer a test sets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders.guarded_nodes import GuardedNode, guarded_node


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedNode]:
    async with guarded_node(tmp_path) as node:
        yield node
