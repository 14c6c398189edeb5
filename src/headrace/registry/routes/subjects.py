"""`/subjects` and `/compatibility`: versions of subjects, and what may become one."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Operation, Parameter
from headrace.registry.checks import is_light
from headrace.registry.deciding import deletion, lookups, registration
from headrace.registry.deciding.candidates import Candidate, candidate_of, canonical, parsed_of
from headrace.registry.deciding.checking import complaints
from headrace.registry.deciding.registration import Registered
from headrace.registry.deciding.scopes import check_rule_set
from headrace.registry.errors import (
    InvalidSchemaGiven,
    InvalidSubject,
    SchemaNotFound,
    SubjectNotFound,
    VersionNotFound,
)
from headrace.registry.model.state import Entry, State
from headrace.registry.routes.answers import (
    CompatibilityAnswer,
    RegisteredAnswer,
    SchemaAnswer,
    qualified_references,
    registered_answer,
    schema_answer,
)
from headrace.registry.routes.operations import (
    ALL,
    CONFLICT,
    DELETED,
    DELETED_ONLY,
    FORMAT,
    INVALID,
    LIMIT,
    NORMALIZE,
    NOT_FOUND,
    NOT_WRITTEN,
    OFFSET,
    REFERENCE_FORMAT,
    SUBJECT,
    VERSION,
    Answering,
    operation,
)
from headrace.registry.routes.requests import Call, SchemaBody
from headrace.serdes.subject_names import EVERY_CONTEXT, SubjectPrefix, is_valid_subject

_PERMANENT = Parameter("permanent", "Also forget what was deleted before.", type="boolean")
_FORCE = Parameter("force", "Skip the check of compatibility.", type="boolean")
_VERBOSE = Parameter("verbose", "Say what breaks.", type="boolean")
_PREFIX = Parameter("subjectPrefix", "Only subjects that begin so.")
_KEY = Parameter("key", "A property of the metadata; may be repeated.")
_VALUE = Parameter("value", "What the property must be; may be repeated.")
_NEGATIVE = Parameter("deletedAsNegative", "Deleted ones too, as negative numbers.", type="boolean")

T = TypeVar("T")


class SubjectRoutes(Answering):
    """The endpoints of subjects."""

    def operations(self) -> list[Operation]:
        versions = "/subjects/{subject}/versions"
        compatibility = "/compatibility/subjects/{subject}/versions"
        written = {**NOT_FOUND, **INVALID, **NOT_WRITTEN}
        return [
            operation(
                "GET",
                "/subjects",
                self.list_subjects,
                "List subjects.",
                (_PREFIX, DELETED, DELETED_ONLY, OFFSET, LIMIT),
                list[str],
            ),
            operation(
                "POST",
                "/subjects/{subject}",
                self.look_up,
                "Find the version that a schema is of a subject.",
                (SUBJECT, NORMALIZE, FORMAT, DELETED),
                SchemaAnswer,
                {**NOT_FOUND, **INVALID},
                SchemaBody,
            ),
            operation(
                "DELETE",
                "/subjects/{subject}",
                self.delete_subject,
                "Delete all versions of a subject.",
                (SUBJECT, _PERMANENT),
                list[int],
                written,
            ),
            operation(
                "GET",
                "/subjects/{subject}/metadata",
                self.latest_with_metadata,
                "The latest version with these properties.",
                (SUBJECT, _KEY, _VALUE, FORMAT, DELETED),
                SchemaAnswer,
                {**NOT_FOUND, **INVALID},
            ),
            operation(
                "GET",
                versions,
                self.list_versions,
                "List the versions of a subject.",
                (SUBJECT, DELETED, DELETED_ONLY, _NEGATIVE, OFFSET, LIMIT),
                list[int],
                NOT_FOUND,
            ),
            operation(
                "POST",
                versions,
                self.register,
                "Register a schema under a subject.",
                (SUBJECT, NORMALIZE, FORMAT, _FORCE),
                RegisteredAnswer,
                {**CONFLICT, **INVALID, **NOT_WRITTEN},
                SchemaBody,
            ),
            operation(
                "GET",
                versions + "/{version}",
                self.version,
                "One version of a subject.",
                (SUBJECT, VERSION, FORMAT, REFERENCE_FORMAT, DELETED),
                SchemaAnswer,
                {**NOT_FOUND, **INVALID},
            ),
            operation(
                "DELETE",
                versions + "/{version}",
                self.delete_version,
                "Delete one version of a subject.",
                (SUBJECT, VERSION, _PERMANENT),
                int,
                written,
            ),
            operation(
                "GET",
                versions + "/{version}/schema",
                self.version_text,
                "The text of one version.",
                (SUBJECT, VERSION, FORMAT, DELETED),
                None,
                {**NOT_FOUND, **INVALID},
            ),
            operation(
                "GET",
                versions + "/{version}/referencedby",
                self.referenced_by,
                "The ids of schemas that refer to a version.",
                (SUBJECT, VERSION, DELETED, OFFSET, LIMIT),
                list[int],
                {**NOT_FOUND, **INVALID},
            ),
            operation(
                "POST",
                compatibility,
                self.check_against_all,
                "Whether a schema may follow the versions of a subject.",
                (SUBJECT, NORMALIZE, _VERBOSE),
                CompatibilityAnswer,
                INVALID,
                SchemaBody,
            ),
            operation(
                "POST",
                compatibility + "/{version}",
                self.check_against_one,
                "Whether a schema is compatible with one version.",
                (SUBJECT, VERSION, NORMALIZE, _VERBOSE),
                CompatibilityAnswer,
                {**NOT_FOUND, **INVALID},
                SchemaBody,
            ),
        ]

    # --- reading ------------------------------------------------------------------------------

    async def list_subjects(self, request: Request) -> Response:
        call = Call(request)
        prefix = SubjectPrefix(call.contextual("subjectPrefix", EVERY_CONTEXT) or "")
        with_deleted, only_deleted = call.flag("deleted"), call.flag("deletedOnly")
        found = []
        for subject, versions in self.state.subjects.items():
            is_deleted = all(entry.value.deleted for entry in versions.values())
            is_wanted = is_deleted if only_deleted else with_deleted or not is_deleted
            if is_wanted and prefix.covers(subject):
                found.append(subject)
        return call.answer(call.page(sorted(found), ALL, ALL))

    async def list_versions(self, request: Request) -> Response:
        call = Call(request)
        with_deleted, only_deleted = call.flag("deleted"), call.flag("deletedOnly")
        if not self.state.has_subject(call.subject, with_deleted=with_deleted or only_deleted):
            raise SubjectNotFound(call.subject)
        entries = self.state.versions(call.subject, with_deleted=True)
        if call.flag("deletedAsNegative"):
            found = [one.value.version * (-1 if one.value.deleted else 1) for one in entries]
        else:
            found = [
                one.value.version
                for one in entries
                if (one.value.deleted if only_deleted else with_deleted or not one.value.deleted)
            ]
        return call.answer(call.page(found, ALL, ALL))

    async def version(self, request: Request) -> Response:
        call = Call(request)
        entry = self._entry(call, with_deleted=call.flag("deleted"))
        answer = schema_answer(entry, self.formatted(call, entry))
        if call.text("referenceFormat") == "qualified":
            answer = msgspec.structs.replace(answer, references=qualified_references(entry))
        return call.answer(answer)

    async def version_text(self, request: Request) -> Response:
        call = Call(request)
        entry = self._entry(call, with_deleted=call.flag("deleted"))
        text = self.formatted(call, entry)
        return call.answer_text(entry.value.schema if text is None else text)

    async def referenced_by(self, request: Request) -> Response:
        call = Call(request)
        entry = self._entry(call, with_deleted=True)
        referrers = self.state.referrers(entry.key, with_deleted=call.flag("deleted"))
        ids = [one.id for one in referrers]
        return call.answer(call.page(ids, *self.limits))

    async def latest_with_metadata(self, request: Request) -> Response:
        call = Call(request)
        wanted = dict(zip(call.texts("key"), call.texts("value"), strict=False))
        with_deleted = call.flag("deleted")
        for entry in reversed(self.state.versions(call.subject, with_deleted=with_deleted)):
            metadata = entry.value.metadata
            if metadata is not None and wanted.items() <= (metadata.properties or {}).items():
                return call.answer(schema_answer(entry, self.formatted(call, entry)))
        if not self.state.has_subject(call.subject, with_deleted=with_deleted):
            raise SubjectNotFound(call.subject)
        raise SchemaNotFound

    async def look_up(self, request: Request) -> Response:
        call = Call(request)
        body = await self.schema_body(call)
        candidate = body.candidate(call.subject)
        normalize, with_deleted = self._normalizes(call), call.flag("deleted")
        entry = await self._found(
            candidate,
            lambda state: lookups.look_up(
                state,
                self.registry.types,
                candidate,
                normalize=normalize,
                with_deleted=with_deleted,
            ),
        )
        return call.answer(schema_answer(entry, self.formatted(call, entry)))

    async def _found(self, candidate: Candidate, find: Callable[[State], T]) -> T:
        """Most schemas are small and found at once; for the others nobody has to wait."""
        if is_light(self.state, candidate):
            return find(self.state)
        return await self.registry.look(find)

    def _entry(self, call: Call, *, with_deleted: bool) -> Entry:
        subject, version = call.subject, call.version
        entry = self.state.version_anywhere(subject, version, with_deleted=with_deleted)
        if entry is not None:
            return entry
        if not self.state.has_subject(subject, with_deleted=with_deleted):
            raise SubjectNotFound(subject)
        raise VersionNotFound(version)

    # --- checking -----------------------------------------------------------------------------

    async def check_against_all(self, request: Request) -> Response:
        call = Call(request)
        body = await self.schema_body(call)
        return await self._checked(call, body, self.state.versions(call.subject))

    async def check_against_one(self, request: Request) -> Response:
        call = Call(request)
        body = await self.schema_body(call)
        version = call.version
        entry = self.state.version(call.subject, version)
        if entry is None and version != -1:
            raise VersionNotFound(version)
        return await self._checked(call, body, [entry] if entry is not None else [])

    async def _checked(self, call: Call, body: SchemaBody, previous: list[Entry]) -> Response:
        try:
            messages = await self._complaints(call, body, previous)
        except InvalidSchemaGiven as error:
            if not call.flag("verbose"):
                raise
            messages = [str(error)]
        shown = messages if call.flag("verbose") else None
        return call.answer(CompatibilityAnswer(not messages, shown))

    async def _complaints(self, call: Call, body: SchemaBody, previous: list[Entry]) -> list[str]:
        candidate = body.candidate(call.subject)
        if candidate.is_empty:
            raise InvalidSchemaGiven("Empty schema")
        config = self.state.config_in_scope(call.subject)
        types, normalize = self.registry.types, self._normalizes(call)
        is_new = config.validate_new_schemas is not False

        def look(state: State) -> list[str]:
            given, parsed = canonical(state, types, candidate, is_new=is_new, normalize=normalize)
            return complaints(state, types, config, given, parsed, previous)

        return await self.registry.look(look)

    # --- writing ------------------------------------------------------------------------------

    async def register(self, request: Request) -> Response:
        call = Call(request)
        body = await self.schema_body(call)
        if body.rules is not None:
            check_rule_set(body.rules)
        if not is_valid_subject(call.path["subject"]):
            raise InvalidSubject(call.path["subject"])
        candidate = body.candidate(call.subject)
        normalize, force = self._normalizes(call), call.flag("force")
        state, types = self.state, self.registry.types
        found = await self._found(
            candidate,
            lambda state: registration.already_registered(
                state, types, candidate, normalize=normalize
            ),
        )
        if found is not None:
            return self._registered(call, found)
        return await self.written(
            call,
            lambda: registration.register(
                state, types, candidate, normalize=normalize, force=force
            ),
            lambda registered: self._registered(call, registered),
        )

    async def delete_subject(self, request: Request) -> Response:
        call = Call(request)
        subject, permanent = call.subject, call.flag("permanent")
        return await self.written(
            call,
            lambda: deletion.delete_subject(self.state, subject, permanent=permanent),
            call.answer,
        )

    async def delete_version(self, request: Request) -> Response:
        call = Call(request)
        subject, version, permanent = call.subject, call.version, call.flag("permanent")
        return await self.written(
            call,
            lambda: deletion.delete_version(self.state, subject, version, permanent=permanent),
            call.answer,
        )

    def _registered(self, call: Call, registered: Registered) -> Response:
        text = None
        if call.text("format").strip():
            parsed = parsed_of(self.state, self.registry.types, candidate_of(registered.value))
            text = self.in_format(call, parsed)
        return call.answer(registered_answer(registered, text))

    def _normalizes(self, call: Call) -> bool:
        return call.flag("normalize") or bool(self.state.config_in_scope(call.subject).normalize)
