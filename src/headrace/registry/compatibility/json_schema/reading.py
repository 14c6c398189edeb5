"""Convert a JSON Schema of any draft to nodes.

A schema may become several nodes: `{"type": "string", "enum": ["a"]}` is a string and a list of
values, so it becomes a product of both. A keyword belongs to the type that it constrains; if `type`
does not name that type, the keyword becomes a further node.
"""

from collections.abc import Callable, Iterable
from typing import Any

from headrace.registry.compatibility.json_schema import nodes
from headrace.registry.compatibility.json_schema.nodes import About, Criterion, Node
from headrace.serdes.json_schema import texts
from headrace.serdes.json_schema.drafts import Draft
from headrace.serdes.json_schema.parsing import JsonSchema
from headrace.serdes.json_schema.references import Documents, Place, references_of

_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING = ("minLength", "maxLength", "pattern", "format")
_ARRAY = (
    *("items", "additionalItems", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    *("contains", "minContains", "maxContains", "unevaluatedItems"),
)
_OBJECT = (
    *("properties", "required", "minProperties", "maxProperties", "patternProperties"),
    *("additionalProperties", "propertyNames", "dependencies", "dependentRequired"),
    *("dependentSchemas", "unevaluatedProperties"),
)
_CONDITIONAL = ("if", "then", "else")

_BY_TYPE = {
    "string": _STRING,
    "number": _NUMBER,
    "integer": _NUMBER,
    "array": _ARRAY,
    "object": _OBJECT,
}


def read(schema: JsonSchema) -> Node:
    """Return the nodes of a schema; referenced ones are converted on use."""
    return _Reader(schema.documents).node(schema.documents.root)


class _Reader:
    """Caches nodes by the identity of their schemas, so that recursion reaches the same node."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._nodes: dict[int, Node] = {}
        self._anything, self._nothing = nodes.Anything(), nodes.Nothing()

    def node(self, place: Place) -> Node:
        if isinstance(place.schema, bool):
            return self._anything if place.schema else self._nothing
        if id(place.schema) not in self._nodes:
            self._nodes[id(place.schema)] = self._read(place, place.schema)
        return self._nodes[id(place.schema)]

    def _read(self, place: Place, schema: dict[str, Any]) -> Node:
        references = references_of(schema)
        if references and not place.draft.is_modern:
            return self._reference(place, references[0][1], _about(schema, place.draft))
        parts = [self._reference(place, target, About()) for _, target in references]
        parts += self._parts(place, schema)
        return _whole(parts, _about(schema, place.draft))

    def _reference(self, place: Place, target: str, about: About) -> Node:
        def find() -> Node:
            return self.node(self._documents.resolve(target, place.base))

        return nodes.Reference(about=about, find=find)

    def _parts(self, place: Place, schema: dict[str, Any]) -> list[Node]:
        parts: list[Node] = []
        types = schema.get("type")
        if isinstance(types, str):
            parts.append(self._typed(place, schema, types))
        elif isinstance(types, list):
            options = [self._typed(place, schema, each) for each in types]
            parts.append(
                nodes.Combined(
                    criterion=Criterion.ANY, parts=options, texts=[str(t) for t in types]
                )
            )
        if "enum" in schema:
            values = frozenset(texts.write_sorted(value) for value in schema["enum"])
            parts.append(nodes.Values(values=values))
        parts += [
            self._combined(place, schema[criterion.value], criterion)
            for criterion in Criterion
            if criterion.value in schema
        ]
        if "not" in schema:
            parts.append(nodes.Negation(refused=self.node(place.inner(schema["not"]))))
        if "const" in schema and place.draft is not Draft.DRAFT_4:
            parts.append(nodes.Constant(value=texts.write_sorted(schema["const"])))
        return parts + self._untyped(place, schema, types)

    def _untyped(self, place: Place, schema: dict[str, Any], types: Any) -> list[Node]:
        """Return nodes of keywords that constrain a type which `type` does not name."""
        named = [types] if isinstance(types, str) else types or []
        taken = {keyword for each in named for keyword in _BY_TYPE.get(each, ())}
        parts = [
            self._typed(place, schema, kind)
            for kind in ("array", "object", "number", "string")
            if any(word in schema and word not in taken for word in _BY_TYPE[kind])
        ]
        if any(word in schema for word in _CONDITIONAL) and place.draft not in (
            Draft.DRAFT_4,
            Draft.DRAFT_6,
        ):
            parts.append(nodes.Conditional())
        return parts

    def _typed(self, place: Place, schema: dict[str, Any], kind: str) -> Node:
        match kind:
            case "string":
                return nodes.Text(
                    length_max=schema.get("maxLength"),
                    length_min=schema.get("minLength"),
                    pattern=schema.get("pattern"),
                )
            case "number" | "integer":
                return _number(schema, is_integer=kind == "integer")
            case "array":
                return self._array(place, schema)
            case "object":
                return self._object(place, schema)
            case "boolean":
                return nodes.Boolean()
            case _:
                return nodes.Null()

    def _combined(self, place: Place, parts: list[Any], criterion: Criterion) -> Node:
        return nodes.Combined(
            criterion=criterion,
            parts=[self.node(place.inner(part)) for part in parts],
            texts=[texts.write_sorted(part) for part in parts],
        )

    def _object(self, place: Place, schema: dict[str, Any]) -> Node:
        schemas, needed = _dependencies(schema, place.draft)
        return nodes.Object(
            properties=self._map(place, schema.get("properties", {})),
            patterns=self._map(place, schema.get("patternProperties", {})),
            required=frozenset(schema.get("required", ())),
            properties_max=schema.get("maxProperties"),
            properties_min=schema.get("minProperties"),
            additional=self._allowance(place, schema.get("additionalProperties", True)),
            unevaluated=self._unevaluated(place, schema, "unevaluatedProperties"),
            needed_with={name: frozenset(names) for name, names in needed.items()},
            schemas_with=self._map(place, schemas),
        )

    def _array(self, place: Place, schema: dict[str, Any]) -> Node:
        every, items, additional = _items(schema, place.draft)
        least = schema.get("minContains", 1 if "contains" in schema else None)
        return nodes.Array(
            every_item=None if every is None else self.node(place.inner(every)),
            items=[self.node(place.inner(item)) for item in items],
            additional=self._allowance(place, additional),
            unevaluated=self._unevaluated(place, schema, "unevaluatedItems"),
            items_max=schema.get("maxItems"),
            items_min=schema.get("minItems"),
            contains_max=schema.get("maxContains") if place.draft.is_modern else None,
            contains_min=least if place.draft.is_modern else None,
            is_unique=schema.get("uniqueItems", False),
        )

    def _allowance(self, place: Place, value: Any) -> "bool | Node":
        return value if isinstance(value, bool) else self.node(place.inner(value))

    def _unevaluated(self, place: Place, schema: dict[str, Any], keyword: str) -> Node | None:
        if not place.draft.is_modern or keyword not in schema:
            return None
        return self.node(place.inner(schema[keyword]))

    def _map(self, place: Place, schemas: dict[str, Any]) -> dict[str, Node]:
        return {name: self.node(place.inner(schema)) for name, schema in schemas.items()}


def _whole(parts: list[Node], about: About) -> Node:
    if not parts:
        return nodes.Anything(about)
    if len(parts) == 1:
        parts[0].about = about
        return parts[0]
    return nodes.Combined(
        about=about,
        criterion=Criterion.ALL,
        parts=parts,
        texts=[str(index) for index in range(len(parts))],
    )


def _about(schema: dict[str, Any], draft: Draft) -> About:
    return About(
        id=schema.get(draft.id_keyword),
        title=schema.get("title"),
        description=schema.get("description"),
        default=schema.get("default", nodes.ABSENT),
        connect_type=schema.get("connect.type"),
    )


def _number(schema: dict[str, Any], *, is_integer: bool) -> Node:
    return nodes.Number(
        is_integer=is_integer,
        maximum=schema.get("maximum"),
        minimum=schema.get("minimum"),
        exclusive_maximum=_exclusive(schema, "exclusiveMaximum", "maximum"),
        exclusive_minimum=_exclusive(schema, "exclusiveMinimum", "minimum"),
        multiple_of=schema.get("multipleOf"),
    )


def _exclusive(schema: dict[str, Any], keyword: str, bound: str) -> nodes.Quantity | None:
    """Return an exclusive bound: draft 4 has a flag next to the bound, later drafts the bound."""
    value: Any = schema.get(keyword)
    if value is True:
        value = schema.get(bound)
    return None if value is False else value


def _dependencies(
    schema: dict[str, Any], draft: Draft
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    if draft.is_modern:
        return schema.get("dependentSchemas", {}), schema.get("dependentRequired", {})
    both = schema.get("dependencies", {})
    return _keep(both, lambda each: not isinstance(each, list)), _keep(
        both, lambda each: isinstance(each, list)
    )


def _keep(values: dict[str, Any], wanted: Callable[[Any], bool]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if wanted(value)}


def _items(schema: dict[str, Any], draft: Draft) -> tuple[Any, Iterable[Any], Any]:
    """Return the schemas of all items, of the first items, and of further items."""
    items = schema.get("items")
    if draft is not Draft.DRAFT_2020_12:
        rest = schema.get("additionalItems", True)
        return (None, items, rest) if isinstance(items, list) else (items, (), rest)
    first = schema.get("prefixItems", ())
    if items is None or isinstance(items, bool):
        return None, first, items is not False
    return (None, first, items) if first else (items, (), True)
