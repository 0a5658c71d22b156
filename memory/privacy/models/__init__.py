"""Language models and recognizers beside our own detectors, each optional."""
