"""Tables of one's own with a vector column in PostgreSQL, by psycopg."""

from .table import AsyncVectorTable, VectorTable

__all__ = ["AsyncVectorTable", "VectorTable"]
