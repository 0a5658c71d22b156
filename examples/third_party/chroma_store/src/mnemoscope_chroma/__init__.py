"""An adapter for Chroma, found by mnemoscope through its entry point."""
