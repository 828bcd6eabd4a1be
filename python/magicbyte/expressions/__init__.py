"""Expressions that select records: DuckDB's SQL over the columns of one record at a time.

`grammar.py` accepts an expression or refuses it, `columns.py` has the columns that it sees, `database.py` the
DuckDB that evaluates it, and `record_filter.py` puts them together. Needs `pip install 'magicbyte[sql]'`.
"""
