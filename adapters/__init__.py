"""Adapters for mem0, Qdrant and LangGraph, and the command line. Importing this imports none."""
