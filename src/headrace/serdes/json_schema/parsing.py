"""Reads a JSON Schema: by its draft, checked, with all references resolved."""

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
    """A schema that was read and found valid, with a compiled validator.

    Compiling is what costs, so whoever validates many values keeps the schema.
    """

    document: Schema
    draft: Draft
    documents: Documents
    validator: jsonschema_rs.Validator

    @property
    def type(self) -> SchemaType:
        return SchemaType.JSON

    def canonical(self) -> str:
        """Without white space; keys, numbers and strings as they were written."""
        return texts.write(self.document)

    def normalized(self) -> str:
        return texts.write_sorted(self.document)

    def meaning(self, *, normalized: bool = False) -> str:
        return self.normalized() if normalized else self.canonical()

    def field_names(self) -> frozenset[str]:
        properties = {} if isinstance(self.document, bool) else self.document.get("properties")
        return frozenset(properties if isinstance(properties, dict) else ())

    def formatted(self, format: str) -> str:
        """Confluent's registry has no other form for JSON, and answers with this one."""
        return self.canonical()


def parse(text: str, dependencies: Sequence[Dependency] = ()) -> JsonSchema:
    """Read a schema. `dependencies` are the schemas that a `$ref` may lead to, by their names."""
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
    """Against the draft's metaschema."""
    try:
        jsonschema_rs.meta.validate(_as_draft(document, draft))
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchema(_fault(error)) from None
    except ValueError as error:
        raise InvalidSchema(f"The schema cannot be checked: {error}") from None


def _compile(documents: Documents) -> jsonschema_rs.Validator:
    root = documents.root

    def retrieve(address: str) -> Schema:
        """Stands where the validator would ask the network: only what is known is given."""
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
    """The document as one of its draft, whether it named none or one that nobody knows."""
    return schema if isinstance(schema, bool) else schema | {"$schema": draft.url}


def _fault(error: jsonschema_rs.ValidationError) -> str:
    path = error.instance_path
    if path and path[-1] == "type" and isinstance(error.instance, str):
        fault = f'"{error.instance}" is no type; the types are {_TYPES}'
    else:
        fault = error.message
    return f"The schema is not valid at {texts.pointer(path)}: {fault}"
