"""A schema as users give it: a text, a Python class, or one with references and rules."""

from headrace.serdes.registry_client import NewSchema
from headrace.serdes.schemas import SchemaType

GivenSchema = str | type | NewSchema


def new_schema(given: GivenSchema | None, type_: SchemaType) -> NewSchema | None:
    """What would be registered."""
    if given is None or isinstance(given, NewSchema):
        return given
    if isinstance(given, str):
        return NewSchema(given, type_.value)
    # The class of a user may need libraries that texts do not.
    from headrace.serdes.classes.conversion import schema_of

    return NewSchema(schema_of(given, type_), type_.value)


def class_of(given: GivenSchema | None) -> type | None:
    """A class that is given as a reader's schema is also what values become."""
    return given if isinstance(given, type) else None
