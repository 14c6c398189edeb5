"""Resolves `$ref` to places in the document itself and in its dependencies.

Nothing is fetched. A reference leads to a part of the document, to a resource with its own `$id`,
or to a dependency by its registered name. A dependency's name may be relative to the document, so
both `address.json` and `./address.json` find it.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote, urljoin, urlsplit

from headrace.serdes.json_schema.drafts import Draft, Schema, draft_of, metaschema
from headrace.serdes.json_schema.texts import pointer
from headrace.serdes.schemas import InvalidSchema

# Keywords that contain schemas, so that a walk skips schemas inside a `default` or an `enum`.
# Maps of names to schemas; `dependencies` also holds lists of names.
_MAPS = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")
_MIXED_MAPS = ("dependencies",)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLES = (
    *("additionalItems", "additionalProperties", "not", "if", "then", "else", "contains"),
    *("propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_SINGLE_OR_LIST = "items"

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

ROOT = "json-schema:///"
"""The address of a document without one, the same as the validator's."""


@dataclass(frozen=True, slots=True)
class Place:
    """A schema, and the base address of its references."""

    schema: Schema
    base: str
    draft: Draft

    def inner(self, schema: Schema) -> "Place":
        """Return the place of a schema inside this one."""
        return Place(schema, _base_within(schema, self.base, self.draft), self.draft)


@dataclass(slots=True)
class Documents:
    """A document and its dependencies, by address."""

    root: Place
    resources: dict[str, Place] = field(default_factory=dict)
    named: dict[str, Place] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, dependencies: Mapping[str, Schema]) -> Self:
        draft = draft_of(schema)
        documents = cls(_document(schema, ROOT, draft))
        documents._add(documents.root, ROOT)
        for name, text in dependencies.items():
            address = join(documents.root.base, name)
            place = _document(text, address, draft_of(text, draft))
            documents.named[name.removeprefix("./")] = place
            documents._add(place, address)
        return documents

    def resolve(self, reference: str, base: str) -> Place:
        """Return the target of a reference from a schema with this base address."""
        address, _, fragment = join(base, reference).partition("#")
        found = self.find(address)
        if found is None:
            raise InvalidSchema(f"'{reference}' is unknown. {self._known()}")
        if not fragment:
            return found
        if not fragment.startswith("/"):
            return self._anchor(reference, address, fragment)
        return _walk(found, unquote(fragment), reference)

    def find(self, address: str) -> Place | None:
        """Return the document or resource at an address; None is never looked up on a network."""
        if address in self.resources:
            return self.resources[address]
        if (draft := metaschema(address)) is not None:
            # The validator has the metaschemas. Comparisons use a schema that allows anything
            # in place of a metaschema.
            return Place(True, address, draft)
        beside = [name for name in self.named if name == address or address.endswith("/" + name)]
        return self.named[max(beside, key=len)] if beside else None

    def check(self) -> None:
        """Check that every reachable reference has a target."""
        seen: set[int] = set()
        targets = deque([self.root, *self.named.values()])
        while targets:
            # A document precedes its references' targets, so that errors have paths from its top.
            waiting: list[tuple[Place, tuple[str, ...]]] = [(targets.popleft(), ())]
            while waiting:
                place, path = waiting.pop()
                if isinstance(place.schema, bool) or id(place.schema) in seen:
                    continue
                seen.add(id(place.schema))
                waiting += _inside(place, path)
                targets += self._targets(place, path)

    def _targets(self, place: Place, path: tuple[str, ...]) -> Iterator[Place]:
        for keyword, reference in references_of(place.schema):
            try:
                yield self.resolve(reference, place.base)
            except InvalidSchema as error:
                where = pointer((*path, keyword))
                raise InvalidSchema(f"The reference at {where} is invalid: {error}") from None

    def _add(self, document: Place, address: str) -> None:
        self.resources.setdefault(_without_fragment(address), document)
        for place, _ in _walk_all(document, ()):
            if not isinstance(place.schema, dict):
                continue
            if isinstance(place.schema.get(place.draft.id_keyword), str):
                self.resources.setdefault(_without_fragment(place.base), place)
            for name in _anchors(place):
                self.resources.setdefault(f"{_without_fragment(place.base)}#{name}", place)

    def _anchor(self, reference: str, address: str, name: str) -> Place:
        found = self.resources.get(f"{address}#{name}")
        if found is None:
            raise InvalidSchema(f"'{reference}' names the anchor '{name}', which does not exist")
        return found

    def _known(self) -> str:
        if not self.named:
            return "Register that schema and name it in the references of this one"
        return f"The references of the schema are: {', '.join(sorted(self.named))}"


