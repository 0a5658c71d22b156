"""Deadlines, circuit breakers, bulkheads, and the policy that sets them."""
