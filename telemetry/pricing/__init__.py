"""Prices of model calls, and the names that models go by."""
