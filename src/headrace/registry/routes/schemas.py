"""`/schemas` and `/contexts`: schemas by id, by guid, and all of them."""

import msgspec
from starlette.responses import Response

from headrace.http.operations import Parameter
from headrace.registry.deciding import deletion
from headrace.registry.errors import SchemaNotFound
from headrace.registry.model.state import ContextId, Entry
from headrace.registry.routes.answers import (
    ContextIdAnswer,
    SchemaAnswer,
    SchemaById,
    SubjectVersion,
    qualified_references,
    schema_answer,
    schema_by_id,
)
from headrace.registry.routes.operations import (
    DELETED,
    FORMAT,
    PAGE,
    REFERENCE_FORMAT,
    UNLIMITED,
    Routes,
    operation,
)
from headrace.registry.routes.requests import Call
from headrace.serdes.fingerprints import fingerprint_of_guid
from headrace.serdes.subject_names import DEFAULT_CONTEXT, SubjectPrefix, context_of

_SUBJECT = Parameter("subject", "The subject or context to search.")
_MAX_ID = Parameter("fetchMaxId", "Include the highest id of the context.", type="boolean")
_PREFIX = Parameter("subjectPrefix", "Only subjects with this prefix.")
_LATEST = Parameter("latestOnly", "Only the latest version of each subject.", type="boolean")
_RULE_TYPE = Parameter("ruleType", "Only schemas with a rule of this type.")
_ALIASES = Parameter("aliases", "Include aliases of subjects.", type="boolean")
_CONTEXT_PREFIX = Parameter("contextPrefix", "Only contexts with this prefix.")


class SchemaRoutes(Routes):
    """The endpoints of schemas."""

    @operation("GET /schemas/types", answer=list[str])
    async def types(self, call: Call) -> Response:
        """List the supported types."""
        return call.answer(list(self.state.types.names))

    @operation(
        "GET /schemas",
        *(_PREFIX, _ALIASES, DELETED, _LATEST, _RULE_TYPE, *PAGE),
        answer=list[SchemaAnswer],
    )
    async def list_schemas(self, call: Call) -> Response:
        """List schemas."""
        prefix = SubjectPrefix(call.contextual("subjectPrefix") or "")
        with_deleted, rule_type = call.flag("deleted"), call.text("ruleType")
        aliases = self.state.aliases() if call.flag("aliases") else {}
        wanted = {name for name in self.state.subjects if prefix.covers(name)}
        wanted |= {
            name for name, others in aliases.items() if any(prefix.covers(one) for one in others)
        }
        found: list[tuple[Entry, list[str] | None]] = []
        for name in sorted(wanted):
            entries = self.state.versions(name, with_deleted=with_deleted)
            for entry in entries[-1:] if call.flag("latestOnly") else entries:
                rules = entry.value.rules
                if not rule_type or (rules is not None and rules.has_type(rule_type)):
                    found.append((entry, aliases.get(name)))
        return call.answer(
            [
                msgspec.structs.replace(schema_answer(entry), aliases=names)
                for entry, names in call.page(found, *self.limits)
            ]
        )

    @operation(
        "GET /schemas/ids/{id}", _SUBJECT, FORMAT, REFERENCE_FORMAT, _MAX_ID, answer=SchemaById
    )
    async def by_id(self, call: Call) -> Response:
        """Get a schema by its id."""
        entry = self._entry(call)
        text = self.formatted(call, entry)
        id_max = self.state.id_max(context_of(entry.value.subject))
        answer = schema_by_id(entry, text, id_max if call.flag("fetchMaxId") else None)
        if call.text("referenceFormat") == "qualified":
            answer = msgspec.structs.replace(answer, references=qualified_references(entry))
        return call.answer(answer)

    @operation("GET /schemas/ids/{id}/schema", _SUBJECT, FORMAT)
    async def text_by_id(self, call: Call) -> Response:
        """Get the text of a schema by its id."""
        entry = self._entry(call)
        text = self.formatted(call, entry)
        return call.answer_text(entry.value.schema if text is None else text)

    @operation("GET /schemas/ids/{id}/subjects", _SUBJECT, DELETED, *PAGE, answer=list[str])
    async def subjects_of_id(self, call: Call) -> Response:
        """List the subjects of a schema."""
        subjects = [one.subject for one in self._versions(call)]
        return call.answer(call.page(subjects, UNLIMITED, UNLIMITED))

    @operation(
        "GET /schemas/ids/{id}/versions", _SUBJECT, DELETED, *PAGE, answer=list[SubjectVersion]
    )
    async def versions_of_id(self, call: Call) -> Response:
        """List the versions of a schema."""
        return call.answer(call.page(self._versions(call), UNLIMITED, UNLIMITED))

    @operation("GET /schemas/guids/{guid}", FORMAT, answer=SchemaById)
    async def by_guid(self, call: Call) -> Response:
        """Get a schema by its guid."""
        found = self._by_guid(call)
        if not found:
            raise SchemaNotFound(call.path["guid"])
        entry = found[0][1]
        answer = schema_by_id(entry, self.formatted(call, entry))
        return call.answer(msgspec.structs.replace(answer, subject=None, version=None))

    @operation("GET /schemas/guids/{guid}/ids", answer=list[ContextIdAnswer])
    async def ids_of_guid(self, call: Call) -> Response:
        """List the ids of a schema by context."""
        found = self._by_guid(call)
        return call.answer(
            [ContextIdAnswer(*id) for id, _ in sorted(found, key=lambda one: one[0])]
        )

    @operation("GET /contexts", _CONTEXT_PREFIX, *PAGE, answer=list[str])
    async def contexts(self, call: Call) -> Response:
        """List contexts."""
        prefix = call.text("contextPrefix")
        found = [DEFAULT_CONTEXT, *sorted(self.state.contexts)]
        wanted = [name for name in found if name.startswith(prefix)]
        return call.answer(call.page(wanted, UNLIMITED, UNLIMITED))

    @operation("DELETE /contexts/{context}")
    async def delete_context(self, call: Call) -> Response:
        """Delete an empty context."""
        context = call.path["context"]
        return await self.written(
            call,
            lambda: deletion.delete_context(self.state, context),
            lambda _: Response(status_code=204),
        )

    def _by_guid(self, call: Call) -> list[tuple[ContextId, Entry]]:
        fingerprint = fingerprint_of_guid(call.path["guid"])
        return [] if fingerprint is None else self.state.by_guid(fingerprint)

    def _entry(self, call: Call) -> Entry:
        entry = self.state.by_id(call.id, self._subject(call))
        if entry is None:
            raise SchemaNotFound(call.id)
        return entry

    def _versions(self, call: Call) -> list[SubjectVersion]:
        entry = self.state.by_id(call.id, self._subject(call))
        if entry is None:
            raise SchemaNotFound
        with_deleted = call.flag("deleted")
        holders = self.state.holders(context_of(entry.value.subject), entry.value.id)
        return [
            SubjectVersion(subject, version)
            for subject, version in holders.items()
            if self.state.version(subject, version, with_deleted=with_deleted) is not None
        ]

    def _subject(self, call: Call) -> str:
        subject = call.contextual("subject") or ""
        return self.state.unaliased(subject) if subject else ""
