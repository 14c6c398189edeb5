"""`AsyncAdmin` has every part and every call of `Admin`."""

import inspect
from functools import cached_property
from typing import Any, get_type_hints

import pytest

from headrace.client.admin import Admin
from headrace.client.async_admin import AsyncAdmin, AsyncPart
from headrace.client.async_thread import Awaited

PARTS = sorted(name for name, value in vars(Admin).items() if isinstance(value, cached_property))


def part_class(name: str) -> Any:
    """Return the class of a part of `Admin`, by its return type."""
    found = inspect.getattr_static(Admin, name)
    assert isinstance(found, cached_property)
    module = __import__(f"headrace.client.{name}", fromlist=[""])
    return get_type_hints(found.func, vars(module))["return"]


@pytest.mark.parametrize("name", PARTS)
def test_every_call_of_a_part_can_be_awaited(name: str) -> None:
    part, twin = part_class(name), type(inspect.getattr_static(AsyncAdmin, name))
    calls = {one for one, call in vars(part).items() if callable(call) and not one.startswith("_")}
    twins = {one for one, call in vars(twin).items() if isinstance(call, Awaited)}
    assert twins == calls


def test_every_part_has_an_asynchronous_version() -> None:
    twins = {name for name, one in vars(AsyncAdmin).items() if isinstance(one, AsyncPart)}
    assert twins == set(PARTS)
