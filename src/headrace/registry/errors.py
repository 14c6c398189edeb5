"""Errors of a registry, with Confluent's status, code and text, on which its clients rely.

The body is `{"error_code": 40401, "message": "..."}`; the first three digits are the status.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec
from starlette.responses import Response

from headrace.http.errors import ErrorAnswers, HttpError, MethodNotAllowed, NoSuchPath

ANSWER_TYPE = "application/vnd.schemaregistry.v1+json"


class ErrorMessage(msgspec.Struct):
    """The body of every answer with a status from 400 on."""

    error_code: int
    message: str


class RegistryError(HttpError):
    """An error with a code of its own, and often a text of Confluent's with values in it."""

    code: ClassVar[int] = 500
    text: ClassVar[str] = "{}"

    def __init__(self, *values: object, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(self.text.format(*values), headers=headers)


_CONFLUENTS_WORDS = {
    NoSuchPath: "HTTP 404 Not Found",
    MethodNotAllowed: "HTTP 405 Method Not Allowed",
}


def rendered(error: HttpError) -> Response:
    """Answer any error in Confluent's shape."""
    code = error.code if isinstance(error, RegistryError) else error.status
    body = ErrorMessage(code, _CONFLUENTS_WORDS.get(type(error), str(error)))
    return Response(msgspec.json.encode(body), error.status, error.headers, ANSWER_TYPE)


ERRORS = ErrorAnswers(rendered, ErrorMessage)


class UnprocessableBody(RegistryError):
    status, code = 422, 422


class SubjectNotFound(RegistryError):
    status, code, text = 404, 40401, "Subject '{}' not found."


class VersionNotFound(RegistryError):
    status, code, text = 404, 40402, "Version {} not found."


class SchemaNotFound(RegistryError):
    status, code = 404, 40403

    def __init__(self, id: int | str | None = None) -> None:
        super().__init__("Schema not found" if id is None else f"Schema {id} not found")


class SubjectSoftDeleted(RegistryError):
    status, code = 404, 40404
    text = "Subject '{}' was soft deleted.Set permanent=true to delete permanently"


class SubjectNotSoftDeleted(RegistryError):
    status, code = 404, 40405
    text = "Subject '{}' was not deleted first before being permanently deleted"


class VersionSoftDeleted(RegistryError):
    status, code = 404, 40406
    text = "Subject '{}' Version {} was soft deleted.Set permanent=true to delete permanently"


class VersionNotSoftDeleted(RegistryError):
    status, code = 404, 40407
    text = "Subject '{}' Version {} was not deleted first before being permanently deleted"


class NoSubjectLevel(RegistryError):
    status, code = 404, 40408
    text = "Subject '{}' does not have subject-level compatibility configured"


class NoSubjectMode(RegistryError):
    status, code, text = 404, 40409, "Subject '{}' does not have subject-level mode configured"


class Incompatible(RegistryError):
    status, code = 409, 409
    text = (
        "Schema being registered is incompatible with an earlier schema for subject"
        ' "{}", details: [{}]'
    )


class InvalidSchemaGiven(RegistryError):
    status, code = 422, 42201


class InvalidVersion(RegistryError):
    status, code = 422, 42202
    text = (
        "The specified version '{}' is not a valid version id. Allowed values are"
        ' between [1, 2^31-1] and the string "latest"'
    )


class InvalidCompatibilityLevel(RegistryError):
    status, code = 422, 42203
    text = (
        "Invalid compatibility level. Valid values are none, backward, forward, full,"
        " backward_transitive, forward_transitive, and full_transitive"
    )


class InvalidCompatibilityPolicy(RegistryError):
    status, code = 422, 42203
    text = "Invalid compatibility policy {!r}. Valid values are strict, lenient and logical"


class InvalidMode(RegistryError):
    status, code = 422, 42204
    text = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD."


class InvalidModeScope(InvalidMode):
    text = "Forward mode only supported on global level"


class NotPermitted(RegistryError):
    status, code = 422, 42205


class ReferenceExists(RegistryError):
    status, code, text = 422, 42206, "One or more references exist to the schema {}."


class InvalidSubject(RegistryError):
    status, code, text = 422, 42208, "The specified subject '{}' is not a valid."


class SchemaTooLarge(RegistryError):
    status, code = 422, 42209


class InvalidRuleSet(RegistryError):
    status, code = 422, 42210


class ContextNotEmpty(RegistryError):
    status, code, text = 422, 42211, "The specified context '{}' is not empty."


class StoreFailed(RegistryError):
    """Kafka refused a read or a write."""

    status, code = 500, 50001


class StoreTimedOut(RegistryError):
    """The outcome of the write is unknown; repeating the request is safe."""

    status, code = 500, 50002


class ForwardingFailed(RegistryError):
    status, code = 500, 50003


class TooBusy(RegistryError):
    """Nothing was done; clients retry."""

    status, code = 503, 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "1"})


class UnknownLeader(RegistryError):
    """No instance can write now; clients retry."""

    status, code = 500, 50004
