"""What may pass from one agent to another, or into memory."""
