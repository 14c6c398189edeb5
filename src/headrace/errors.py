"""The one exception hierarchy: every wire error knows its Kafka code.

Raise where the fact is known, with a message that says what to do; `broker/dispatch.py`
turns a `KafkaError` into the response's code. The names are Kafka's own error names.
"""

from typing import ClassVar


class HeadraceError(Exception):
    """Root of everything that Headrace raises on purpose."""

    exit_code: ClassVar[int] = 1
    """With which a command ends that cannot go on for this reason."""


class KafkaError(HeadraceError):
    """An error that Kafka's protocol has a code for."""

    code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False
    log_start_offset: int = -1
    """Where the log begins that refused a batch, where Kafka tells it with the refusal."""

    @property
    def name(self) -> str:
        """The error's name as Kafka writes it, for logs and tables."""
        return ERROR_NAMES[self.code]


class UnknownServerError(KafkaError):
    code = -1


class OffsetOutOfRange(KafkaError):
    code = 1


class CorruptMessage(KafkaError):
    code = 2
    retriable = True


class UnknownTopicOrPartition(KafkaError):
    code = 3
    retriable = True


class InvalidFetchSize(KafkaError):
    code = 4


class LeaderNotAvailable(KafkaError):
    code = 5
    retriable = True


class NotLeaderOrFollower(KafkaError):
    code = 6
    retriable = True


class RequestTimedOut(KafkaError):
    code = 7
    retriable = True


class BrokerNotAvailable(KafkaError):
    code = 8


class ReplicaNotAvailable(KafkaError):
    code = 9
    retriable = True


class MessageTooLarge(KafkaError):
    code = 10


class StaleControllerEpoch(KafkaError):
    code = 11


class OffsetMetadataTooLarge(KafkaError):
    code = 12


class NetworkException(KafkaError):
    code = 13
    retriable = True


class CoordinatorLoadInProgress(KafkaError):
    code = 14
    retriable = True


class CoordinatorNotAvailable(KafkaError):
    code = 15
    retriable = True


class NotCoordinator(KafkaError):
    code = 16
    retriable = True


class InvalidTopicException(KafkaError):
    code = 17


class RecordListTooLarge(KafkaError):
    code = 18


class NotEnoughReplicas(KafkaError):
    code = 19
    retriable = True


class NotEnoughReplicasAfterAppend(KafkaError):
    code = 20
    retriable = True


class InvalidRequiredAcks(KafkaError):
    code = 21


class IllegalGeneration(KafkaError):
    code = 22


class InconsistentGroupProtocol(KafkaError):
    code = 23


class InvalidGroupId(KafkaError):
    code = 24


class UnknownMemberId(KafkaError):
    code = 25


class InvalidSessionTimeout(KafkaError):
    code = 26


class RebalanceInProgress(KafkaError):
    code = 27


class InvalidCommitOffsetSize(KafkaError):
    code = 28


class TopicAuthorizationFailed(KafkaError):
    code = 29


class GroupAuthorizationFailed(KafkaError):
    code = 30


class ClusterAuthorizationFailed(KafkaError):
    code = 31


class InvalidTimestamp(KafkaError):
    code = 32


class UnsupportedSaslMechanism(KafkaError):
    code = 33


class IllegalSaslState(KafkaError):
    code = 34


class UnsupportedVersion(KafkaError):
    code = 35


class TopicAlreadyExists(KafkaError):
    code = 36


class InvalidPartitions(KafkaError):
    code = 37


class InvalidReplicationFactor(KafkaError):
    code = 38


class InvalidReplicaAssignment(KafkaError):
    code = 39


class InvalidConfig(KafkaError):
    code = 40


class NotController(KafkaError):
    code = 41
    retriable = True


class InvalidRequest(KafkaError):
    code = 42


class UnsupportedForMessageFormat(KafkaError):
    code = 43


class PolicyViolation(KafkaError):
    code = 44


class OutOfOrderSequenceNumber(KafkaError):
    code = 45


class DuplicateSequenceNumber(KafkaError):
    code = 46


class InvalidProducerEpoch(KafkaError):
    code = 47


class InvalidTxnState(KafkaError):
    code = 48


class InvalidProducerIdMapping(KafkaError):
    code = 49


