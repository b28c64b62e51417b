"""What the compiled decoders of all fronts share.

spans.pxd     parts of a request's bytes
protobuf.pxd  numbers, lengths and entries of maps in protobuf's wire format
"""
