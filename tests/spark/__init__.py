"""Tests of tandemmq.spark."""
