"""Libraries that only some installs have."""

import importlib.util
from importlib.machinery import ModuleSpec

import pytest

from headrace.cli.extras import MissingExtra, require


def test_a_product_whose_libraries_are_there_may_start(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def found(name: str) -> ModuleSpec:
        asked.append(name)
        return ModuleSpec(name, None)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    require("rest")
    assert asked == ["uvicorn", "starlette", "wsproto"]


@pytest.mark.parametrize("product", ["registry", "rest", "serve"])
def test_a_library_that_is_missing_is_named_with_its_extra(
    product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=rf"this needs uvicorn, of the extra \[{product}\]"):
        require(product)
