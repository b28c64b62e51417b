"""RocketMQ's classic remoting protocol, without I/O: bytes in, commands out, and back.

One noun per file::

    frames.py         FrameReader cuts frames out of bytes; encode_frame joins one
    command.py        Command: a request or a response, with its header fields and its body
    json_header.py    a command's header as JSON
    binary_header.py  a command's header in the serialization that is called ROCKETMQ
    codec.py          bytes of a frame to a command, and back, whatever the serialization
    header_scan.py    the fields of hot requests, without a parser and a table of them
    codes.py          request codes and response codes by name
    versions.py       what the number `version` of a header means
    fields.py         typed values out of a request's extFields
    errors.py         what can be wrong with bytes that came
    java_objects.py   bodies in the form that only fastjson writes: numbers and objects as keys
    registration.py   what a broker says of itself to a name server, both ways

A connection feeds what it reads to `FrameReader.receive`, and gives each `Frame` to `codec.decode`. Whoever needs
only a few fields of a hot code may read `Frame.header` itself.
"""
