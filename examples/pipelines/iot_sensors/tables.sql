CREATE STREAMING TABLE staging.readings (
  CONSTRAINT plausible EXPECT (
    (kind = 'temperature' AND value BETWEEN -60 AND 120)
    OR (kind = 'humidity' AND value BETWEEN 0 AND 100)
  ) ON VIOLATION QUARANTINE ROW
)
AS SELECT * FROM STREAM(sources.readings);

CREATE STREAMING TABLE trusted.sensors
  COMMENT 'What each sensor said last; sensors buffer while they are offline, so some is late';

CREATE FLOW last_readings AS AUTO CDC INTO trusted.sensors
FROM STREAM(staging.readings)
KEYS (sensor, kind)
SEQUENCE BY measured_at
COLUMNS * EXCEPT (topic, partition, offset, timestamp)
STORED AS SCD TYPE 1;

CREATE MERGED VIEW refined.sensor_windows
  COMMENT 'Readings in windows of five minutes; an average is a sum by a count'
  MERGE (readings SUM, total SUM, least MIN, most MAX)
AS SELECT
  sensor,
  kind,
  window(measured_at, '5 minutes').start AS window_start,
  count(*) AS readings,
  sum(value) AS total,
  min(value) AS least,
  max(value) AS most
FROM STREAM(staging.readings)
GROUP BY sensor, kind, window(measured_at, '5 minutes');

CREATE SINK alarms TOPIC 'sensor-alarms' FORMAT json;

-- Straight from the topic, with a trigger of its own.
CREATE FLOW heat_alarms TRIGGER EVERY 1 SECOND AS INSERT INTO alarms BY NAME
SELECT sensor AS key, sensor, value, measured_at
FROM STREAM(sources.readings)
WHERE kind = 'temperature' AND value BETWEEN 70 AND 120;
