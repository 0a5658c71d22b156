"""The log sink: loguru, the standard library's logging, or a file of JSON lines."""
