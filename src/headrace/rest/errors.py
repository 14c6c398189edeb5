"""Errors by the codes of Confluent's REST proxy: `{"error_code": 40401, "message": "..."}`.

Who knows the fact raises `RestError`, or lets an error of the client pass: `of_client` is the one
place where Kafka's errors get their status and code.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace import errors as kafka
from headrace.client.addresses import BrokerUnreachable
from headrace.client.descriptions import Outcome
from headrace.client.loop_producer import BufferFull, TopicMissing
from headrace.errors import ERROR_NAMES, HeadraceError, KafkaError, error_for
from headrace.http.errors import JSON, HttpError, Unavailable, error_handlers

TOPIC_NOT_FOUND = 40401
PARTITION_NOT_FOUND = 40402
UNKNOWN_TOPIC_OR_PARTITION = 40403
KAFKA_BAD_REQUEST = 40002
KAFKA_AUTHENTICATION = 40101
KAFKA_AUTHORIZATION = 40301
KAFKA_ERROR = 50002
KAFKA_RETRIABLE = 50003
BROKER_NOT_AVAILABLE = 50302


class ErrorBody(msgspec.Struct, frozen=True):
    """What every answer with a status from 400 on says."""

    error_code: int
    message: str


class RestError(HttpError):
    """An answer with a status, and a code that says more than the status."""

    def __init__(
        self, status: int, code: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, headers=headers)
        self.status = status
        self.code = code


def topic_not_found() -> RestError:
    return RestError(404, TOPIC_NOT_FOUND, "Topic not found.")


def partition_not_found() -> RestError:
    return RestError(404, PARTITION_NOT_FOUND, "Partition not found.")


def consumer_instance_not_found() -> RestError:
    return RestError(404, 40403, "Consumer instance not found.")


def consumer_group_not_found() -> RestError:
    return RestError(404, 40405, "Consumer group id not found.")


def consumer_format_mismatch() -> RestError:
    return RestError(
        406,
        40601,
        "The requested embedded data format does not match the deserializer for this consumer"
        " instance",
    )


def consumer_already_exists() -> RestError:
    return RestError(
        409,
        40902,
        "Consumer with specified consumer ID already exists in the specified consumer group.",
    )


def illegal_state(reason: str) -> RestError:
    return RestError(409, 40903, f"Illegal state: {reason}")


def key_schema_missing() -> RestError:
    return RestError(422, 42201, "Request includes keys but does not include key schema")


def value_schema_missing() -> RestError:
    return RestError(422, 42202, "Request includes values but does not include value schema")


def json_conversion(reason: str) -> RestError:
    return RestError(422, 42203, f"Conversion of JSON to Object failed: {reason}")


def invalid_consumer_config(reason: str) -> RestError:
    return RestError(422, 42204, f"Invalid consumer configuration: {reason}")


def invalid_schema(reason: str) -> RestError:
    return RestError(422, 42205, f"Invalid schema: {reason}")


def invalid_payload(reason: str) -> RestError:
    return RestError(422, 42206, f"Payload error. {reason}")


def serialization_failed(reason: str) -> RestError:
    return RestError(422, 42207, f"Error serializing message. {reason}")


def invalid_batch(reason: str) -> RestError:
    return RestError(422, 42208, reason)


def registry_failed(reason: str) -> RestError:
    return RestError(408, 40801, reason)


def bad_request(reason: str) -> RestError:
    return RestError(400, 400, f"Bad Request: {reason}")


def unprocessable(reason: str) -> RestError:
    return RestError(422, 422, reason)


def no_answer(reason: str) -> RestError:
    return RestError(503, BROKER_NOT_AVAILABLE, f"the broker did not answer: {reason}")


_CLIENTS_FAULT = (
    kafka.ElectionNotNeeded,
    kafka.GroupSubscribedToTopic,
    kafka.InvalidConfig,
    kafka.InvalidGroupId,
    kafka.InvalidPartitions,
    kafka.InvalidReplicaAssignment,
    kafka.InvalidReplicationFactor,
    kafka.InvalidRequest,
    kafka.InvalidRecord,
    kafka.InvalidTimestamp,
    kafka.InvalidTopicException,
    kafka.InvalidTxnState,
    kafka.NonEmptyGroup,
    kafka.PolicyViolation,
    kafka.ReassignmentInProgress,
    kafka.SecurityDisabled,
    kafka.TopicAlreadyExists,
    kafka.TopicDeletionDisabled,
    kafka.UnknownServerError,
    kafka.UnsupportedVersion,
)
_UNKNOWN = (kafka.UnknownTopicOrPartition, kafka.UnknownTopicId)
_NOT_THERE = (
    kafka.BrokerIdNotRegistered,
    kafka.NoReassignmentInProgress,
    kafka.TransactionalIdNotFound,
)
_TOO_LARGE = (kafka.MessageTooLarge, kafka.RecordListTooLarge)
_CODES = {name: code for code, name in ERROR_NAMES.items()}
_WRONG_LOGIN = (kafka.SaslAuthenticationFailed, kafka.UnsupportedSaslMechanism)


def of_client(error: HeadraceError) -> HttpError:
    """What an error of the client comes to; those that are answers already stay as they are."""
    if isinstance(error, HttpError):
        return error
    text = str(error) or type(error).__name__
    if isinstance(error, _WRONG_LOGIN):
        return RestError(401, KAFKA_AUTHENTICATION, text)
    if isinstance(error, BufferFull):
        return Unavailable(text)
    if isinstance(error, TopicMissing):
        return topic_not_found()
    if isinstance(error, BrokerUnreachable):
        return no_answer(text)
    if isinstance(error, TimeoutError):
        return RestError(500, KAFKA_RETRIABLE, f"the broker did not answer in time: {text}")
    if isinstance(error, KafkaError):
        return _of_kafka(error, text)
    return RestError(500, KAFKA_ERROR, text)


def _of_kafka(error: KafkaError, text: str) -> RestError:
    if error.name.endswith("_AUTHORIZATION_FAILED"):
        return RestError(403, KAFKA_AUTHORIZATION, text)
    if isinstance(error, _TOO_LARGE):
        return RestError(413, 413, text)
    if isinstance(error, _UNKNOWN):
        return RestError(404, UNKNOWN_TOPIC_OR_PARTITION, text)
    if isinstance(error, _NOT_THERE):
        return RestError(404, 404, text)
    if isinstance(error, kafka.GroupIdNotFound):
        return consumer_group_not_found()
    if isinstance(error, kafka.ThrottlingQuotaExceeded):
        return RestError(429, 42901, text)
    if isinstance(error, kafka.BrokerNotAvailable):
        return RestError(503, BROKER_NOT_AVAILABLE, text)
    if isinstance(error, _CLIENTS_FAULT):
        return RestError(400, KAFKA_BAD_REQUEST, text)
    return RestError(500, KAFKA_RETRIABLE if error.retriable else KAFKA_ERROR, text)


def failure_of(outcome: Outcome) -> HeadraceError:
    """What a change to one thing came to, by Kafka's name of it."""
    code = _CODES.get(outcome.error or "", kafka.UnknownServerError.code)
    return error_for(code, outcome.message or outcome.error or "without a reason")


def check(outcome: Outcome) -> None:
    """Raise what a change to one thing came to, unless it went well."""
    if outcome.error is not None:
        raise failure_of(outcome)


def check_partition(outcome: Outcome) -> None:
    """Like `check`, for one of several partitions: which one it was is said."""
    if outcome.error is not None:
        reason = outcome.message or outcome.error
        code = _CODES.get(outcome.error, kafka.UnknownServerError.code)
        raise error_for(code, f"partition {outcome.name}: {reason}")


def body_of(error: HttpError) -> ErrorBody:
    """The code is the status where nothing says more."""
    return ErrorBody(getattr(error, "code", error.status), str(error))


def rendered(error: HttpError) -> Response:
    return Response(msgspec.json.encode(body_of(error)), error.status, error.headers, JSON)


def handlers() -> dict[Any, Callable[..., Any]]:
    """What Starlette is to do with whatever a route raises."""
    usual = dict(error_handlers(rendered))
    answer = usual[HttpError]

    async def translate(request: Request, error: Exception) -> Response:
        assert isinstance(error, HeadraceError)
        response: Response = await answer(request, of_client(error))
        return response

    return {**usual, HeadraceError: translate}
