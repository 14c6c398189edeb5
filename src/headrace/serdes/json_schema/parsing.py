"""Parses a JSON Schema by its draft: validated, with all references resolved."""

from collections.abc import Sequence
from dataclasses import dataclass

import jsonschema_rs

from headrace.serdes.json_schema import texts
from headrace.serdes.json_schema.drafts import Draft, Schema, draft_of
from headrace.serdes.json_schema.references import Documents
from headrace.serdes.schemas import Dependency, InvalidSchema, SchemaType

_VALIDATORS: dict[Draft, type[jsonschema_rs.Validator]] = {
    Draft.DRAFT_4: jsonschema_rs.Draft4Validator,
    Draft.DRAFT_6: jsonschema_rs.Draft6Validator,
    Draft.DRAFT_7: jsonschema_rs.Draft7Validator,
    Draft.DRAFT_2019_09: jsonschema_rs.Draft201909Validator,
    Draft.DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
}

_TYPES = "array, boolean, integer, null, number, object, string"


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A valid schema with a compiled validator.

    Compiling is expensive, so keep the schema to validate many values.
    """

    document: Schema
    draft: Draft
    documents: Documents
    validator: jsonschema_rs.Validator

    @property
    def type(self) -> SchemaType:
        return SchemaType.JSON

    def canonical(self) -> str:
        """Return the text without white space; keys, numbers and strings as written."""
        return texts.write(self.document)

    def normalized(self) -> str:
        return texts.write_sorted(self.document)

    def meaning(self, *, normalized: bool = False) -> str:
        return self.normalized() if normalized else self.canonical()

    def field_names(self) -> frozenset[str]:
        properties = {} if isinstance(self.document, bool) else self.document.get("properties")
        return frozenset(properties if isinstance(properties, dict) else ())

    def formatted(self, format: str) -> str:
        """Return the canonical text, the only form of JSON in Confluent's registry."""
        return self.canonical()


def parse(text: str, dependencies: Sequence[Dependency] = ()) -> JsonSchema:
    """Parse a schema. `dependencies` are the schemas that a `$ref` may name."""
    document = _read(text)
    _check(document, draft_of(document))
    named = {dependency.name: _dependency(dependency) for dependency in dependencies}
    documents = Documents.of(document, named)
    documents.check()
    return JsonSchema(document, documents.root.draft, documents, _compile(documents))


def _read(text: str) -> Schema:
    document = texts.read(text)
    if not isinstance(document, bool | dict):
        raise InvalidSchema(
            f"A JSON Schema is an object or a boolean, not {type(document).__name__}"
        )
    return document


def _dependency(dependency: Dependency) -> Schema:
    try:
        document = _read(dependency.text)
        _check(document, draft_of(document))
    except InvalidSchema as error:
        raise InvalidSchema(f"The reference '{dependency.name}': {error}") from None
    return document


def _check(document: Schema, draft: Draft) -> None:
    """Validate against the draft's metaschema."""
    try:
        jsonschema_rs.meta.validate(_as_draft(document, draft))
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchema(_fault(error)) from None
    except ValueError as error:
        raise InvalidSchema(f"The schema cannot be checked: {error}") from None


def _compile(documents: Documents) -> jsonschema_rs.Validator:
    root = documents.root

    def retrieve(address: str) -> Schema:
        """Return a known document, so that the validator never uses the network."""
        found = documents.find(address)
        if found is None:
            raise InvalidSchema(f"'{address}' is not among the references of the schema")
        return _as_draft(found.schema, found.draft)

    try:
        return _VALIDATORS[root.draft](_as_draft(root.schema, root.draft), retriever=retrieve)
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchema(_fault(error)) from None
    except ValueError as error:
        raise InvalidSchema(f"The schema cannot be compiled: {error}") from None


def _as_draft(schema: Schema, draft: Draft) -> Schema:
    """Set the draft of a document, which may have none or an unknown one."""
    return schema if isinstance(schema, bool) else schema | {"$schema": draft.url}


def _fault(error: jsonschema_rs.ValidationError) -> str:
    path = error.instance_path
    if path and path[-1] == "type" and isinstance(error.instance, str):
        fault = f'"{error.instance}" is not a type; the types are {_TYPES}'
    else:
        fault = error.message
    return f"The schema is not valid at {texts.pointer(path)}: {fault}"
