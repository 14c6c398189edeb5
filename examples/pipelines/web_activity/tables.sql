CREATE STREAMING TABLE staging.page_views AS SELECT * FROM STREAM(sources.page_views);

CREATE STREAMING TABLE trusted.page_views (
  CONSTRAINT known_visitor EXPECT (visitor IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT seen_once EXPECT UNIQUE (view_id) ON VIOLATION DROP ROW
)
AS SELECT view_id, visitor, page, viewed_at FROM STREAM(staging.page_views);

CREATE MERGED VIEW refined.page_views_by_hour
  MERGE (views SUM)
AS SELECT date_trunc('HOUR', viewed_at) AS hour, page, count(*) AS views
FROM STREAM(trusted.page_views)
GROUP BY ALL;

CREATE MATERIALIZED VIEW refined.sessions
  COMMENT 'Visits: views of one visitor with no more than half an hour between them'
AS SELECT
  visitor,
  session_window.start AS started_at,
  timestampdiff(SECOND, min(viewed_at), max(viewed_at)) AS seconds,
  count(*) AS views,
  min_by(page, viewed_at) AS first_page,
  sort_array(collect_set(page)) AS pages
FROM trusted.page_views
GROUP BY visitor, session_window(viewed_at, '30 minutes');

CREATE MATERIALIZED VIEW refined.viewed_together
  COMMENT 'For each page the three that are most often seen in the same visit'
AS SELECT page, also, sessions, place
FROM (
  SELECT *, row_number() OVER (PARTITION BY page ORDER BY sessions DESC, also) AS place
  FROM (
    SELECT page, also, count(*) AS sessions
    FROM refined.sessions
      LATERAL VIEW explode(pages) one AS page
      LATERAL VIEW explode(pages) other AS also
    WHERE page <> also
    GROUP BY page, also
  )
)
WHERE place <= 3;
