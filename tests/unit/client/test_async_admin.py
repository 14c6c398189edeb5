"""The asyncio twin has every part and every call of `Admin`, with its types."""

import inspect
from functools import cached_property
from typing import Any, get_type_hints

import pytest

from headrace.client.admin import Admin
from headrace.client.async_admin import AsyncAdmin, Awaited

PARTS = sorted(name for name, value in vars(Admin).items() if isinstance(value, cached_property))


def part_class(owner: type, name: str) -> Any:
    """What a part of an Admin is, by the word of its return type."""
    found = inspect.getattr_static(owner, name)
    assert isinstance(found, cached_property)
    module = __import__(f"headrace.client.{name}", fromlist=[""])
    return get_type_hints(found.func, vars(module))["return"]


@pytest.mark.parametrize("name", PARTS)
def test_every_call_of_a_part_has_a_twin(name: str) -> None:
    part, twin = part_class(Admin, name), part_class(AsyncAdmin, name)
    calls = {one for one, call in vars(part).items() if callable(call) and not one.startswith("_")}
    twins = {one for one, call in vars(twin).items() if isinstance(call, Awaited)}
    assert twins == calls


def test_every_part_has_a_twin() -> None:
    twins = {name for name, one in vars(AsyncAdmin).items() if isinstance(one, cached_property)}
    assert twins == set(PARTS)
