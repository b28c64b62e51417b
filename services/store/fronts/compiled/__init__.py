"""What the compiled decoders of all fronts share.

send_way.py    the short way of a method that sends, around what its decoder does
held_calls.py  answers of receives and acknowledgements that were held until the end of a turn
call_times.py  how long the calls of a method took
spans.pxd      parts of a request's bytes
protobuf.pxd   numbers, lengths and entries of maps in protobuf's wire format
link_fields.pxd  the fields of the link between a gateway and a store
"""
