"""Removes extensions from a .proto file, or the options that they define."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from headrace.serdes.protobuf.elements import File, Option

META = "confluent/meta.proto"
META_PREFIX = "(confluent."
META_PREFIX_IN_FULL = "(.confluent."

EXTENSIONS = ("extensions", "extends")


def without_extensions(file: File) -> File:
    """Remove extensions of messages, and options that are not Protobuf's or Confluent's."""
    found: File = _pruned(file, known, dropped=EXTENSIONS)
    return found


def without_custom_options(file: File) -> File:
    """Remove options that are not Protobuf's or Confluent's; name Confluent's in full.

    In a package such as `io.confluent`, protoc would look for the short names in that package only.
    """
    found: File = _pruned(file, known_in_full)
    return found


def uses_meta(file: File) -> bool:
    """Return whether the file uses an option that Confluent's own file defines."""
    seen: list[Option] = []

    def collect(option: Option) -> Option:
        seen.append(option)
        return option

    _pruned(file, collect)
    return any(is_of_meta(option) for option in seen)


def is_of_meta(option: Option) -> bool:
    return option.name.startswith((META_PREFIX, META_PREFIX_IN_FULL))


def known(option: Option) -> Option | None:
    return option if not option.is_custom or is_of_meta(option) else None


def known_in_full(option: Option) -> Option | None:
    if not option.name.startswith(META_PREFIX):
        return known(option)
    return replace(option, name=META_PREFIX_IN_FULL + option.name.removeprefix(META_PREFIX))


def _pruned(
    element: Any, kept: Callable[[Option], Option | None], *, dropped: tuple[str, ...] = ()
) -> Any:
    """Return an element with the options that are kept, recursively."""
    changes: dict[str, Any] = {}
    for part in fields(element):
        value = getattr(element, part.name)
        if part.name in dropped:
            changes[part.name] = ()
        elif part.name == "options":
            found = map(kept, value)
            changes[part.name] = tuple(option for option in found if option is not None)
        elif is_dataclass(value):
            changes[part.name] = _pruned(value, kept, dropped=dropped)
        elif isinstance(value, tuple):
            changes[part.name] = tuple(
                _pruned(one, kept, dropped=dropped) if is_dataclass(one) else one for one in value
            )
    return replace(element, **changes)