class InvalidTransactionTimeout(KafkaError):
    code = 50


class ConcurrentTransactions(KafkaError):
    code = 51
    retriable = True


class TransactionCoordinatorFenced(KafkaError):
    code = 52


class TransactionalIdAuthorizationFailed(KafkaError):
    code = 53


class SecurityDisabled(KafkaError):
    code = 54


class OperationNotAttempted(KafkaError):
    code = 55


class KafkaStorageError(KafkaError):
    code = 56
    retriable = True


class LogDirNotFound(KafkaError):
    code = 57


class SaslAuthenticationFailed(KafkaError):
    code = 58


class UnknownProducerId(KafkaError):
    code = 59


class ReassignmentInProgress(KafkaError):
    code = 60


class DelegationTokenAuthDisabled(KafkaError):
    code = 61


class DelegationTokenNotFound(KafkaError):
    code = 62


class DelegationTokenOwnerMismatch(KafkaError):
    code = 63


class DelegationTokenRequestNotAllowed(KafkaError):
    code = 64


class DelegationTokenAuthorizationFailed(KafkaError):
    code = 65


class DelegationTokenExpired(KafkaError):
    code = 66


class InvalidPrincipalType(KafkaError):
    code = 67


class NonEmptyGroup(KafkaError):
    code = 68


class GroupIdNotFound(KafkaError):
    code = 69


class FetchSessionIdNotFound(KafkaError):
    code = 70
    retriable = True


class InvalidFetchSessionEpoch(KafkaError):
    code = 71
    retriable = True


class ListenerNotFound(KafkaError):
    code = 72
    retriable = True


class TopicDeletionDisabled(KafkaError):
    code = 73


class FencedLeaderEpoch(KafkaError):
    code = 74
    retriable = True


class UnknownLeaderEpoch(KafkaError):
    code = 75
    retriable = True


class UnsupportedCompressionType(KafkaError):
    code = 76


class StaleBrokerEpoch(KafkaError):
    code = 77


class OffsetNotAvailable(KafkaError):
    code = 78
    retriable = True


class MemberIdRequired(KafkaError):
    code = 79


class PreferredLeaderNotAvailable(KafkaError):
    code = 80
    retriable = True


class GroupMaxSizeReached(KafkaError):
    code = 81


class FencedInstanceId(KafkaError):
    code = 82


class EligibleLeadersNotAvailable(KafkaError):
    code = 83
    retriable = True


class ElectionNotNeeded(KafkaError):
    code = 84
    retriable = True


class NoReassignmentInProgress(KafkaError):
    code = 85


class GroupSubscribedToTopic(KafkaError):
    code = 86


class InvalidRecord(KafkaError):
    code = 87


class UnstableOffsetCommit(KafkaError):
    code = 88
    retriable = True


class ThrottlingQuotaExceeded(KafkaError):
    code = 89
    retriable = True


class ProducerFenced(KafkaError):
    code = 90


class ResourceNotFound(KafkaError):
    code = 91


class DuplicateResource(KafkaError):
    code = 92


class UnacceptableCredential(KafkaError):
    code = 93


class InconsistentVoterSet(KafkaError):
    code = 94


class InvalidUpdateVersion(KafkaError):
    code = 95


class FeatureUpdateFailed(KafkaError):
    code = 96


class PrincipalDeserializationFailure(KafkaError):
    code = 97


class SnapshotNotFound(KafkaError):
    code = 98


class PositionOutOfRange(KafkaError):
    code = 99


class UnknownTopicId(KafkaError):
    code = 100
    retriable = True


class DuplicateBrokerRegistration(KafkaError):
    code = 101


class BrokerIdNotRegistered(KafkaError):
    code = 102


class InconsistentTopicId(KafkaError):
    code = 103
    retriable = True


class InconsistentClusterId(KafkaError):
    code = 104


class TransactionalIdNotFound(KafkaError):
    code = 105


class FetchSessionTopicIdError(KafkaError):
    code = 106
    retriable = True


class IneligibleReplica(KafkaError):
    code = 107


class NewLeaderElected(KafkaError):
    code = 108


class OffsetMovedToTieredStorage(KafkaError):
    code = 109


class FencedMemberEpoch(KafkaError):
    code = 110


