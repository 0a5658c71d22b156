"""Retention by purpose: what goes of the stores when its purpose is over."""
