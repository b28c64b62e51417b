"""Sockets, on asyncio, under protocols whose bytes are in `common/wire`.

remoting/   connections, server and client of RocketMQ's classic protocol
"""