class UnreleasedInstanceId(KafkaError):
    code = 111


class UnsupportedAssignor(KafkaError):
    code = 112


class StaleMemberEpoch(KafkaError):
    code = 113


class MismatchedEndpointType(KafkaError):
    code = 114


class UnsupportedEndpointType(KafkaError):
    code = 115


class UnknownControllerId(KafkaError):
    code = 116


class UnknownSubscriptionId(KafkaError):
    code = 117


class TelemetryTooLarge(KafkaError):
    code = 118


class InvalidRegistration(KafkaError):
    code = 119


class TransactionAbortable(KafkaError):
    code = 120


class InvalidRecordState(KafkaError):
    code = 121


class ShareSessionNotFound(KafkaError):
    code = 122
    retriable = True


class InvalidShareSessionEpoch(KafkaError):
    code = 123
    retriable = True


class FencedStateEpoch(KafkaError):
    code = 124


class InvalidVoterKey(KafkaError):
    code = 125


class DuplicateVoter(KafkaError):
    code = 126


class VoterNotFound(KafkaError):
    code = 127


class InvalidRegularExpression(KafkaError):
    code = 128


class RebootstrapRequired(KafkaError):
    code = 129


class StreamsInvalidTopology(KafkaError):
    code = 130


class StreamsInvalidTopologyEpoch(KafkaError):
    code = 131


class StreamsTopologyFenced(KafkaError):
    code = 132


class ShareSessionLimitReached(KafkaError):
    code = 133
    retriable = True


NONE = 0

