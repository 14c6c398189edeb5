"""Clients for any Kafka cluster: confluent-kafka for records, a wire client for administration.

`producer` and `consumer` wrap confluent-kafka. `connection`, `cluster` and `admin` implement the
protocol themselves, because administration needs more APIs than librdkafka offers. Nothing is
imported here, so that a command loads only the half that it uses.
"""
