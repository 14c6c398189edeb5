"""What a registry refuses, with Confluent's status, code and words: its clients know them.

An answer is `{"error_code": 40401, "message": "..."}`; the first three digits are the status.
"""

from typing import ClassVar

import msgspec
from starlette.responses import Response

from headrace.http.errors import HttpError

ANSWER_TYPE = "application/vnd.schemaregistry.v1+json"


class ErrorMessage(msgspec.Struct):
    """What every answer with a status from 400 on says."""

    error_code: int
    message: str


class RegistryError(HttpError):
    """A refusal with a code of its own."""

    code: ClassVar[int] = 500


def rendered(error: HttpError) -> Response:
    """The answer for any error, our own or one of reading the request."""
    code = error.code if isinstance(error, RegistryError) else error.status
    body = msgspec.json.encode(ErrorMessage(code, str(error)))
    return Response(body, error.status, error.headers, ANSWER_TYPE)


class UnprocessableBody(RegistryError):
    status, code = 422, 422


class SubjectNotFound(RegistryError):
    status, code = 404, 40401

    def __init__(self, subject: str | None) -> None:
        super().__init__(f"Subject '{subject}' not found.")


class VersionNotFound(RegistryError):
    status, code = 404, 40402

    def __init__(self, version: int) -> None:
        super().__init__(f"Version {version} not found.")


class SchemaNotFound(RegistryError):
    status, code = 404, 40403

    def __init__(self, id: int | str | None = None) -> None:
        super().__init__("Schema not found" if id is None else f"Schema {id} not found")


class SubjectSoftDeleted(RegistryError):
    status, code = 404, 40404

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
        )


class SubjectNotSoftDeleted(RegistryError):
    status, code = 404, 40405

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"Subject '{subject}' was not deleted first before being permanently deleted"
        )


class VersionSoftDeleted(RegistryError):
    status, code = 404, 40406

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted."
            "Set permanent=true to delete permanently"
        )


class VersionNotSoftDeleted(RegistryError):
    status, code = 404, 40407

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted"
            " first before being permanently deleted"
        )


class NoSubjectLevel(RegistryError):
    status, code = 404, 40408

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"Subject '{subject}' does not have subject-level compatibility configured"
        )


class NoSubjectMode(RegistryError):
    status, code = 404, 40409

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level mode configured")


class Incompatible(RegistryError):
    status, code = 409, 409

    def __init__(self, subject: str, messages: list[str]) -> None:
        super().__init__(
            "Schema being registered is incompatible with an earlier schema for subject"
            f' "{subject}", details: [{", ".join(messages)}]'
        )


class InvalidSchemaGiven(RegistryError):
    status, code = 422, 42201


class InvalidVersion(RegistryError):
    status, code = 422, 42202

    def __init__(self, version: str) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. Allowed values are"
            ' between [1, 2^31-1] and the string "latest"'
        )


class InvalidCompatibilityLevel(RegistryError):
    status, code = 422, 42203

    def __init__(self) -> None:
        super().__init__(
            "Invalid compatibility level. Valid values are none, backward, forward, full,"
            " backward_transitive, forward_transitive, and full_transitive"
        )


class InvalidCompatibilityPolicy(RegistryError):
    status, code = 422, 42203

    def __init__(self, policy: str) -> None:
        super().__init__(
            f"Invalid compatibility policy {policy!r}. Valid values are strict, lenient and logical"
        )


class InvalidMode(RegistryError):
    status, code = 422, 42204

    def __init__(
        self,
        message: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
    ) -> None:
        super().__init__(message)


class NotPermitted(RegistryError):
    status, code = 422, 42205


class ReferenceExists(RegistryError):
    status, code = 422, 42206

    def __init__(self, key: object) -> None:
        super().__init__(f"One or more references exist to the schema {key}.")


class InvalidSubject(RegistryError):
    status, code = 422, 42208

    def __init__(self, subject: str) -> None:
        super().__init__(f"The specified subject '{subject}' is not a valid.")


class SchemaTooLarge(RegistryError):
    status, code = 422, 42209


class InvalidRuleSet(RegistryError):
    status, code = 422, 42210


class ContextNotEmpty(RegistryError):
    status, code = 422, 42211

    def __init__(self, context: str) -> None:
        super().__init__(f"The specified context '{context}' is not empty.")


class StoreFailed(RegistryError):
    """Kafka did not take or give a record."""

    status, code = 500, 50001


class StoreTimedOut(RegistryError):
    """It is unknown whether the write was done; the same request again gives the same answer."""

    status, code = 500, 50002


class ForwardingFailed(RegistryError):
    status, code = 500, 50003


class TooBusy(RegistryError):
    """Nothing was done; clients try again."""

    status, code = 503, 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "1"})


class UnknownLeader(RegistryError):
    """No instance may write now; clients try again."""

    status, code = 500, 50004
