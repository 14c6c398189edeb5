CREATE MERGED VIEW refined.traffic_by_minute
  COMMENT 'Requests, bytes and failures by minute and action'
  MERGE (requests SUM, bytes SUM, failures SUM)
AS SELECT
  date_trunc('MINUTE', time) AS minute,
  action,
  count(*) AS requests,
  sum(bytes) AS bytes,
  count_if(status >= 500) AS failures
FROM STREAM(trusted.access_log)
GROUP BY ALL;

CREATE MERGED VIEW refined.traffic_by_agent
  COMMENT 'Who asks for what, by file'
  MERGE (requests SUM, last_seen MAX)
AS SELECT file, agent, action, count(*) AS requests, max(time) AS last_seen
FROM STREAM(trusted.access_log)
GROUP BY ALL;
