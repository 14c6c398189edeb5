"""The records of `__cluster_metadata`, by key.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Int64, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class BrokerEndpoint(Structure):
    name: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0
    security_protocol: Annotated[Int16, "0+"] = 0


class BrokerFeature(Structure):
    name: Annotated[str, "0+"] = ""
    min_supported_version: Annotated[Int16, "0+"] = 0
    max_supported_version: Annotated[Int16, "0+"] = 0


class RegisterBrokerRecord(Message):
    API_KEY = 0
    VERSIONS = range(5)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    is_migrating_zk_broker: Annotated[bool, "2+"] = False
    incarnation_id: Annotated[Uuid, "0+"] = ZERO
    broker_epoch: Annotated[Int64, "0+"] = 0
    end_points: Annotated[list[BrokerEndpoint], "0+"] = []
    features: Annotated[list[BrokerFeature], "0+"] = []
    rack: Annotated[str | None, "0+"] = ""
    fenced: Annotated[bool, "0+"] = True
    in_controlled_shutdown: Annotated[bool, "1+"] = False
    log_dirs: Annotated[list[Uuid], "3+ tag=0"] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, "4+ tag=1"] = None


class UnregisterBrokerRecord(Message):
    API_KEY = 1
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = 0


class TopicRecord(Message):
    API_KEY = 2
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: Annotated[str, "0+"] = ""
    topic_id: Annotated[Uuid, "0+"] = ZERO


class PartitionRecord(Message):
    API_KEY = 3
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    partition_id: Annotated[Int32, "0+"] = -1
    topic_id: Annotated[Uuid, "0+"] = ZERO
    replicas: Annotated[list[Int32], "0+"] = []
    isr: Annotated[list[Int32], "0+"] = []
    removing_replicas: Annotated[list[Int32], "0+"] = []
    adding_replicas: Annotated[list[Int32], "0+"] = []
    leader: Annotated[Int32, "0+"] = -1
    leader_recovery_state: Annotated[Int8, "0+ tag=0"] = 0
    leader_epoch: Annotated[Int32, "0+"] = -1
    partition_epoch: Annotated[Int32, "0+"] = -1
    directories: Annotated[list[Uuid], "1+"] = []
    eligible_leader_replicas: Annotated[list[Int32] | None, "2+ tag=1"] = None
    last_known_elr: Annotated[list[Int32] | None, "2+ tag=2"] = None


class ConfigRecord(Message):
    API_KEY = 4
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""
    name: Annotated[str, "0+"] = ""
    value: Annotated[str | None, "0+"] = ""


class PartitionChangeRecord(Message):
    API_KEY = 5
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    partition_id: Annotated[Int32, "0+"] = -1
    topic_id: Annotated[Uuid, "0+"] = ZERO
    isr: Annotated[list[Int32] | None, "0+ tag=0"] = None
    leader: Annotated[Int32, "0+ tag=1"] = -2
    replicas: Annotated[list[Int32] | None, "0+ tag=2"] = None
    removing_replicas: Annotated[list[Int32] | None, "0+ tag=3"] = None
    adding_replicas: Annotated[list[Int32] | None, "0+ tag=4"] = None
    leader_recovery_state: Annotated[Int8, "0+ tag=5"] = -1
    directories: Annotated[list[Uuid] | None, "1+ tag=8"] = None
    eligible_leader_replicas: Annotated[list[Int32] | None, "2+ tag=6"] = None
    last_known_elr: Annotated[list[Int32] | None, "2+ tag=7"] = None


class FenceBrokerRecord(Message):
    API_KEY = 7
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: Annotated[Int32, "0+"] = 0
    epoch: Annotated[Int64, "0+"] = 0


class UnfenceBrokerRecord(Message):
    API_KEY = 8
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: Annotated[Int32, "0+"] = 0
    epoch: Annotated[Int64, "0+"] = 0


class RemoveTopicRecord(Message):
    API_KEY = 9
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_id: Annotated[Uuid, "0+"] = ZERO


class DelegationTokenRecord(Message):
    API_KEY = 10
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    owner: Annotated[str, "0+"] = ""
    requester: Annotated[str, "0+"] = ""
    renewers: Annotated[list[str], "0+"] = []
    issue_timestamp: Annotated[Int64, "0+"] = 0
    max_timestamp: Annotated[Int64, "0+"] = 0
    expiration_timestamp: Annotated[Int64, "0+"] = 0
    token_id: Annotated[str, "0+"] = ""


class UserScramCredentialRecord(Message):
    API_KEY = 11
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: Annotated[str, "0+"] = ""
    mechanism: Annotated[Int8, "0+"] = 0
    salt: Annotated[bytes, "0+"] = b""
    stored_key: Annotated[bytes, "0+"] = b""
    server_key: Annotated[bytes, "0+"] = b""
    iterations: Annotated[Int32, "0+"] = 0


class FeatureLevelRecord(Message):
    API_KEY = 12
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: Annotated[str, "0+"] = ""
    feature_level: Annotated[Int16, "0+"] = 0


class EntityData(Structure):
    entity_type: Annotated[str, "0+"] = ""
    entity_name: Annotated[str | None, "0+"] = ""


class ClientQuotaRecord(Message):
    API_KEY = 14
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    entity: Annotated[list[EntityData], "0+"] = []
    key: Annotated[str, "0+"] = ""
    value: Annotated[float, "0+"] = 0.0
    remove: Annotated[bool, "0+"] = False


class ProducerIdsRecord(Message):
    API_KEY = 15
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = -1
    next_producer_id: Annotated[Int64, "0+"] = 0


class BrokerRegistrationChangeRecord(Message):
    API_KEY = 17
    VERSIONS = range(4)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = 0
    fenced: Annotated[Int8, "0+ tag=0"] = 0
    in_controlled_shutdown: Annotated[Int8, "1+ tag=1"] = 0
    log_dirs: Annotated[list[Uuid], "2+ tag=2"] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, "3+ tag=3"] = None


class AccessControlEntryRecord(Message):
    API_KEY = 18
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: Annotated[Uuid, "0+"] = ZERO
    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""
    pattern_type: Annotated[Int8, "0+"] = 0
    principal: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    operation: Annotated[Int8, "0+"] = 0
    permission_type: Annotated[Int8, "0+"] = 0


class RemoveAccessControlEntryRecord(Message):
    API_KEY = 19
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: Annotated[Uuid, "0+"] = ZERO


class NoOpRecord(Message):
    API_KEY = 20
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0


class ZkMigrationStateRecord(Message):
    API_KEY = 21
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    zk_migration_state: Annotated[Int8, "0+"] = 0


class RemoveUserScramCredentialRecord(Message):
    API_KEY = 22
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: Annotated[str, "0+"] = ""
    mechanism: Annotated[Int8, "0+"] = 0


class BeginTransactionRecord(Message):
    API_KEY = 23
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: Annotated[str | None, "0+ tag=0"] = None


class EndTransactionRecord(Message):
    API_KEY = 24
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0


class AbortTransactionRecord(Message):
    API_KEY = 25
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    reason: Annotated[str | None, "0+ tag=0"] = None


class RemoveDelegationTokenRecord(Message):
    API_KEY = 26
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    token_id: Annotated[str, "0+"] = ""


class ControllerEndpoint(Structure):
    name: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0
    security_protocol: Annotated[Int16, "0+"] = 0


class ControllerFeature(Structure):
    name: Annotated[str, "0+"] = ""
    min_supported_version: Annotated[Int16, "0+"] = 0
    max_supported_version: Annotated[Int16, "0+"] = 0


class RegisterControllerRecord(Message):
    API_KEY = 27
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    controller_id: Annotated[Int32, "0+"] = 0
    incarnation_id: Annotated[Uuid, "0+"] = ZERO
    zk_migration_ready: Annotated[bool, "0+"] = False
    end_points: Annotated[list[ControllerEndpoint], "0+"] = []
    features: Annotated[list[ControllerFeature], "0+"] = []


class ClearElrRecord(Message):
    API_KEY = 28
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_name: Annotated[str, "0+"] = ""
