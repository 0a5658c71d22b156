"""
The command line: ``mnemoscope``. `root` is the entry point; each command has a module of its name.

A command imports the stores, sinks and settings that it needs when it runs, so that ``--help`` is
fast.
"""
