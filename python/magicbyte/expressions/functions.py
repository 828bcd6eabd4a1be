"""The functions, operators and types that an expression may use.

Each gives the same result wherever and whenever it is evaluated, in time that grows with its arguments. A
result is at most a few times as large as its arguments, however often functions are nested, or has its own
bound: `strftime` by its format, which is a short constant. This rules out `repeat`, `lpad`, `replace`,
`format`, `hex` and all list functions; `now`; and TIMESTAMP WITH TIME ZONE, which depends on the machine's
time zone.
"""

from __future__ import annotations

__all__ = ["BLOB_TYPES", "FUNCTIONS", "JOINS", "OPERATORS", "TAKE_PATHS", "TEXTS", "TEXT_TYPES", "TYPES"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


JOINS = _words("|| concat")
"""Functions whose result holds all of their arguments."""

TEXTS = JOINS | _words(
    """
    ->> json_extract json_extract_string header
    lower upper lcase ucase trim ltrim rtrim substring substr left right split_part regexp_extract
    unhex from_hex from_base64 encode decode strftime
    """
)
"""Functions that produce text or bytes."""

TAKE_PATHS = _words("->> json_extract json_extract_string json_exists json_type json_array_length")
"""Functions whose second argument is the path of a value in a JSON document."""

FUNCTIONS = (
    TEXTS
    | TAKE_PATHS
    | _words(
        """
        ~~ !~~ ~~* !~~* ~~~ ^@ + - * / // %
        like_escape ilike_escape contains starts_with ends_with prefix suffix
        regexp_matches regexp_full_match instr strpos position
        length len strlen octet_length char_length character_length ascii unicode json_valid md5 sha256
        abs sign round floor ceil ceiling trunc mod greatest least nullif if isnan isinf isfinite
        date_part datepart date_trunc datetrunc date_diff datediff epoch epoch_ms epoch_us
        year quarter month week day hour minute second dayofweek isodow dayofyear
        strptime make_date make_timestamp
        to_years to_months to_weeks to_days to_hours to_minutes to_seconds to_milliseconds to_microseconds
        """
    )
)
"""All functions, in DuckDB's names: `~~` is LIKE, `~~*` ILIKE, `~~~` GLOB."""

OPERATORS = _words(
    """
    ARRAY_EXTRACT COMPARE_IN OPERATOR_COALESCE OPERATOR_IS_NOT_NULL OPERATOR_IS_NULL OPERATOR_NOT
    OPERATOR_TRY STRUCT_EXTRACT
    """
)
"""Operators that DuckDB does not parse as functions, in the names of its syntax tree."""

BLOB_TYPES = _words("blob bytea")
"""Binary types: as text, each byte may become four characters."""

TEXT_TYPES = BLOB_TYPES | _words("json varchar text string char")

TYPES = TEXT_TYPES | _words(
    """
    boolean bool tinyint smallint integer int bigint hugeint utinyint usmallint uinteger ubigint uhugeint
    int1 int2 int4 int8 short long float real double float4 float8 decimal numeric
    date time timestamp datetime timestamp_s timestamp_ms timestamp_ns interval uuid
    """
)
"""The types of casts."""
