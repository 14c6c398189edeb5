"""What the broker speaks: one module per Kafka API, in families; `registry` is the list of them."""