ERROR_NAMES: dict[int, str] = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    1: "OFFSET_OUT_OF_RANGE",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    4: "INVALID_FETCH_SIZE",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    9: "REPLICA_NOT_AVAILABLE",
    10: "MESSAGE_TOO_LARGE",
    11: "STALE_CONTROLLER_EPOCH",
    12: "OFFSET_METADATA_TOO_LARGE",
    13: "NETWORK_EXCEPTION",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    17: "INVALID_TOPIC_EXCEPTION",
    18: "RECORD_LIST_TOO_LARGE",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    21: "INVALID_REQUIRED_ACKS",
    22: "ILLEGAL_GENERATION",
    23: "INCONSISTENT_GROUP_PROTOCOL",
    24: "INVALID_GROUP_ID",
    25: "UNKNOWN_MEMBER_ID",
    26: "INVALID_SESSION_TIMEOUT",
    27: "REBALANCE_IN_PROGRESS",
    28: "INVALID_COMMIT_OFFSET_SIZE",
    29: "TOPIC_AUTHORIZATION_FAILED",
    30: "GROUP_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    32: "INVALID_TIMESTAMP",
    33: "UNSUPPORTED_SASL_MECHANISM",
    34: "ILLEGAL_SASL_STATE",
    35: "UNSUPPORTED_VERSION",
    36: "TOPIC_ALREADY_EXISTS",
    37: "INVALID_PARTITIONS",
    38: "INVALID_REPLICATION_FACTOR",
    39: "INVALID_REPLICA_ASSIGNMENT",
    40: "INVALID_CONFIG",
    41: "NOT_CONTROLLER",
    42: "INVALID_REQUEST",
    43: "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    44: "POLICY_VIOLATION",
    45: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    46: "DUPLICATE_SEQUENCE_NUMBER",
    47: "INVALID_PRODUCER_EPOCH",
    48: "INVALID_TXN_STATE",
    49: "INVALID_PRODUCER_ID_MAPPING",
    50: "INVALID_TRANSACTION_TIMEOUT",
    51: "CONCURRENT_TRANSACTIONS",
    52: "TRANSACTION_COORDINATOR_FENCED",
    53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    54: "SECURITY_DISABLED",
    55: "OPERATION_NOT_ATTEMPTED",
    56: "KAFKA_STORAGE_ERROR",
    57: "LOG_DIR_NOT_FOUND",
    58: "SASL_AUTHENTICATION_FAILED",
    59: "UNKNOWN_PRODUCER_ID",
    60: "REASSIGNMENT_IN_PROGRESS",
    61: "DELEGATION_TOKEN_AUTH_DISABLED",
    62: "DELEGATION_TOKEN_NOT_FOUND",
    63: "DELEGATION_TOKEN_OWNER_MISMATCH",
    64: "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    65: "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    66: "DELEGATION_TOKEN_EXPIRED",
    67: "INVALID_PRINCIPAL_TYPE",
    68: "NON_EMPTY_GROUP",
    69: "GROUP_ID_NOT_FOUND",
    70: "FETCH_SESSION_ID_NOT_FOUND",
    71: "INVALID_FETCH_SESSION_EPOCH",
    72: "LISTENER_NOT_FOUND",
    73: "TOPIC_DELETION_DISABLED",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    76: "UNSUPPORTED_COMPRESSION_TYPE",
    77: "STALE_BROKER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    79: "MEMBER_ID_REQUIRED",
    80: "PREFERRED_LEADER_NOT_AVAILABLE",
    81: "GROUP_MAX_SIZE_REACHED",
    82: "FENCED_INSTANCE_ID",
    83: "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    84: "ELECTION_NOT_NEEDED",
    85: "NO_REASSIGNMENT_IN_PROGRESS",
    86: "GROUP_SUBSCRIBED_TO_TOPIC",
    87: "INVALID_RECORD",
    88: "UNSTABLE_OFFSET_COMMIT",
    89: "THROTTLING_QUOTA_EXCEEDED",
    90: "PRODUCER_FENCED",
    91: "RESOURCE_NOT_FOUND",
    92: "DUPLICATE_RESOURCE",
    93: "UNACCEPTABLE_CREDENTIAL",
    94: "INCONSISTENT_VOTER_SET",
    95: "INVALID_UPDATE_VERSION",
    96: "FEATURE_UPDATE_FAILED",
    97: "PRINCIPAL_DESERIALIZATION_FAILURE",
    98: "SNAPSHOT_NOT_FOUND",
    99: "POSITION_OUT_OF_RANGE",
    100: "UNKNOWN_TOPIC_ID",
    101: "DUPLICATE_BROKER_REGISTRATION",
    102: "BROKER_ID_NOT_REGISTERED",
    103: "INCONSISTENT_TOPIC_ID",
    104: "INCONSISTENT_CLUSTER_ID",
    105: "TRANSACTIONAL_ID_NOT_FOUND",
    106: "FETCH_SESSION_TOPIC_ID_ERROR",
    107: "INELIGIBLE_REPLICA",
    108: "NEW_LEADER_ELECTED",
    109: "OFFSET_MOVED_TO_TIERED_STORAGE",
    110: "FENCED_MEMBER_EPOCH",
    111: "UNRELEASED_INSTANCE_ID",
    112: "UNSUPPORTED_ASSIGNOR",
    113: "STALE_MEMBER_EPOCH",
    114: "MISMATCHED_ENDPOINT_TYPE",
    115: "UNSUPPORTED_ENDPOINT_TYPE",
    116: "UNKNOWN_CONTROLLER_ID",
    117: "UNKNOWN_SUBSCRIPTION_ID",
    118: "TELEMETRY_TOO_LARGE",
    119: "INVALID_REGISTRATION",
    120: "TRANSACTION_ABORTABLE",
    121: "INVALID_RECORD_STATE",
    122: "SHARE_SESSION_NOT_FOUND",
    123: "INVALID_SHARE_SESSION_EPOCH",
    124: "FENCED_STATE_EPOCH",
    125: "INVALID_VOTER_KEY",
    126: "DUPLICATE_VOTER",
    127: "VOTER_NOT_FOUND",
    128: "INVALID_REGULAR_EXPRESSION",
    129: "REBOOTSTRAP_REQUIRED",
    130: "STREAMS_INVALID_TOPOLOGY",
    131: "STREAMS_INVALID_TOPOLOGY_EPOCH",
    132: "STREAMS_TOPOLOGY_FENCED",
    133: "SHARE_SESSION_LIMIT_REACHED",
}

_BY_CODE: dict[int, type[KafkaError]] = {error.code: error for error in KafkaError.__subclasses__()}


def error_for(code: int, message: str = "") -> KafkaError:
    """The exception that a peer's error code stands for."""
    return _BY_CODE.get(code, UnknownServerError)(message or ERROR_NAMES.get(code, f"error {code}"))
