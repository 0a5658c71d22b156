"""
The command line: ``mnemoscope``. `root` is the way in; each command has a module of its name.

What a command does stands in a module beside it that is imported when the command runs, so that
``--help`` loads no store.
"""
