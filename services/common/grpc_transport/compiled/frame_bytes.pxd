# Bytes of HTTP/2 frames.

# Four bytes, the highest first.
cdef inline unsigned int number(const unsigned char* at) noexcept:
    return <unsigned int>at[0] << 24 | <unsigned int>at[1] << 16 | <unsigned int>at[2] << 8 | at[3]

# Write the same: the place after it.
cdef inline unsigned char* put_number(unsigned char* to, unsigned int value) noexcept:
    to[0] = <unsigned char>(value >> 24)
    to[1] = <unsigned char>(value >> 16)
    to[2] = <unsigned char>(value >> 8)
    to[3] = <unsigned char>value
    return to + 4

# Write what is before a frame's payload: the place after it.
cdef inline unsigned char* put_frame(
    unsigned char* to, unsigned int size, int kind, int flags, unsigned int stream
) noexcept:
    put_number(to, size << 8 | kind)
    to[4] = <unsigned char>flags
    return put_number(to + 5, stream)
