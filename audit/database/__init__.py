"""The audit trail's databases: SQLite and PostgreSQL, their schema and errors."""
