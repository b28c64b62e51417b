# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _OTHER, _METHOD, _SCHEME, _PATH, _AUTHORITY, _LAST_PSEUDO, _TE, _CONTENT_TYPE, _TIMEOUT, _ENCODING, _NEVER
cdef int _REGULAR, _NEEDED, _FIELD_COST, _USUAL_HEAD, _OVERHEAD, _STATIC_SIZE, _LARGEST_BLOCK, _SHORTEST_CODE
cdef int _LONGEST_CODE, _END_OF_STRING
cdef bytes _GRPC, _POST, _TRAILERS

cdef struct Text:
    const unsigned char* at
    Py_ssize_t size

cdef class HeadScan:
    cdef dict _methods
    cdef Py_ssize_t _largest_list
    cdef bytes _units
    cdef tuple _encodings
    cdef tuple _names
    cdef int _kinds[62]
    cdef Text _static_name[62]
    cdef Text _static_value[62]
    cdef Text _special_name[32]
    cdef int _special_kind[32]
    cdef int _specials
    cdef unsigned char _in_name[256]
    cdef unsigned char _illegal[256]
    cdef unsigned char _at_end[256]
    cdef bint _huffman
    cdef unsigned int _first[31]
    cdef unsigned int _count[31]
    cdef int _symbols_at[31]
    cdef int _symbols[257]
    cdef unsigned char _decoded[8192]
    cdef Py_ssize_t _used
    cdef Text _name
    cdef Text _value
    cdef int _kind
    cdef int _seen
    cdef object _found
    cdef int _prepare_huffman(self, list codes, list lengths) except -1
    cdef object find(self, const unsigned char* data, Py_ssize_t size)
    cdef Py_ssize_t _field(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef Py_ssize_t _string(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Text* text) noexcept
    cdef int _decode(self, const unsigned char* raw, Py_ssize_t size, Text* text) noexcept
    cdef int _kind_of(self, Text name) noexcept
    cdef bint _legal(self, Text value) noexcept
    cdef int _take(self) except -1
    cdef int _take_pseudo(self, int bit) except -1
    cdef int _is_encoding(self, Text value) except -1
    cdef bint _is_timeout(self, Text value) noexcept
