CREATE STREAMING TABLE staging.flight_events AS SELECT * FROM STREAM(sources.flight_events);

CREATE FLOW tower AS INSERT INTO staging.flight_events BY NAME
SELECT * FROM STREAM(sources.tower_reports);

CREATE STREAMING TABLE trusted.flights
  COMMENT 'Flights as last reported; a report that comes late does not undo a newer one';

CREATE FLOW reports AS AUTO CDC INTO trusted.flights
FROM STREAM(staging.flight_events)
KEYS (flight, day)
APPLY AS DELETE WHEN status = 'withdrawn'
SEQUENCE BY reported_at
COLUMNS * EXCEPT (topic, partition, offset, timestamp)
STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW refined.flight_status
  COMMENT 'Is my flight on time?'
AS SELECT
  flight,
  day,
  gate,
  scheduled_at,
  expected_at,
  CASE
    WHEN status = 'cancelled' THEN 'cancelled'
    WHEN expected_at > scheduled_at + INTERVAL 15 MINUTES THEN 'late'
    ELSE 'on time'
  END AS answer,
  timestampdiff(MINUTE, scheduled_at, expected_at) AS delay_minutes
FROM trusted.flights;

CREATE MATERIALIZED VIEW refined.punctuality
  COMMENT 'How airlines do, by day'
AS SELECT
  substring_index(flight, ' ', 1) AS airline,
  day,
  count(*) AS flights,
  count_if(answer = 'on time') AS on_time,
  count_if(answer = 'late') AS late,
  count_if(answer = 'cancelled') AS cancelled
FROM refined.flight_status
GROUP BY ALL;

CREATE SINK gate_displays TOPIC 'gate-displays' FORMAT json;

-- A further reader needs one more flow: displays at the gates follow the changes.
CREATE FLOW displays AS INSERT INTO gate_displays BY NAME
SELECT gate AS key, gate, flight, day, status, expected_at
FROM STREAM(staging.flight_events)
WHERE status IN ('delayed', 'cancelled');
