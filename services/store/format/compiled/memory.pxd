# Loads and stores at an address, big-endian as in the files, and the checksum. Nothing is checked: kernels check before.
#
# Loads of ints and shorts come sign-extended, like Java's.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__)
    #include <cpuid.h>
    #endif
    static inline int64_t tandem_short_at(const unsigned char* at) {
        uint16_t value;
        memcpy(&value, at, 2);
        return (int16_t)__builtin_bswap16(value);
    }
    static inline int64_t tandem_int_at(const unsigned char* at) {
        uint32_t value;
        memcpy(&value, at, 4);
        return (int32_t)__builtin_bswap32(value);
    }
    static inline int64_t tandem_long_at(const unsigned char* at) {
        uint64_t value;
        memcpy(&value, at, 8);
        return (int64_t)__builtin_bswap64(value);
    }
    static inline uint64_t tandem_word_at(const unsigned char* at) {
        uint64_t value;
        memcpy(&value, at, 8);
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        value = __builtin_bswap64(value);
    #endif
        return value;
    }
    static inline void tandem_put_short(unsigned char* to, int64_t value) {
        uint16_t swapped = __builtin_bswap16((uint16_t)value);
        memcpy(to, &swapped, 2);
    }
    static inline void tandem_put_int(unsigned char* to, int64_t value) {
        uint32_t swapped = __builtin_bswap32((uint32_t)value);
        memcpy(to, &swapped, 4);
    }
    static inline void tandem_put_long(unsigned char* to, int64_t value) {
        uint64_t swapped = __builtin_bswap64((uint64_t)value);
        memcpy(to, &swapped, 8);
    }
    /* Whether the CPU has AVX. Code that has used it may leave the upper halves of its registers dirty, as the CRC of
       isal does (AVX-512); from then on the first SSE instruction after other such code takes some 0.15 us. */
    static inline int tandem_has_avx(void) {
    #if defined(__x86_64__)
        unsigned int a, b, c, d;
        return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_AVX) && (c & bit_OSXSAVE);
    #else
        return 0;
    #endif
    }
    static inline void tandem_clear_upper_halves(void) {
    #if defined(__AVX__)
        __builtin_ia32_vzeroupper();
    #elif defined(__x86_64__)
        __asm__ volatile("vzeroupper");
    #endif
    }
    /* isal's CRC-32: each module says once where it is. */
    static uint32_t (*tandem_crc32)(uint32_t, const unsigned char*, uint64_t) = NULL;
    static int tandem_crc32_uses_avx = 0;
    static inline void tandem_crc32_is_at(uint64_t address) {
        tandem_crc32 = (uint32_t (*)(uint32_t, const unsigned char*, uint64_t))(uintptr_t)address;
        tandem_crc32_uses_avx = tandem_has_avx();
    }
    /* As crc.crc31. */
    static inline int64_t tandem_crc31(const unsigned char* at, int64_t size) {
        uint32_t value = tandem_crc32(0, at, (uint64_t)size);
        if (tandem_crc32_uses_avx) tandem_clear_upper_halves();
        return value & 0x7FFFFFFF;
    }
    """
    int64_t short_at "tandem_short_at"(const unsigned char* at) nogil
    int64_t int_at "tandem_int_at"(const unsigned char* at) nogil
    int64_t long_at "tandem_long_at"(const unsigned char* at) nogil
    # Eight bytes as a little-endian number, for comparing.
    uint64_t word_at "tandem_word_at"(const unsigned char* at) nogil
    void put_short "tandem_put_short"(unsigned char* to, int64_t value) nogil
    void put_int "tandem_put_int"(unsigned char* to, int64_t value) nogil
    void put_long "tandem_put_long"(unsigned char* to, int64_t value) nogil
    int tandem_has_avx() nogil
    void tandem_clear_upper_halves() nogil
    void crc_is_at "tandem_crc32_is_at"(uint64_t address) nogil
    int64_t crc31 "tandem_crc31"(const unsigned char* at, int64_t size) nogil

ctypedef const unsigned char* At
ctypedef unsigned char* To
