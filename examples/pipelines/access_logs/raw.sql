CREATE STREAMING TABLE raw.access_log
  COMMENT 'Lines of web servers as they came; the key says which line of which file it is'
AS SELECT key, value, topic, partition, offset, timestamp, headers
FROM STREAM(sources.access_log);
