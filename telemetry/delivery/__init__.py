"""From an event to its sinks: queues, threads, retries."""
