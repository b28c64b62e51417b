"""Protocols of others as bytes: what comes and what goes, without sockets, clocks or tasks.

remoting/          RocketMQ's classic protocol: frames, headers, codes
message_traces.py  what RocketMQ's clients tell of the way of a message
"""
