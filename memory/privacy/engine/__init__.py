"""The redaction engine: finds personal data in text and values, and replaces it."""
