"""Values of properties from files, directories and the environment: `${file:/etc/secrets:key}`.

The syntax, the classes and their parameters are those of Kafka's config providers. Kafka leaves a
reference in place if it has no value, so a wrong path becomes the password. Here it is an error.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from headrace.errors import InvalidConfig
from headrace.settings.definitions import nearest
from headrace.settings.properties import read

PROVIDERS = "config.providers"

_PACKAGE = "org.apache.kafka.common.config.provider."
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_ALLOWED_PATHS = "allowed.paths"
_ALLOWLIST = "allowlist.pattern"

Lookup = Callable[[str, str], str]
"""Returns the value of a key at a path."""


class Resolved(NamedTuple):
    """Properties without references, the names that had some, and the mistakes by name."""

    properties: dict[str, str]
    references: dict[str, str]
    """The text with references of each property that had some, for errors about its value."""
    mistakes: dict[str, str]


def resolve(properties: Mapping[str, str], environment: Mapping[str, str]) -> Resolved:
    """Replace the references in the values of properties."""
    found = Resolved(dict(properties), {}, {})
    if not properties.get(PROVIDERS, "").strip():
        return found
    lookups: dict[str, Lookup] = {}
    for name in _names(properties):
        try:
            lookups[name] = _lookup(name, properties, environment)
        except InvalidConfig as mistake:
            found.mistakes[f"{PROVIDERS}.{name}.class"] = str(mistake)
    if found.mistakes:
        return found
    for name, text in properties.items():
        if not is_of_providers(name) and _REFERENCE.search(text):
            found.references[name] = text
            try:
                found.properties[name] = _REFERENCE.sub(_replacing(lookups), text)
            except InvalidConfig as mistake:
                found.mistakes[name] = f"{name}: {mistake}"
    return found


def is_of_providers(name: str) -> bool:
    """Return whether a property defines the providers, and so is not resolved."""
    return name == PROVIDERS or name.startswith(f"{PROVIDERS}.")


def _names(properties: Mapping[str, str]) -> Iterator[str]:
    for part in properties[PROVIDERS].split(","):
        if name := part.strip():
            yield name


def _replacing(lookups: Mapping[str, Lookup]) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        provider, path, key = found.groups(default="")
        if provider not in lookups:
            raise InvalidConfig(
                f"{found[0]} names the provider {provider!r}, and {PROVIDERS} has "
                f"{', '.join(lookups)}"
            )
        try:
            return lookups[provider](path, key)
        except InvalidConfig as error:
            raise InvalidConfig(f"{found[0]} has no value: {error}") from error

    return replace


def _lookup(name: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> Lookup:
    """Make the provider of a name; raise if its class or a parameter is unknown."""
    property_name = f"{PROVIDERS}.{name}.class"
    class_name = properties.get(property_name, "").strip()
    if not class_name:
        raise InvalidConfig(f"{property_name} is not set; {_known_classes()}")
    if class_name not in _CLASSES:
        raise InvalidConfig(
            f"{property_name}: {class_name} is not a known class; {_known_classes()}"
        )
    make, parameter = _CLASSES[class_name]
    prefix = f"{PROVIDERS}.{name}.param."
    given = {
        one.removeprefix(prefix): text for one, text in properties.items() if one.startswith(prefix)
    }
    for one in given:
        if one != parameter:
            raise InvalidConfig(
                f"{prefix}{one} is not a parameter of {class_name}{nearest(one, [parameter])}; "
                f"it has {parameter}"
            )
    return make(given.get(parameter), environment, f"{prefix}{parameter}")


def _known_classes() -> str:
    return f"use {', '.join(_CLASSES)}"


def _file(allowed: str | None, environment: Mapping[str, str], place: str) -> Lookup:
    """Values are properties of a file."""
    paths = _allowed_paths(allowed, place)

    def look_up(path: str, key: str) -> str:
        values = read(_checked(path, paths, place))
        if key not in values:
            raise InvalidConfig(f"the file has no key {key!r}")
        return values[key]

    return look_up


def _directory(allowed: str | None, environment: Mapping[str, str], place: str) -> Lookup:
    """A value is the content of a file, and its key is the name of the file."""
    paths = _allowed_paths(allowed, place)

    def look_up(path: str, key: str) -> str:
        directory = _checked(path, paths, place)
        if not os.path.isdir(directory):
            raise InvalidConfig("the path is not a directory")
        if not key or os.sep in key or not os.path.isfile(file := os.path.join(directory, key)):
            raise InvalidConfig(f"the directory has no file {key!r}")
        return _content(file)

    return look_up


def _variables(pattern: str | None, environment: Mapping[str, str], place: str) -> Lookup:
    """Values are variables of the environment."""
    try:
        allowed = re.compile(".*" if pattern is None else pattern)
    except re.error as error:
        raise InvalidConfig(f"{place} is not a regular expression: {error}") from error

    def look_up(path: str, key: str) -> str:
        if path:
            raise InvalidConfig("variables have no path; write only the name")
        if not allowed.fullmatch(key):
            raise InvalidConfig(f"{place} does not allow it")
        if key not in environment:
            raise InvalidConfig("the variable is not set")
        return environment[key]

    return look_up


_CLASSES: Mapping[str, tuple[Callable[[str | None, Mapping[str, str], str], Lookup], str]] = {
    f"{_PACKAGE}FileConfigProvider": (_file, _ALLOWED_PATHS),
    f"{_PACKAGE}DirectoryConfigProvider": (_directory, _ALLOWED_PATHS),
    f"{_PACKAGE}EnvVarConfigProvider": (_variables, _ALLOWLIST),
}
"""How each class is made, and its only parameter."""


def _allowed_paths(text: str | None, place: str) -> list[str] | None:
    """Return the paths that may be read; None if all may."""
    if not text:
        return None
    paths = [os.path.normpath(path) for path in text.split(",")]
    for path in paths:
        if not os.path.isabs(path):
            raise InvalidConfig(f"{place}: {path} is not an absolute path")
        if not os.path.exists(path):
            raise InvalidConfig(f"{place}: {path} does not exist")
    return paths


def _checked(path: str, allowed: list[str] | None, place: str) -> str:
    if not path:
        raise InvalidConfig("the reference has no path; write ${provider:path:key}")
    if allowed is None:
        return path
    normal = os.path.normpath(path)
    if not any(normal == one or normal.startswith(one.rstrip(os.sep) + os.sep) for one in allowed):
        raise InvalidConfig(f"{place} does not allow the path")
    return normal


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise InvalidConfig(f"the file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig("the file is not UTF-8 text") from error
