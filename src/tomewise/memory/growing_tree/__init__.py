"""A tree that grows as passages come (MemTree)."""
