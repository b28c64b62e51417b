/*
 * A commit log walker in C: what the store's compiled walker is measured against (same checks, same fields).
 *
 * Built as a shared object and called in the harness's own process on the very mapping the store's walker walks. The CRC
 * function is handed in (ISA-L's, whose address the harness takes from the isal package), so both use the same one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What dispatch needs to know of one record. */
struct row {
    int64_t position, queue_offset, store_timestamp, born_timestamp, tags_code;
    int32_t size, queue_id, sys_flag;
    uint32_t topic_hash, unique_key_hash, keys_hash;
};

typedef uint32_t (*crc_function)(uint32_t seed, const uint8_t *data, uint64_t length);

enum {
    MAGIC_V1 = (int32_t)0xDAA320A7,
    MAGIC_V2 = (int32_t)0xDAA320AB,
    BORN_HOST_V6 = 1 << 4,
    STORE_HOST_V6 = 1 << 5,
    MIN_SIZE = 91,
};

static int32_t read_int(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return (int32_t)__builtin_bswap32(v);
}

static int64_t read_long(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return (int64_t)__builtin_bswap64(v);
}

static uint32_t read_short(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

/* Java's String.hashCode for ASCII text, continued from `hash`. */
static uint32_t hash_text(uint32_t hash, const uint8_t *from, const uint8_t *to)
{
    while (from < to)
        hash = 31 * hash + *from++;
    return hash;
}

/* Properties are name 01 value 02, repeated; TAGS, KEYS and UNIQ_KEY matter here. */
static void read_properties(struct row *row, const uint8_t *at, const uint8_t *end, uint32_t topic_hash)
{
    while (at < end) {
        const uint8_t *split = memchr(at, 1, (size_t)(end - at));
        if (!split)
            return;
        const uint8_t *stop = memchr(split + 1, 2, (size_t)(end - split - 1));
        if (!stop)
            stop = end;
        if (split - at == 4 && !memcmp(at, "TAGS", 4))
            row->tags_code = (int32_t)hash_text(0, split + 1, stop);
        else if (split - at == 4 && !memcmp(at, "KEYS", 4))
            row->keys_hash = hash_text(31 * topic_hash + '#', split + 1, stop);
        else if (split - at == 8 && !memcmp(at, "UNIQ_KEY", 8))
            row->unique_key_hash = hash_text(31 * topic_hash + '#', split + 1, stop);
        at = stop + 1;
    }
}

/* Checks and reads one record at `at`, `room` bytes before the end of the log. Returns its size, or 0 to stop. */
static int32_t read_record(struct row *row, const uint8_t *at, int64_t room, int64_t position, crc_function crc)
{
    int32_t size = read_int(at), magic = read_int(at + 4);
    bool v2 = magic == MAGIC_V2;
    if ((magic != MAGIC_V1 && !v2) || size < MIN_SIZE || size > room || read_long(at + 28) != position)
        return 0;
    int32_t flags = read_int(at + 36);
    const uint8_t *store_time = at + 48 + (flags & BORN_HOST_V6 ? 20 : 8);
    const uint8_t *body_length = store_time + 8 + (flags & STORE_HOST_V6 ? 20 : 8) + 12;
    const uint8_t *body = body_length + 4, *end = at + size;
    int32_t length = read_int(body_length);
    if (length < 0 || length > end - body - (v2 ? 4 : 3))
        return 0;
    const uint8_t *topic = body + length + (v2 ? 2 : 1);
    uint32_t topic_length = v2 ? read_short(body + length) : body[length];
    if (topic + topic_length + 2 > end)
        return 0;
    const uint8_t *properties = topic + topic_length + 2;
    if (properties + read_short(properties - 2) != end)
        return 0;
    if (crc && (int32_t)(crc(0, body, (uint64_t)length) & 0x7FFFFFFF) != read_int(at + 8))
        return 0;
    *row = (struct row){
        .position = position,
        .queue_offset = read_long(at + 20),
        .store_timestamp = read_long(store_time),
        .born_timestamp = read_long(at + 40),
        .size = size,
        .queue_id = read_int(at + 12),
        .sys_flag = flags,
        .topic_hash = hash_text(0, topic, topic + topic_length),
    };
    read_properties(row, properties, end, row->topic_hash);
    return size;
}

/*
 * Walks log[begin..end), whose byte 0 is physical offset `base`, into at most `room` rows; crc may be NULL.
 * Returns the number of rows and sets *stopped to the index after the last good record.
 */
int64_t tandem_walk(const uint8_t *log, int64_t begin, int64_t end, int64_t base, crc_function crc, struct row *rows,
                    int64_t room, int64_t *stopped)
{
    int64_t n = 0;
    while (n < room && end - begin >= MIN_SIZE) {
        int32_t size = read_record(&rows[n], log + begin, end - begin, base + begin, crc);
        if (!size)
            break;
        begin += size;
        n++;
    }
    *stopped = begin;
    return n;
}
