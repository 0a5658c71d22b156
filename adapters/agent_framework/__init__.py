"""History providers of Microsoft's Agent Framework."""
