"""What `$ref` refers to: places in the document itself and in the documents it depends on.

Nothing is ever fetched. A reference leads to a part of the document, to a resource with an `$id`
of its own, or to a dependency by the name that it was registered under. A dependency's name may be
relative: it stands beside the document, so `address.json` and `./address.json` both find it.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote, urljoin, urlsplit

from headrace.serdes.json_schema.drafts import Draft, Schema, draft_of, metaschema
from headrace.serdes.json_schema.keywords import REFERENCES, subschemas
from headrace.serdes.json_schema.texts import pointer
from headrace.serdes.schemas import InvalidSchema

ROOT = "json-schema:///"
"""The address of a document that has none; the validator has the same."""


@dataclass(frozen=True, slots=True)
class Place:
    """A schema that was found, and the address that its own references start from."""

    schema: Schema
    base: str
    draft: Draft

    def inner(self, schema: Schema) -> "Place":
        """A schema inside of this one."""
        return Place(schema, _base_within(schema, self.base, self.draft), self.draft)


@dataclass(slots=True)
class Documents:
    """A document and all that it may refer to, by address."""

    root: Place
    resources: dict[str, Place] = field(default_factory=dict)
    named: dict[str, Place] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, dependencies: Mapping[str, Schema]) -> Self:
        draft = draft_of(schema)
        documents = cls(_document(schema, ROOT, draft))
        documents._take_in(documents.root, ROOT)
        for name, text in dependencies.items():
            address = join(documents.root.base, name)
            place = _document(text, address, draft_of(text, draft))
            documents.named[name.removeprefix("./")] = place
            documents._take_in(place, address)
        return documents

    def resolve(self, reference: str, base: str) -> Place:
        """The place that a reference leads to, from a schema with this base address."""
        address, _, fragment = join(base, reference).partition("#")
        found = self.find(address)
        if found is None:
            raise InvalidSchema(f"'{reference}' is not known. {self._known()}")
        if not fragment:
            return found
        if not fragment.startswith("/"):
            return self._anchor(reference, address, fragment)
        return _walk(found, unquote(fragment), reference)

    def find(self, address: str) -> Place | None:
        """The whole document or resource at an address; `None` is never asked of a network."""
        if address in self.resources:
            return self.resources[address]
        if (draft := metaschema(address)) is not None:
            # The metaschemas are known to the validator. What compares schemas takes the schema
            # of all schemas for one that allows anything.
            return Place(True, address, draft)
        beside = [name for name in self.named if name == address or address.endswith("/" + name)]
        return self.named[max(beside, key=len)] if beside else None

    def check(self) -> None:
        """Prove that every reference that can be reached leads somewhere."""
        seen: set[int] = set()
        targets = deque([self.root, *self.named.values()])
        while targets:
            # A document goes before what is referred to, so that errors name places from its top.
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
                raise InvalidSchema(f"The reference at {where} leads nowhere: {error}") from None

    def _take_in(self, document: Place, address: str) -> None:
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
            raise InvalidSchema(f"'{reference}' names the anchor '{name}', which nothing has")
        return found

    def _known(self) -> str:
        if not self.named:
            return "Register that schema and name it in the references of this one"
        return f"The references of the schema are: {', '.join(sorted(self.named))}"


def references_of(schema: Schema) -> list[tuple[str, str]]:
    """The references of a schema itself, by keyword."""
    if isinstance(schema, bool):
        return []
    found = [(keyword, schema.get(keyword)) for keyword in REFERENCES]
    return [(keyword, value) for keyword, value in found if isinstance(value, str)]


def join(base: str, reference: str) -> str:
    """A reference as an address, for any scheme: the library joins only those that it knows."""
    scheme, separator, rest = base.partition("://")
    if reference.startswith("#") or not separator:
        return _without_fragment(base) + reference if reference.startswith("#") else reference
    try:
        if urlsplit(reference).scheme:
            return reference
        host, slash, path = rest.partition("/")
        joined = urljoin(f"http://{host or 'none'}{slash}{path}", reference)
    except ValueError as error:
        raise InvalidSchema(f"'{reference}' is no address: {error}") from None
    return scheme + joined.removeprefix("http").replace("://none", f"://{host}", 1)


def _without_fragment(address: str) -> str:
    return address.partition("#")[0]


def _document(schema: Schema, address: str, draft: Draft) -> Place:
    schema = with_bridged_definitions(schema)
    return Place(schema, _base_within(schema, address, draft), draft)


def with_bridged_definitions(schema: Schema) -> Schema:
    """The document with its `definitions` under `$defs` as well, where a reference finds them.

    Confluent's registry resolves `#/$defs/X` in either place; what is in `$defs` itself wins.
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
            raise InvalidSchema(f"'{reference}' has no '{step}' on its way")
        base = _base_within(value, base, place.draft) if isinstance(value, dict) else base
    if not isinstance(value, bool | dict):
        raise InvalidSchema(f"'{reference}' leads to something that is no schema")
    return Place(value, base, place.draft)


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


def _base_within(schema: Schema, base: str, draft: Draft) -> str:
    """An `$id` gives a schema an address of its own; beside a `$ref` older drafts ignore it."""
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
