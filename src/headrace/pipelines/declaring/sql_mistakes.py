"""Mistakes in a query that can be found without Spark, whose start takes seconds.

Spark parses and checks the SQL. This module reports certain errors earlier: a query that begins
with a name, parentheses that do not match, and a misspelled keyword where only a keyword can be:
`FROM orders WHRE price > 0`. A name between two others, or between a value and a name, is never
valid, except for the columns of a LATERAL VIEW: an alias ends what it names.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.pipelines.problems import nearest
from headrace.serdes.sql_tokens import Token

_WORDS = """
ADD AFTER AGGREGATE ALIGN ALL ALTER ALWAYS ANALYZE AND ANTI ANY ANY_VALUE APPLY APPROX ARCHIVE ARRAY
AS ASC ASENSITIVE ASOF AT ATOMIC AUTHORIZATION AUTO BEGIN BERNOULLI BETWEEN BIGINT BIN BINARY
BINDING BIN_DISTRIBUTE_RATIO BIN_END BIN_START BOOLEAN BOTH BUCKET BUCKETS BY BYTE CACHE CALL CALLED
CASCADE CASE CAST CATALOG CATALOGS CDC CHANGE CHANGES CHAR CHARACTER CHECK CLEAR CLOSE CLUSTER
CLUSTERED CODEGEN COLLATE COLLATION COLLATIONS COLLECTION COLUMN COLUMNS COMMENT COMMIT COMPACT
COMPACTIONS COMPENSATION COMPUTE CONCATENATE CONDITION CONDITIONAL CONSTRAINT CONTAINS CONTINUE COST
CREATE CROSS CUBE CURRENT CURRENT_DATABASE CURRENT_DATE CURRENT_PATH CURRENT_SCHEMA CURRENT_TIME
CURRENT_TIMESTAMP CURRENT_USER CURSOR DATA DATABASE DATABASES DATE DATEADD DATEDIFF DATE_ADD
DATE_DIFF DAY DAYOFYEAR DAYS DBPROPERTIES DEC DECIMAL DECLARE DEFAULT DEFAULT_PATH DEFINED DEFINER
DELAY DELETE DELIMITED DESC DESCRIBE DETERMINISTIC DFS DIRECTORIES DIRECTORY DISTANCE DISTINCT
DISTRIBUTE DIV DO DOUBLE DROP ELSE ELSEIF EMPTY END ENFORCED ERROR ESCAPE ESCAPED EVOLUTION EXACT
EXCEPT EXCHANGE EXCLUDE EXCLUSIVE EXECUTE EXISTS EXIT EXPLAIN EXPORT EXTEND EXTENDED EXTERNAL
EXTRACT FALSE FETCH FIELDS FILEFORMAT FILTER FIRST FLOAT FLOW FOLLOWING FOR FOREIGN FORMAT FORMATTED
FOUND FROM FULL FUNCTION FUNCTIONS GENERATED GEOGRAPHY GEOMETRY GLOBAL GRANT GROUP GROUPING HANDLER
HAVING HISTORY HOUR HOURS IDENTIFIED IDENTIFIER IDENTITY IF IGNORE ILIKE IMMEDIATE IMPORT IN INCLUDE
INCLUSIVE INCREMENT INDEX INDEXES INNER INPATH INPUT INPUTFORMAT INSENSITIVE INSERT INT INTEGER
INTERSECT INTERVAL INTO INVOKER IS ITEMS ITERATE JOIN JSON JSON_EXISTS JSON_QUERY JSON_TABLE
JSON_VALUE KEEP KEY KEYS LANGUAGE LAST LATERAL LAZY LEADING LEAVE LEFT LEVEL LIKE LIMIT LINES LIST
LOAD LOCAL LOCALTIME LOCATION LOCK LOCKS LOGICAL LONG LOOP MACRO MAP MATCHED MATCH_CONDITION
MATERIALIZED MAX MEASURE MERGE METRICS MICROSECOND MICROSECONDS MILLISECOND MILLISECONDS MINUS
MINUTE MINUTES MODIFIES MONTH MONTHS MSCK NAME NAMESPACE NAMESPACES NANOSECOND NANOSECONDS NATURAL
NEAREST NEXT NO NONE NORELY NOT NULL NULLS NUMERIC OBJECT OF OFFSET OMIT ON ONLY OPEN OPTION OPTIONS
OR ORDER ORDINALITY OUT OUTER OUTPUTFORMAT OVER OVERLAPS OVERLAY OVERWRITE PARTITION PARTITIONED
PARTITIONS PATH PERCENT PIVOT PLACING POSITION PRECEDING PRIMARY PRINCIPALS PROCEDURE PROCEDURES
PROPERTIES PURGE QUALIFY QUARTER QUERY QUOTES RANGE READ READS REAL RECORDREADER RECORDWRITER
RECOVER RECURSION RECURSIVE REDUCE REFERENCES REFRESH REGEXP RELY RENAME REPAIR REPEAT REPEATABLE
REPLACE RESET RESPECT RESTRICT RETURN RETURNING RETURNS REVOKE RIGHT RLIKE ROLE ROLES ROLLBACK
ROLLUP ROW ROWS SCD SCHEMA SCHEMAS SECOND SECONDS SECURITY SELECT SEMI SEPARATED SEQUENCE SERDE
SERDEPROPERTIES SESSION_USER SET SETS SHORT SHOW SIMILARITY SINGLE SKEWED SMALLINT SOME SORT SORTED
SOURCE SPECIFIC SQL SQLEXCEPTION SQLSTATE START STATISTICS STORED STRATIFY STREAM STREAMING STRING
STRUCT SUBSTR SUBSTRING SYNC SYSTEM SYSTEM_PATH SYSTEM_TIME SYSTEM_VERSION TABLE TABLES TABLESAMPLE
TARGET TBLPROPERTIES TEMP TEMPORARY TERMINATED THEN TIME TIMEDIFF TIMESTAMP TIMESTAMPADD
TIMESTAMPDIFF TIMESTAMP_LTZ TIMESTAMP_NTZ TINYINT TO TOUCH TRACK TRAILING TRANSACTION TRANSACTIONS
TRANSFORM TRIM TRUE TRUNCATE TRY_CAST TYPE UNARCHIVE UNBOUNDED UNCACHE UNCONDITIONAL UNIFORM UNION
UNIQUE UNKNOWN UNLOCK UNNEST UNPIVOT UNSET UNTIL UPDATE USE USER USING VALUE VALUES VAR VARCHAR
VARIABLE VARIANT VERSION VIEW VIEWS VOID WATERMARK WEEK WEEKS WHEN WHERE WHILE WIDTH WINDOW WITH
WITHIN WITHOUT WRAPPER X YEAR YEARS ZONE
"""
KEYWORDS = frozenset(_WORDS.split())


_BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_BETWEEN = (
    *("AND", "BETWEEN", "ELSE", "FROM", "HAVING", "ILIKE", "JOIN", "LIKE", "LIMIT", "OFFSET"),
    *("QUALIFY", "RLIKE", "THEN", "WHEN", "WHERE"),
)
_BEFORE_BY = ("CLUSTER", "DISTRIBUTE", "GROUP", "ORDER", "PARTITION", "SORT")
_BEFORE_RELATION = ("FROM", "JOIN")

_COLUMNS = frozenset(("DATE", "KEY", "NAME", "TIME", "TYPE", "USER", "VALUE", "X"))
"""Keywords that no operand can follow, and that follow none: there they are columns."""
_ENDS = _COLUMNS | {
    *("DAY", "DAYS", "END", "FALSE", "HOUR", "HOURS", "MINUTE", "MINUTES", "MONTH", "MONTHS"),
    *("NULL", "OFFSET", "PARTITION", "SECOND", "SECONDS", "TIMESTAMP", "TRUE", "YEAR", "YEARS"),
}
"""Keywords that no name can follow except as an alias: constants, units, columns of topics."""
_OPENINGS = {")": "(", "]": "["}


class Mistake(NamedTuple):
    """A problem of a query, and its line."""

    text: str
    line: int


def mistake_in(query: Sequence[Token]) -> Mistake | None:
    """Return the first certain mistake of a query."""
    if any(token.text == "$" for token in query):
        return None  # Only Spark finds the end of a text between dollar signs, or of a variable.
    found = (*_wrong_beginnings(query), *_unmatched(query), *_misspelled(query))
    return min(found, key=lambda one: one.line, default=None)


def _wrong_beginnings(query: Sequence[Token]) -> Iterator[Mistake]:
    """Find names in the place of SELECT: at the beginning, in a WITH clause, in a subquery."""
    for at, token in enumerate(query):
        if _is_name(token) and _begins_query(query, at):
            words = f"{', '.join(_BEGINNINGS[:-1])} or {_BEGINNINGS[-1]}"
            meant = nearest(token.upper, _BEGINNINGS)
            found = f"{token.text} does not fit here; a query begins with {words}{meant}"
            yield Mistake(found, token.line)


def _begins_query(query: Sequence[Token], at: int) -> bool:
    """Return whether a query must begin here: `(SELCT id FROM` cannot be a list of values."""
    if at == 0:
        return True
    before = [token.symbol or token.text for token in query[max(at - 4, 0) : at]]
    if before[-1] != "(":
        return False
    is_with = before[-2:-1] == ["AS"] and before[:1] in (["WITH"], ["RECURSIVE"])
    following = query[at + 1 : at + 3]
    is_selection = len(following) == 2 and following[1].upper == "FROM"
    return is_with or (is_selection and (following[0].text == "*" or _is_operand(following[0])))


def _unmatched(query: Sequence[Token]) -> Iterator[Mistake]:
    """Find the first bracket without a partner."""
    opened: list[Token] = []
    for token in query:
        if token.text in _OPENINGS.values():
            opened.append(token)
        elif token.text not in _OPENINGS:
            continue
        elif not opened or opened.pop().text != _OPENINGS[token.text]:
            yield Mistake(f"this {token.text} closes nothing", token.line)
            return
    if opened:
        yield Mistake(f"this {opened[-1].text} is not closed", opened[-1].line)


def _misspelled(query: Sequence[Token]) -> Iterator[Mistake]:
    """Find names that resemble the keyword that must be in their place."""
    has_view = any(token.upper == "VIEW" for token in query)
    for at in range(1, len(query) - 1):
        if _is_name(query[at]):
            due = _words_due(query, at, has_view=has_view)
            if meant := nearest(query[at].upper, due):
                yield Mistake(f"{query[at].text} does not fit here{meant}", query[at].line)


def _words_due(query: Sequence[Token], at: int, *, has_view: bool) -> Sequence[str]:
    """Return the keywords that may be in the place of a name; none if the name may be right."""
    before = query[at - 1]
    if _is_subclause(query, at + 1):
        is_window = at > 1 and before.text == "(" and query[at - 2].upper == "OVER"
        return _BEFORE_BY if is_window or _ends_operand(query, at - 1) else ()
    if not _ends_operand(query, at - 1):
        return ()
    if _is_query_or_stream(query, at + 1):
        return _BEFORE_RELATION
    if before.text == ")" and has_view:
        return ()  # `LATERAL VIEW explode(items) t item`
    return _BETWEEN if _is_operand(query[at + 1]) else ()


def _is_subclause(query: Sequence[Token], at: int) -> bool:
    """Return whether BY and an operand come here; BY alone may be a name."""
    is_followed = at + 1 < len(query) and (_is_operand(query[at + 1]) or query[at + 1].text == "(")
    return query[at].upper == "BY" and is_followed


def _is_query_or_stream(query: Sequence[Token], at: int) -> bool:
    """Return whether a relation comes here that cannot be the columns of an alias."""
    following = [token.symbol or token.text for token in query[at : at + 3]]
    if len(following) < 3:
        return False
    first, second, third = following
    return (first == "STREAM" and (second == "(" or _is_name(query[at + 1]))) or (
        first == "(" and second == "SELECT" and third not in (",", ")")
    )


def _ends_operand(query: Sequence[Token], at: int) -> bool:
    """Return whether a name, value or expression ends here; `*` for all columns is one."""
    token = query[at]
    if token.text == "*":
        return at > 0 and (query[at - 1].upper == "SELECT" or query[at - 1].text in (",", "."))
    is_value = token.kind in ("text", "number") or token.text in (")", "]")
    return is_value or token.kind == "quoted" or _is_name(token) or token.upper in _ENDS


def _is_operand(token: Token) -> bool:
    is_value = token.kind in ("text", "number", "quoted")
    return is_value or _is_name(token) or token.upper in _COLUMNS


def _is_name(token: Token) -> bool:
    """Return whether this is a bare word that is not a keyword."""
    return token.kind == "word" and token.upper not in KEYWORDS
