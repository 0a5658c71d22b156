"""What tests and benchmarks share: receivers, stand-ins, generators, programs that are killed."""
