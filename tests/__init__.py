"""The tests, and the kit that they share."""
