"""`/schemas` and `/contexts`: schemas by id, by guid, and all of them."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Operation, Parameter
from headrace.registry.deciding import deletion
from headrace.registry.errors import SchemaNotFound
from headrace.registry.model.state import Entry
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
    ALL,
    DELETED,
    FORMAT,
    INVALID,
    LIMIT,
    NOT_FOUND,
    NOT_WRITTEN,
    OFFSET,
    REFERENCE_FORMAT,
    Answering,
    operation,
)
from headrace.registry.routes.requests import Call
from headrace.serdes.fingerprints import fingerprint_of_guid
from headrace.serdes.subject_names import DEFAULT_CONTEXT, SubjectPrefix, context_of

_ID = Parameter("id", "The id of the schema.", "path", "integer")
_GUID = Parameter("guid", "The guid of the schema, the same in every registry.", "path")
_SUBJECT = Parameter("subject", "In which context, or under which subject, to look.")
_MAX_ID = Parameter("fetchMaxId", "Also tell the highest id of the context.", type="boolean")
_PREFIX = Parameter("subjectPrefix", "Only subjects that begin so.")
_LATEST = Parameter("latestOnly", "Only the latest version of each.", type="boolean")
_RULE_TYPE = Parameter("ruleType", "Only schemas with a rule of this type.")
_ALIASES = Parameter("aliases", "Also tell other names of subjects.", type="boolean")
_CONTEXT = Parameter("context", "The context, as .staging or :.staging:.", "path")
_CONTEXT_PREFIX = Parameter("contextPrefix", "Only contexts that begin so.")


class SchemaRoutes(Answering):
    """The endpoints of schemas."""

    def operations(self) -> list[Operation]:
        by_id = "/schemas/ids/{id}"
        found = {**NOT_FOUND, **INVALID}
        return [
            operation(
                "GET",
                "/schemas",
                self.list_schemas,
                "List schemas.",
                (_PREFIX, _ALIASES, DELETED, _LATEST, _RULE_TYPE, OFFSET, LIMIT),
                list[SchemaAnswer],
            ),
            operation(
                "GET", "/schemas/types", self.types, "The types that are taken.", (), list[str]
            ),
            operation(
                "GET",
                by_id,
                self.by_id,
                "A schema by its id.",
                (_ID, _SUBJECT, FORMAT, REFERENCE_FORMAT, _MAX_ID),
                SchemaById,
                found,
            ),
            operation(
                "GET",
                by_id + "/schema",
                self.text_by_id,
                "The text of a schema by its id.",
                (_ID, _SUBJECT, FORMAT),
                None,
                found,
            ),
            operation(
                "GET",
                by_id + "/subjects",
                self.subjects_of_id,
                "The subjects that have a schema.",
                (_ID, _SUBJECT, DELETED, OFFSET, LIMIT),
                list[str],
                NOT_FOUND,
            ),
            operation(
                "GET",
                by_id + "/versions",
                self.versions_of_id,
                "The versions that a schema is.",
                (_ID, _SUBJECT, DELETED, OFFSET, LIMIT),
                list[SubjectVersion],
                NOT_FOUND,
            ),
            operation(
                "GET",
                "/schemas/guids/{guid}",
                self.by_guid,
                "A schema by its guid.",
                (_GUID, FORMAT),
                SchemaById,
                found,
            ),
            operation(
                "GET",
                "/schemas/guids/{guid}/ids",
                self.ids_of_guid,
                "The ids that a schema has, by context.",
                (_GUID,),
                list[ContextIdAnswer],
            ),
            operation(
                "GET",
                "/contexts",
                self.contexts,
                "List contexts.",
                (_CONTEXT_PREFIX, OFFSET, LIMIT),
                list[str],
            ),
            operation(
                "DELETE",
                "/contexts/{context}",
                self.delete_context,
                "Delete a context that is empty.",
                (_CONTEXT,),
                None,
                {**INVALID, **NOT_WRITTEN},
            ),
        ]

    async def types(self, request: Request) -> Response:
        return Call(request).answer(list(self.registry.types.names))

    async def list_schemas(self, request: Request) -> Response:
        call = Call(request)
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

    async def by_id(self, request: Request) -> Response:
        call = Call(request)
        entry = self._entry(call)
        text = self.formatted(call, entry)
        id_max = self.state.id_max(context_of(entry.value.subject))
        answer = schema_by_id(entry, text, id_max if call.flag("fetchMaxId") else None)
        if call.text("referenceFormat") == "qualified":
            answer = msgspec.structs.replace(answer, references=qualified_references(entry))
        return call.answer(answer)

    async def text_by_id(self, request: Request) -> Response:
        call = Call(request)
        entry = self._entry(call)
        text = self.formatted(call, entry)
        return call.answer_text(entry.value.schema if text is None else text)

    async def subjects_of_id(self, request: Request) -> Response:
        call = Call(request)
        subjects = [one.subject for one in self._versions(call)]
        return call.answer(call.page(subjects, ALL, ALL))

    async def versions_of_id(self, request: Request) -> Response:
        call = Call(request)
        return call.answer(call.page(self._versions(call), ALL, ALL))

    async def by_guid(self, request: Request) -> Response:
        call = Call(request)
        fingerprint = fingerprint_of_guid(call.path["guid"])
        found = [] if fingerprint is None else self.state.by_guid(fingerprint)
        if not found:
            raise SchemaNotFound(call.path["guid"])
        entry = found[0][1]
        answer = schema_by_id(entry, self.formatted(call, entry))
        return call.answer(msgspec.structs.replace(answer, subject=None, version=None))

    async def ids_of_guid(self, request: Request) -> Response:
        call = Call(request)
        fingerprint = fingerprint_of_guid(call.path["guid"])
        found = [] if fingerprint is None else self.state.by_guid(fingerprint)
        return call.answer(
            [ContextIdAnswer(*id) for id, _ in sorted(found, key=lambda one: one[0])]
        )

    async def contexts(self, request: Request) -> Response:
        call = Call(request)
        prefix = call.text("contextPrefix")
        found = [DEFAULT_CONTEXT, *sorted(self.state.contexts)]
        return call.answer(call.page([name for name in found if name.startswith(prefix)], ALL, ALL))

    async def delete_context(self, request: Request) -> Response:
        call = Call(request)
        context = call.path["context"]
        return await self.written(
            call,
            lambda: deletion.delete_context(self.state, context),
            lambda _: Response(status_code=204),
        )

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
