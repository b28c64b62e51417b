"""What the compiled decoders of all fronts share.

protobuf.pxd     numbers and lengths of protobuf's wire format
"""
