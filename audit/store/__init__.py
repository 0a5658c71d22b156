"""The log in its tables: writer, snapshots, tree, checkpoints, customers, retention."""
