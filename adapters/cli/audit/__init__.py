"""The commands of ``mnemoscope audit``, one module each."""
