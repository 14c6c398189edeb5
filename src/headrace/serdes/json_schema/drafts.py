"""The drafts of JSON Schema, and the draft of a given schema."""

from enum import Enum
from typing import Any, TypeAlias

Schema: TypeAlias = bool | dict[str, Any]
"""A schema or a part of one: JSON that the draft's metaschema has validated."""


class Draft(Enum):
    """A version of the language. Later drafts moved keywords, so readers check the draft."""

    DRAFT_4 = "draft-04"
    DRAFT_6 = "draft-06"
    DRAFT_7 = "draft-07"
    DRAFT_2019_09 = "draft/2019-09"
    DRAFT_2020_12 = "draft/2020-12"

    @property
    def url(self) -> str:
        """The value of `$schema` for this draft."""
        if self.is_modern:
            return f"https://json-schema.org/{self.value}/schema"
        return f"http://json-schema.org/{self.value}/schema#"

    @property
    def id_keyword(self) -> str:
        return "id" if self is Draft.DRAFT_4 else "$id"

    @property
    def is_modern(self) -> bool:
        """Return whether `$ref` may have siblings, and `dependencies` is split in two."""
        return self in (Draft.DRAFT_2019_09, Draft.DRAFT_2020_12)


DEFAULT_DRAFT = Draft.DRAFT_7
"""The draft of a schema that names none or an unknown one, as in Confluent's registry."""

_PLACES = {f"json-schema.org/{draft.value}/schema": draft for draft in Draft} | {
    "json-schema.org/schema": Draft.DRAFT_4
}


def draft_of(schema: Schema, default: Draft = DEFAULT_DRAFT) -> Draft:
    """Return the draft of a whole document."""
    if isinstance(schema, bool):
        return default
    return metaschema(schema.get("$schema")) or default


def metaschema(url: object) -> Draft | None:
    """Return the draft of a metaschema's address, if there is one."""
    if not isinstance(url, str):
        return None
    place = url.removesuffix("#").removeprefix("https://").removeprefix("http://")
    return _PLACES.get(place)