def references_of(schema: Schema) -> list[tuple[str, str]]:
    """Return the references of a schema itself, by keyword."""
    if isinstance(schema, bool):
        return []
    found = [(keyword, schema.get(keyword)) for keyword in _REFERENCES]
    return [(keyword, value) for keyword, value in found if isinstance(value, str)]


def join(base: str, reference: str) -> str:
    """Join a reference to an address of any scheme; `urljoin` supports few schemes."""
    scheme, separator, rest = base.partition("://")
    if reference.startswith("#") or not separator:
        return _without_fragment(base) + reference if reference.startswith("#") else reference
    try:
        if urlsplit(reference).scheme:
            return reference
        host, slash, path = rest.partition("/")
        joined = urljoin(f"http://{host or 'none'}{slash}{path}", reference)
    except ValueError as error:
        raise InvalidSchema(f"'{reference}' is not an address: {error}") from None
    return scheme + joined.removeprefix("http").replace("://none", f"://{host}", 1)


def _without_fragment(address: str) -> str:
    return address.partition("#")[0]


def _document(schema: Schema, address: str, draft: Draft) -> Place:
    schema = with_bridged_definitions(schema)
    return Place(schema, _base_within(schema, address, draft), draft)


def with_bridged_definitions(schema: Schema) -> Schema:
    """Return the document with its `definitions` also under `$defs`.

    Confluent's registry resolves `#/$defs/X` in either place; `$defs` itself takes precedence.
    """
    if isinstance(schema, bool) or not isinstance(schema.get("definitions"), dict):
        return schema
    own = schema.get("$defs", {})
    return schema | {"$defs": schema["definitions"] | own} if isinstance(own, dict) else schema


def _walk_all(start: Place, path: tuple[str, ...]) -> Iterator[tuple[Place, tuple[str, ...]]]:
    waiting = [(start, path)]
    while waiting:
        place, here = waiting.pop()
        yield place, here
        waiting += _inside(place, here)


def _inside(place: Place, path: tuple[str, ...]) -> Iterator[tuple[Place, tuple[str, ...]]]:
    for steps, inner in subschemas(place.schema):
        yield place.inner(inner), (*path, *steps)


def _walk(place: Place, fragment: str, reference: str) -> Place:
    value: Any = place.schema
    base = place.base
    for part in fragment.split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        value = _step(value, step)
        if value is None:
            raise InvalidSchema(f"'{reference}' does not exist: no '{step}'")
        base = _base_within(value, base, place.draft) if isinstance(value, dict) else base
    if not isinstance(value, bool | dict):
        raise InvalidSchema(f"'{reference}' does not lead to a schema")
    return Place(value, base, place.draft)


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


def _base_within(schema: Schema, base: str, draft: Draft) -> str:
    """Apply an `$id`, the address of a schema; older drafts ignore it next to a `$ref`."""
    if isinstance(schema, bool) or ("$ref" in schema and not draft.is_modern):
        return base
    own = schema.get(draft.id_keyword)
    if not isinstance(own, str) or own.startswith("#"):
        return base
    return join(base, own)


def _anchors(place: Place) -> Iterator[str]:
    schema = place.schema
    assert isinstance(schema, dict)
    for keyword in ("$anchor", "$dynamicAnchor"):
        if place.draft.is_modern and isinstance(schema.get(keyword), str):
            yield schema[keyword]
    own = schema.get(place.draft.id_keyword)
    if not place.draft.is_modern and isinstance(own, str) and own.startswith("#"):
        yield own[1:]


def subschemas(schema: Schema) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield each schema directly inside a schema, with its path from there."""
    if isinstance(schema, bool):
        return
    for keyword, value in schema.items():
        for path, inner in _held_by(keyword, value):
            if isinstance(inner, bool | dict):
                yield (keyword, *path), inner


def _held_by(keyword: str, value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if keyword in _SINGLES:
        yield (), value
    elif keyword in _MAPS or keyword in _MIXED_MAPS:
        yield from (((name,), inner) for name, inner in _items(value))
    elif keyword in _LISTS or (keyword == _SINGLE_OR_LIST and isinstance(value, list)):
        yield from (((str(index),), inner) for index, inner in enumerate(_list(value)))
    elif keyword == _SINGLE_OR_LIST:
        yield (), value


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
