"""Libraries that only some installs have."""

import importlib.util
import re
from importlib.machinery import ModuleSpec

import pytest

from headrace.cli.extras import MissingExtra, require
from headrace.runtime.installation import pip_command


def test_a_product_with_its_libraries_installed_may_start(monkeypatch: pytest.MonkeyPatch) -> None:
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
    advice = f"this needs uvicorn: install it with {pip_command(product)}"
    with pytest.raises(MissingExtra, match=re.escape(advice)):
        require(product)
