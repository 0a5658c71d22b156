"""Files of records, file locks and file permissions."""
