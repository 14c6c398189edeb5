"""The topic that holds the cluster's metadata: its name and its id, the same in every cluster."""

from headrace.protocol.uuids import Uuid

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID: Uuid = bytes(15) + b"\x01"
