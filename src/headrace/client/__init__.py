"""The one door to any Kafka cluster: confluent-kafka for records, our own wire client for the rest.

`producer` and `consumer` wrap confluent-kafka; `connection`, `cluster` and `admin` speak the
protocol themselves, because the administration of a cluster needs more than librdkafka offers.
Nothing is imported here, so that a command pays only for the half that it uses.
"""
