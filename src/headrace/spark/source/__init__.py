"""`format("headrace")`: records of any Kafka cluster as Spark rows, without jars.

`source` is what Spark finds; `readers` are its two readers, which plan by `planning`, `limits` and
`filters` and ask the cluster through `brokers`. A task walks its share with `reading`, which turns
record sets (`record_sets`) into Arrow columns by one of two twins: `plain` or `compiled`.
"""
