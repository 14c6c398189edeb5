"""`format("headrace")`: records of any Kafka cluster as Spark rows, without jars.

Spark loads `source`. `batch_reader` and `stream_reader` plan by `planning`, `limits` and `filters`,
and use the cluster through `brokers`. A task reads its share with `reading`, which decodes record
sets (`record_sets`) to Arrow columns by `plain` or `compiled`.
"""
