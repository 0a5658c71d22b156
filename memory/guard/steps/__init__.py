"""The steps of a guarded call, one file each."""
