"""The part of the compiled core that writes records.

    appender.py   a plain record, into the mapping of the newest file

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
