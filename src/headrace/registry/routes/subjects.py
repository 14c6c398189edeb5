"""`/subjects` and `/compatibility`: versions of subjects, and checks of new ones."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.responses import Response

from headrace.http.operations import Parameter
from headrace.registry.checks import is_light
from headrace.registry.compatibility.messages import messages_of
from headrace.registry.deciding import deletion, lookups, registration
from headrace.registry.deciding.candidates import Candidate, candidate_of, canonical, parsed_of
from headrace.registry.deciding.checking import conflict
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
    DELETED,
    DELETED_ONLY,
    FORMAT,
    NORMALIZE,
    PAGE,
    REFERENCE_FORMAT,
    UNLIMITED,
    Routes,
    operation,
)
from headrace.registry.routes.requests import Call, SchemaBody
from headrace.serdes.subject_names import EVERY_CONTEXT, SubjectPrefix, is_valid_subject

_PERMANENT = Parameter("permanent", "Forget deleted versions for good.", type="boolean")
_FORCE = Parameter("force", "Skip the check of compatibility.", type="boolean")
_VERBOSE = Parameter("verbose", "Include the incompatibilities.", type="boolean")
_PREFIX = Parameter("subjectPrefix", "Only subjects with this prefix.")
_KEY = Parameter("key", "A property of the metadata; may be repeated.")
_VALUE = Parameter("value", "The value of the property; may be repeated.")
_NEGATIVE = Parameter(
    "deletedAsNegative", "Include deleted ones as negative numbers.", type="boolean"
)

T = TypeVar("T")


class SubjectRoutes(Routes):
    """The endpoints of subjects."""

    # --- reading ------------------------------------------------------------------------------

    @operation("GET /subjects", _PREFIX, DELETED, DELETED_ONLY, *PAGE, answer=list[str])
    async def list_subjects(self, call: Call) -> Response:
        """List subjects."""
        prefix = SubjectPrefix(call.contextual("subjectPrefix", EVERY_CONTEXT) or "")
        with_deleted, only_deleted = call.flag("deleted"), call.flag("deletedOnly")
        found = []
        for subject, versions in self.state.subjects.items():
            is_deleted = all(entry.value.deleted for entry in versions.values())
            is_wanted = is_deleted if only_deleted else with_deleted or not is_deleted
            if is_wanted and prefix.covers(subject):
                found.append(subject)
        return call.answer(call.page(sorted(found), UNLIMITED, UNLIMITED))

    @operation(
        "GET /subjects/{subject}/versions",
        *(DELETED, DELETED_ONLY, _NEGATIVE, *PAGE),
        answer=list[int],
    )
    async def list_versions(self, call: Call) -> Response:
        """List the versions of a subject."""
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
        return call.answer(call.page(found, UNLIMITED, UNLIMITED))

    @operation(
        "GET /subjects/{subject}/versions/{version}",
        *(FORMAT, REFERENCE_FORMAT, DELETED),
        answer=SchemaAnswer,
    )
    async def version(self, call: Call) -> Response:
        """Get a version of a subject."""
        entry = self._entry(call, with_deleted=call.flag("deleted"))
        answer = schema_answer(entry, self.formatted(call, entry))
        if call.text("referenceFormat") == "qualified":
            answer = msgspec.structs.replace(answer, references=qualified_references(entry))
        return call.answer(answer)

    @operation("GET /subjects/{subject}/versions/{version}/schema", FORMAT, DELETED)
    async def version_text(self, call: Call) -> Response:
        """Get the text of a version."""
        entry = self._entry(call, with_deleted=call.flag("deleted"))
        text = self.formatted(call, entry)
        return call.answer_text(entry.value.schema if text is None else text)

    @operation(
        "GET /subjects/{subject}/versions/{version}/referencedby", DELETED, *PAGE, answer=list[int]
    )
    async def referenced_by(self, call: Call) -> Response:
        """List the ids of schemas that refer to a version."""
        entry = self._entry(call, with_deleted=True)
        referrers = self.state.referrers(entry.key, with_deleted=call.flag("deleted"))
        ids = [one.id for one in referrers]
        return call.answer(call.page(ids, *self.limits))

    @operation(
        "GET /subjects/{subject}/metadata", _KEY, _VALUE, FORMAT, DELETED, answer=SchemaAnswer
    )
    async def latest_with_metadata(self, call: Call) -> Response:
        """Get the latest version with these properties."""
        wanted = dict(zip(call.texts("key"), call.texts("value"), strict=False))
        with_deleted = call.flag("deleted")
        for entry in reversed(self.state.versions(call.subject, with_deleted=with_deleted)):
            metadata = entry.value.metadata
            if metadata is not None and wanted.items() <= (metadata.properties or {}).items():
                return call.answer(schema_answer(entry, self.formatted(call, entry)))
        if not self.state.has_subject(call.subject, with_deleted=with_deleted):
            raise SubjectNotFound(call.subject)
        raise SchemaNotFound

    @operation(
        "POST /subjects/{subject}", NORMALIZE, FORMAT, DELETED, answer=SchemaAnswer, body=SchemaBody
    )
    async def look_up(self, call: Call) -> Response:
        """Find the version of a schema under a subject."""
        body = await self.schema_body(call)
        candidate = body.candidate(call.subject)
        normalize, with_deleted = self._normalizes(call), call.flag("deleted")
        entry = await self._found(
            candidate,
            lambda state: lookups.look_up(
                state, candidate, normalize=normalize, with_deleted=with_deleted
            ),
        )
        return call.answer(schema_answer(entry, self.formatted(call, entry)))

    async def _found(self, candidate: Candidate, find: Callable[[State], T]) -> T:
        """Search at once for a small schema, in a thread for a large one."""
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

    @operation(
        "POST /compatibility/subjects/{subject}/versions",
        *(NORMALIZE, _VERBOSE),
        answer=CompatibilityAnswer,
        body=SchemaBody,
    )
    async def check_against_all(self, call: Call) -> Response:
        """Check a schema against the versions of a subject."""
        body = await self.schema_body(call)
        return await self._checked(call, body, self.state.versions(call.subject))

    @operation(
        "POST /compatibility/subjects/{subject}/versions/{version}",
        *(NORMALIZE, _VERBOSE),
        answer=CompatibilityAnswer,
        body=SchemaBody,
    )
    async def check_against_one(self, call: Call) -> Response:
        """Check a schema against one version."""
        body = await self.schema_body(call)
        version = call.version
        entry = self.state.version(call.subject, version)
        if entry is None and version != -1:
            raise VersionNotFound(version)
        return await self._checked(call, body, [entry] if entry is not None else [])

    async def _checked(self, call: Call, body: SchemaBody, previous: list[Entry]) -> Response:
        try:
            messages = await self._messages(call, body, previous)
        except InvalidSchemaGiven as error:
            if not call.flag("verbose"):
                raise
            messages = [str(error)]
        shown = messages if call.flag("verbose") else None
        return call.answer(CompatibilityAnswer(not messages, shown))

    async def _messages(self, call: Call, body: SchemaBody, previous: list[Entry]) -> list[str]:
        candidate = body.candidate(call.subject)
        if candidate.is_empty:
            raise InvalidSchemaGiven("Empty schema")
        config = self.state.config_in_scope(call.subject)
        normalize = self._normalizes(call)
        is_new = config.validate_new_schemas is not False

        def look(state: State) -> list[str]:
            given, parsed = canonical(state, candidate, is_new=is_new, normalize=normalize)
            return messages_of(conflict(state, config, given, parsed, previous))

        return await self.registry.look(look)

    # --- writing ------------------------------------------------------------------------------

    @operation(
        "POST /subjects/{subject}/versions",
        *(NORMALIZE, FORMAT, _FORCE),
        answer=RegisteredAnswer,
        body=SchemaBody,
    )
    async def register(self, call: Call) -> Response:
        """Register a schema under a subject."""
        body = await self.schema_body(call)
        if body.rules is not None:
            check_rule_set(body.rules)
        if not is_valid_subject(call.path["subject"]):
            raise InvalidSubject(call.path["subject"])
        candidate = body.candidate(call.subject)
        normalize, force = self._normalizes(call), call.flag("force")
        found = await self._found(
            candidate,
            lambda state: registration.already_registered(state, candidate, normalize=normalize),
        )
        if found is not None:
            return self._registered(call, found)
        return await self.written(
            call,
            lambda: registration.register(self.state, candidate, normalize=normalize, force=force),
            lambda registered: self._registered(call, registered),
        )

    @operation("DELETE /subjects/{subject}", _PERMANENT, answer=list[int])
    async def delete_subject(self, call: Call) -> Response:
        """Delete all versions of a subject."""
        subject, permanent = call.subject, call.flag("permanent")
        return await self.written(
            call,
            lambda: deletion.delete_subject(self.state, subject, permanent=permanent),
            call.answer,
        )

    @operation("DELETE /subjects/{subject}/versions/{version}", _PERMANENT, answer=int)
    async def delete_version(self, call: Call) -> Response:
        """Delete a version of a subject."""
        subject, version, permanent = call.subject, call.version, call.flag("permanent")
        return await self.written(
            call,
            lambda: deletion.delete_version(self.state, subject, version, permanent=permanent),
            call.answer,
        )

    def _registered(self, call: Call, registered: Registered) -> Response:
        text = None
        if call.text("format").strip():
            parsed = parsed_of(self.state, candidate_of(registered.value))
            text = self.in_format(call, parsed)
        return call.answer(registered_answer(registered, text))

    def _normalizes(self, call: Call) -> bool:
        return call.flag("normalize") or bool(self.state.config_in_scope(call.subject).normalize)
