"""Consume queues and index that others have rebuilt are taken over.

adoption.py        rebuilt files of others are taken over
staged_files.py    one staging directory: what it holds, checked
"""
