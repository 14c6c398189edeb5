"""Errors with the codes of Confluent's REST proxy: `{"error_code": 40401, "message": "..."}`.

Raise `RestError` where the fact is known, or let an error of the client pass: `of_client` is the
one place where Kafka's errors get their status and code.
"""

from collections.abc import Callable, Mapping

import msgspec
from starlette.responses import Response

from headrace import errors as kafka
from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin_pool import AdminBusy
from headrace.client.descriptions import Outcome
from headrace.client.loop_producer import BufferFull, TopicMissing
from headrace.errors import ERROR_NAMES, HeadraceError, KafkaError, error_for
from headrace.http.errors import JSON, ErrorAnswers, HttpError, Unavailable

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
    """The body of every answer with a status from 400 on."""

    error_code: int
    message: str


class RestError(HttpError):
    """An error with a status, and a code that is more specific."""

    def __init__(
        self, status: int, code: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, headers=headers)
        self.status = status
        self.code = code


def _error(status: int, code: int, text: str) -> Callable[[], RestError]:
    return lambda: RestError(status, code, text)


def _because(status: int, code: int, text: str = "") -> Callable[[str], RestError]:
    """Return a function that appends a reason to the text."""
    return lambda reason: RestError(status, code, text + reason)


topic_not_found = _error(404, TOPIC_NOT_FOUND, "Topic not found.")
partition_not_found = _error(404, PARTITION_NOT_FOUND, "Partition not found.")
consumer_instance_not_found = _error(404, 40403, "Consumer instance not found.")
consumer_group_not_found = _error(404, 40405, "Consumer group id not found.")
consumer_format_mismatch = _error(
    406,
    40601,
    "The requested embedded data format does not match the deserializer for this consumer instance",
)
consumer_already_exists = _error(
    409,
    40902,
    "Consumer with specified consumer ID already exists in the specified consumer group.",
)
key_schema_missing = _error(422, 42201, "Request includes keys but does not include key schema")
value_schema_missing = _error(
    422, 42202, "Request includes values but does not include value schema"
)
bad_request = _because(400, 400, "Bad Request: ")
registry_failed = _because(408, 40801)
illegal_state = _because(409, 40903, "Illegal state: ")
unprocessable = _because(422, 422)
json_conversion = _because(422, 42203, "Conversion of JSON to Object failed: ")
invalid_consumer_config = _because(422, 42204, "Invalid consumer configuration: ")
invalid_schema = _because(422, 42205, "Invalid schema: ")
invalid_payload = _because(422, 42206, "Payload error. ")
serialization_failed = _because(422, 42207, "Error serializing message. ")
invalid_batch = _because(422, 42208)
no_answer = _because(503, BROKER_NOT_AVAILABLE, "the broker did not answer: ")


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
    """Return the answer to an error of the client; answers themselves stay as they are."""
    if isinstance(error, HttpError):
        return error
    text = str(error) or type(error).__name__
    if isinstance(error, _WRONG_LOGIN):
        return RestError(401, KAFKA_AUTHENTICATION, text)
    if isinstance(error, AdminBusy | BufferFull):
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
    """Return the error of a failed change, by Kafka's name."""
    code = _CODES.get(outcome.error or "", kafka.UnknownServerError.code)
    return error_for(code, outcome.message or outcome.error or "no reason given")


def check(outcome: Outcome) -> None:
    """Raise the error of a failed change."""
    if outcome.error is not None:
        raise failure_of(outcome)


def check_partition(outcome: Outcome) -> None:
    """Raise the error of a failed change to one of several partitions, naming the partition."""
    if outcome.error is not None:
        reason = f"partition {outcome.name}: {outcome.message or outcome.error}"
        raise failure_of(msgspec.structs.replace(outcome, message=reason))


def body_of(error: HttpError) -> ErrorBody:
    """Return the body; without a specific code, the code is the status."""
    return ErrorBody(getattr(error, "code", error.status), str(error))


def rendered(error: HttpError) -> Response:
    return Response(msgspec.json.encode(body_of(error)), error.status, error.headers, JSON)


ERRORS = ErrorAnswers(rendered, ErrorBody, of_client)
