CREATE STREAMING TABLE staging.posts AS SELECT * FROM STREAM(sources.posts);

CREATE STREAMING TABLE trusted.voices (
  CONSTRAINT about_something EXPECT (product IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT heard_once EXPECT UNIQUE (channel, id) ON VIOLATION DROP ROW
)
  COMMENT 'One format for what is said, wherever it is said; each mail and each post once';

CREATE TEMPORARY VIEW heard AS
SELECT id, 'mail' AS channel, author, text, written_at FROM STREAM(staging.mails)
UNION ALL
SELECT id, 'post' AS channel, author, text, posted_at FROM STREAM(staging.posts);

CREATE FLOW voices AS INSERT INTO trusted.voices BY NAME
SELECT
  channel,
  id,
  author,
  nullif(regexp_extract(text, '(kettle|teapot|mug|grinder|scale)', 1), '') AS product,
  CASE
    WHEN text RLIKE 'broken|leaks|never again' THEN 'complaint'
    WHEN text LIKE '%?%' THEN 'question'
    ELSE 'praise'
  END AS mood,
  written_at
FROM STREAM(heard);

CREATE MERGED VIEW refined.moods
  COMMENT 'How people feel about each product, by hour and channel'
  MERGE (voices SUM)
AS SELECT date_trunc('HOUR', written_at) AS hour, product, channel, mood, count(*) AS voices
FROM STREAM(trusted.voices)
GROUP BY ALL;

CREATE MATERIALIZED VIEW refined.recommendations
  COMMENT 'For each product the one that most of those who praise it praise too'
AS SELECT product, also, people
FROM (
  SELECT *, row_number() OVER (PARTITION BY product ORDER BY people DESC, also) AS place
  FROM (
    SELECT a.product, b.product AS also, count(DISTINCT a.author) AS people
    FROM trusted.voices a
    JOIN trusted.voices b ON a.author = b.author AND a.product <> b.product
    WHERE a.mood = 'praise' AND b.mood = 'praise'
    GROUP BY ALL
  )
)
WHERE place = 1;

CREATE SINK complaints TOPIC 'complaints' FORMAT json;

-- Keyed by product: those of one product are in one partition, in the table's order, for the
-- product's owner.
CREATE FLOW complaints_by_product AS INSERT INTO complaints BY NAME
SELECT product AS key, product, channel, author, written_at
FROM STREAM(trusted.voices)
WHERE mood = 'complaint';
