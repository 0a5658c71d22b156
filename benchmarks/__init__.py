"""Programs that measure, and programs that try a whole installation."""
