"""Python objects named on the command line as `module:name`: transforms, classes."""

import sys
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.errors import HeadraceError


class NoSuchObject(HeadraceError):
    """An argument names a missing module or object."""


def load_object(text: str) -> Any:
    """Import the object of `shop.orders:Order` or `orders.py:Order`, from the current folder."""
    home, _, name = text.rpartition(":")
    if not home or not name:
        raise NoSuchObject(f"{text!r} is not of the form module:name or file.py:name")
    module = _from_file(Path(home)) if home.endswith(".py") else _module(home)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise NoSuchObject(f"{home} has no {name}")
        found = getattr(found, part)
    return found


def _module(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise NoSuchObject(f"module {name} not found from {folder}") from None


def _from_file(path: Path) -> ModuleType:
    """Import a file as a module named after it: classes resolve their annotations there."""
    if not path.is_file():
        raise NoSuchObject(f"file {path} does not exist")
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
