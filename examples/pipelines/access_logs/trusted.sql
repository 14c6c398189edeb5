CREATE STREAMING TABLE trusted.access_log (
  CONSTRAINT real_status EXPECT (status BETWEEN 100 AND 599) ON VIOLATION QUARANTINE ROW,
  CONSTRAINT known_size EXPECT (bytes IS NOT NULL),
  CONSTRAINT sent_once EXPECT UNIQUE (line_id) ON VIOLATION DROP ROW
)
  COMMENT 'Each line once, even if the shipper sent it again; IPv4-mapped addresses made plain'
  PARTITIONED BY (day)
AS SELECT
  line_id,
  substring_index(line_id, ':', 1) AS file,
  regexp_replace(ip, '^::ffff:(?=[0-9.]+$)', '') AS ip,
  time,
  date(time) AS day,
  method,
  path,
  split_part(path, '/', 4) AS action,
  status,
  bytes,
  agent
FROM STREAM(staging.access_log);
