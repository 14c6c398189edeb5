"""The records of `__cluster_metadata`, by key.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class BrokerEndpoint(Structure):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0

    FIELDS = """
        name               string  0+
        host               string  0+
        port               uint16  0+
        security_protocol  int16   0+
    """


class BrokerFeature(Structure):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS = """
        name                   string  0+
        min_supported_version  int16   0+
        max_supported_version  int16   0+
    """


class RegisterBrokerRecord(Message):
    API_KEY = 0
    VERSIONS = range(5)
    FLEXIBLE_FROM = 0

    broker_id: int = 0
    is_migrating_zk_broker: bool = False
    incarnation_id: Uuid = ZERO
    broker_epoch: int = 0
    end_points: list[BrokerEndpoint] = []
    features: list[BrokerFeature] = []
    rack: str | None = ""
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: list[Uuid] = []
    cordoned_log_dirs: list[Uuid] | None = None

    FIELDS = """
        broker_id               int32             0+
        is_migrating_zk_broker  bool              2+
        incarnation_id          uuid              0+
        broker_epoch            int64             0+
        end_points              []BrokerEndpoint  0+
        features                []BrokerFeature   0+
        rack                    string            0+  nullable
        fenced                  bool              0+
        in_controlled_shutdown  bool              1+
        log_dirs                []uuid            3+  tag=0
        cordoned_log_dirs       []uuid            4+  nullable tag=1
    """


class UnregisterBrokerRecord(Message):
    API_KEY = 1
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: int = 0
    broker_epoch: int = 0

    FIELDS = """
        broker_id     int32  0+
        broker_epoch  int64  0+
    """


class TopicRecord(Message):
    API_KEY = 2
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: str = ""
    topic_id: Uuid = ZERO

    FIELDS = """
        name      string  0+
        topic_id  uuid    0+
    """


class PartitionRecord(Message):
    API_KEY = 3
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    partition_id: int = -1
    topic_id: Uuid = ZERO
    replicas: list[int] = []
    isr: list[int] = []
    removing_replicas: list[int] = []
    adding_replicas: list[int] = []
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: list[Uuid] = []
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None

    FIELDS = """
        partition_id              int32    0+
        topic_id                  uuid     0+
        replicas                  []int32  0+
        isr                       []int32  0+
        removing_replicas         []int32  0+
        adding_replicas           []int32  0+
        leader                    int32    0+
        leader_recovery_state     int8     0+  tag=0
        leader_epoch              int32    0+
        partition_epoch           int32    0+
        directories               []uuid   1+
        eligible_leader_replicas  []int32  2+  nullable tag=1
        last_known_elr            []int32  2+  nullable tag=2
    """


class ConfigRecord(Message):
    API_KEY = 4
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = ""

    FIELDS = """
        resource_type  int8    0+
        resource_name  string  0+
        name           string  0+
        value          string  0+  nullable
    """


class PartitionChangeRecord(Message):
    API_KEY = 5
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    partition_id: int = -1
    topic_id: Uuid = ZERO
    isr: list[int] | None = None
    leader: int = -2
    replicas: list[int] | None = None
    removing_replicas: list[int] | None = None
    adding_replicas: list[int] | None = None
    leader_recovery_state: int = -1
    directories: list[Uuid] | None = None
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None

    FIELDS = """
        partition_id              int32    0+
        topic_id                  uuid     0+
        isr                       []int32  0+  nullable tag=0
        leader                    int32    0+  tag=1
        replicas                  []int32  0+  nullable tag=2
        removing_replicas         []int32  0+  nullable tag=3
        adding_replicas           []int32  0+  nullable tag=4
        leader_recovery_state     int8     0+  tag=5
        directories               []uuid   1+  nullable tag=8
        eligible_leader_replicas  []int32  2+  nullable tag=6
        last_known_elr            []int32  2+  nullable tag=7
    """


class FenceBrokerRecord(Message):
    API_KEY = 7
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: int = 0
    epoch: int = 0

    FIELDS = """
        id     int32  0+
        epoch  int64  0+
    """


class UnfenceBrokerRecord(Message):
    API_KEY = 8
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: int = 0
    epoch: int = 0

    FIELDS = """
        id     int32  0+
        epoch  int64  0+
    """


class RemoveTopicRecord(Message):
    API_KEY = 9
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_id: Uuid = ZERO

    FIELDS = """
        topic_id  uuid  0+
    """


class DelegationTokenRecord(Message):
    API_KEY = 10
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    owner: str = ""
    requester: str = ""
    renewers: list[str] = []
    issue_timestamp: int = 0
    max_timestamp: int = 0
    expiration_timestamp: int = 0
    token_id: str = ""

    FIELDS = """
        owner                 string    0+
        requester             string    0+
        renewers              []string  0+
        issue_timestamp       int64     0+
        max_timestamp         int64     0+
        expiration_timestamp  int64     0+
        token_id              string    0+
    """


class UserScramCredentialRecord(Message):
    API_KEY = 11
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: str = ""
    mechanism: int = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: int = 0

    FIELDS = """
        name        string  0+
        mechanism   int8    0+
        salt        bytes   0+
        stored_key  bytes   0+
        server_key  bytes   0+
        iterations  int32   0+
    """


class FeatureLevelRecord(Message):
    API_KEY = 12
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: str = ""
    feature_level: int = 0

    FIELDS = """
        name           string  0+
        feature_level  int16   0+
    """


class EntityData(Structure):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS = """
        entity_type  string  0+
        entity_name  string  0+  nullable
    """


class ClientQuotaRecord(Message):
    API_KEY = 14
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    entity: list[EntityData] = []
    key: str = ""
    value: float = 0.0
    remove: bool = False

    FIELDS = """
        entity  []EntityData  0+
        key     string        0+
        value   float64       0+
        remove  bool          0+
    """


class ProducerIdsRecord(Message):
    API_KEY = 15
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: int = 0
    broker_epoch: int = -1
    next_producer_id: int = 0

    FIELDS = """
        broker_id         int32  0+
        broker_epoch      int64  0+
        next_producer_id  int64  0+
    """


class BrokerRegistrationChangeRecord(Message):
    API_KEY = 17
    VERSIONS = range(4)
    FLEXIBLE_FROM = 0

    broker_id: int = 0
    broker_epoch: int = 0
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: list[Uuid] = []
    cordoned_log_dirs: list[Uuid] | None = None

    FIELDS = """
        broker_id               int32   0+
        broker_epoch            int64   0+
        fenced                  int8    0+  tag=0
        in_controlled_shutdown  int8    1+  tag=1
        log_dirs                []uuid  2+  tag=2
        cordoned_log_dirs       []uuid  3+  nullable tag=3
    """


class AccessControlEntryRecord(Message):
    API_KEY = 18
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: Uuid = ZERO
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 0
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS = """
        id               uuid    0+
        resource_type    int8    0+
        resource_name    string  0+
        pattern_type     int8    0+
        principal        string  0+
        host             string  0+
        operation        int8    0+
        permission_type  int8    0+
    """


class RemoveAccessControlEntryRecord(Message):
    API_KEY = 19
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    id: Uuid = ZERO

    FIELDS = """
        id  uuid  0+
    """


class NoOpRecord(Message):
    API_KEY = 20
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0


class ZkMigrationStateRecord(Message):
    API_KEY = 21
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    zk_migration_state: int = 0

    FIELDS = """
        zk_migration_state  int8  0+
    """


class RemoveUserScramCredentialRecord(Message):
    API_KEY = 22
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: str = ""
    mechanism: int = 0

    FIELDS = """
        name       string  0+
        mechanism  int8    0+
    """


class BeginTransactionRecord(Message):
    API_KEY = 23
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    name: str | None = None

    FIELDS = """
        name  string  0+  nullable tag=0
    """


class EndTransactionRecord(Message):
    API_KEY = 24
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0


class AbortTransactionRecord(Message):
    API_KEY = 25
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    reason: str | None = None

    FIELDS = """
        reason  string  0+  nullable tag=0
    """


class RemoveDelegationTokenRecord(Message):
    API_KEY = 26
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    token_id: str = ""

    FIELDS = """
        token_id  string  0+
    """


class ControllerEndpoint(Structure):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0

    FIELDS = """
        name               string  0+
        host               string  0+
        port               uint16  0+
        security_protocol  int16   0+
    """


class ControllerFeature(Structure):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS = """
        name                   string  0+
        min_supported_version  int16   0+
        max_supported_version  int16   0+
    """


class RegisterControllerRecord(Message):
    API_KEY = 27
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    controller_id: int = 0
    incarnation_id: Uuid = ZERO
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []

    FIELDS = """
        controller_id       int32                 0+
        incarnation_id      uuid                  0+
        zk_migration_ready  bool                  0+
        end_points          []ControllerEndpoint  0+
        features            []ControllerFeature   0+
    """


class ClearElrRecord(Message):
    API_KEY = 28
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_name: str = ""

    FIELDS = """
        topic_name  string  0+
    """
