"""The APIs of the broker, one module per Kafka API, in families; `registry` lists them."""
