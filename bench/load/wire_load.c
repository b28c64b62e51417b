/*
 * Load generator for three plain TCP protocols: RocketMQ remoting, RESP (Redis) and NATS JetStream.
 *
 * The harness writes the request as it goes over the wire into a file. We repeat it and change only the markers in it:
 *   SSSSSSSS  the running number of the request on its connection, 8 digits (RocketMQ's opaque, NATS's reply subject)
 *   CCCC      the number of the connection, 4 digits (NATS's inbox)
 * Each connection keeps `window` requests in flight. An optional preamble is sent once after connecting.
 *
 *   wire_load --protocol remoting|resp|nats --target 127.0.0.1:10911 --data FILE [--preamble FILE]
 *             [--connections 1] [--window 1] [--items 1] [--replies 1] [--warm 0.5] [--seconds 2]
 *
 * --items    messages in one request (for the count of messages)
 * --replies  answers to one request (RESP: a pipeline of 64 commands is one request with 64 answers)
 */
#define _GNU_SOURCE
#include "meter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RING = 4096, OUT_SIZE = 4 << 20, IN_SIZE = 1 << 20 };

struct connection {
    int fd, number;
    bool waits_for_write;
    uint32_t sent, answered;        /* requests; answered is the next expected one where answers come in order */
    unsigned outstanding, partial;  /* requests in flight; answers seen of the oldest one */
    uint64_t sent_at[RING];         /* by number of the request; 0: not in flight */
    uint8_t *out, *in;
    size_t out_from, out_to, in_length;
};

/* One answer found in the input. */
struct answer {
    bool counts;            /* false: chatter such as PING or INFO */
    bool ok, has_number;
    uint32_t number;        /* which request it answers, where the protocol says so */
};

/* Finds one answer at data; returns its length, or 0 when it is not all there yet. */
typedef size_t (*parser)(const uint8_t *data, size_t length, struct answer *answer);

static struct meter meter;
static uint8_t *frame;
static size_t frame_length;
static long number_at = -1, connection_at = -1;
static unsigned window = 1, replies = 1;

static uint32_t digits(const uint8_t *at, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count && at[i] >= '0' && at[i] <= '9'; i++)
        value = value * 10 + (at[i] - '0');
    return value;
}

static void put_digits(uint8_t *at, uint32_t value, int count)
{
    for (int i = count - 1; i >= 0; i--, value /= 10)
        at[i] = (uint8_t)('0' + value % 10);
}

/* Remoting: int32 length of the rest, int32 header length (upper byte: serialisation), JSON header, body. */
static size_t parse_remoting(const uint8_t *data, size_t length, struct answer *answer)
{
    uint32_t total, header;
    if (length < 8)
        return 0;
    memcpy(&total, data, 4);
    memcpy(&header, data + 4, 4);
    total = ntohl(total);
    header = ntohl(header) & 0xFFFFFF;
    if (length < 4 + (size_t)total)
        return 0;
    const uint8_t *code = memmem(data + 8, header, "\"code\":", 7);
    const uint8_t *opaque = memmem(data + 8, header, "\"opaque\":1", 10);
    answer->counts = true;
    answer->ok = code && code[7] == '0';
    answer->has_number = opaque != NULL;
    if (opaque)
        answer->number = digits(opaque + 10, 8);
    return 4 + (size_t)total;
}

/* RESP: "$15\r\n1700000000000-0\r\n" for an accepted XADD, "-ERR ...\r\n" for a refused one; answers come in order. */
static size_t parse_resp(const uint8_t *data, size_t length, struct answer *answer)
{
    const uint8_t *end = memmem(data, length, "\r\n", 2);
    if (!end)
        return 0;
    size_t taken = (size_t)(end - data) + 2;
    answer->counts = true;
    answer->ok = data[0] != '-';
    if (data[0] == '$') {
        taken += digits(data + 1, 10) + 2;
        if (taken > length)
            return 0;
    }
    return taken;
}

/* NATS: "MSG _INBOX.CCCC.SSSSSSSS sid size\r\n{json}\r\n"; INFO, PING, PONG and +OK are chatter. */
static size_t parse_nats(const uint8_t *data, size_t length, struct answer *answer)
{
    const uint8_t *end = memmem(data, length, "\r\n", 2);
    if (!end)
        return 0;
    size_t taken = (size_t)(end - data) + 2;
    if (data[0] == '-') {
        answer->counts = true;
        return taken;
    }
    if (taken < 8 || memcmp(data, "MSG ", 4))
        return taken;
    const uint8_t *size = memrchr(data, ' ', (size_t)(end - data));
    const uint8_t *blank = memchr(data + 4, ' ', (size_t)(end - data) - 4);
    size_t body = digits(size + 1, 10);
    if (taken + body + 2 > length)
        return 0;
    answer->counts = answer->has_number = true;
    answer->number = digits(blank - 8, 8);
    answer->ok = !memmem(data + taken, body, "\"error\"", 7);
    return taken + body + 2;
}

static void fill(struct connection *c)
{
    while (!meter.closing && c->outstanding < window) {
        if (c->out_to + frame_length > OUT_SIZE) {
            memmove(c->out, c->out + c->out_from, c->out_to - c->out_from);
            c->out_to -= c->out_from;
            c->out_from = 0;
            if (c->out_to + frame_length > OUT_SIZE)
                return;
        }
        uint8_t *at = c->out + c->out_to;
        memcpy(at, frame, frame_length);
        if (number_at >= 0)
            put_digits(at + number_at, c->sent % 100000000, 8);
        if (connection_at >= 0)
            put_digits(at + connection_at, (uint32_t)c->number, 4);
        c->sent_at[c->sent++ % RING] = now_ns();
        c->out_to += frame_length;
        c->outstanding++;
        meter.outstanding++;
    }
}

static void want_write(struct connection *c, int poll, bool wanted)
{
    if (c->waits_for_write == wanted)
        return;
    struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &e);
    c->waits_for_write = wanted;
}

static void flush(struct connection *c, int poll)
{
    while (c->out_from < c->out_to) {
        ssize_t n = send(c->fd, c->out + c->out_from, c->out_to - c->out_from, MSG_NOSIGNAL);
        if (n < 0) {
            want_write(c, poll, true);
            return;
        }
        c->out_from += (size_t)n;
    }
    c->out_from = c->out_to = 0;
    want_write(c, poll, false);
}

/* Reads what is there and books every whole answer. Returns false when the server has closed the connection. */
static bool receive(struct connection *c, parser parse)
{
    ssize_t n = recv(c->fd, c->in + c->in_length, IN_SIZE - c->in_length, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    c->in_length += (size_t)n;
    size_t at = 0, taken;
    do {
        struct answer answer = {0};
        taken = parse(c->in + at, c->in_length - at, &answer);
        if (taken && answer.counts) {
            bool whole = ++c->partial == replies;
            uint64_t *sent_at = &c->sent_at[(answer.has_number ? answer.number : c->answered) % RING];
            if (!*sent_at)
                die("an answer to nothing, or a second one");
            if (!answer.ok)
                meter_error(&meter, (const char *)c->in + at, taken);
            else if (whole)
                meter_ok(&meter, *sent_at);
            if (whole) {
                *sent_at = 0;
                c->partial = 0;
                c->outstanding--;
                meter.outstanding--;
                c->answered++;
            }
        }
        at += taken;
    } while (taken);
    memmove(c->in, c->in + at, c->in_length - at);
    c->in_length -= at;
    return true;
}

static void open_connection(struct connection *c, int number, int poll, const char *target, const char *preamble)
{
    c->number = number;
    c->fd = dial(target);
    c->out = malloc(OUT_SIZE);
    c->in = malloc(IN_SIZE);
    if (!c->out || !c->in)
        die("no memory");
    if (preamble) {
        size_t length;
        uint8_t *data = read_file(preamble, &length), *marker = memmem(data, length, "CCCC", 4);
        if (marker)
            put_digits(marker, (uint32_t)number, 4);
        memcpy(c->out, data, length);
        c->out_to = length;
        free(data);
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &e);
    fill(c);
    flush(c, poll);
}

static void load_frame(const char *path)
{
    frame = read_file(path, &frame_length);
    if (frame_length > OUT_SIZE / 2)
        die("request too large");
    uint8_t *number = memmem(frame, frame_length, "SSSSSSSS", 8), *connection = memmem(frame, frame_length, "CCCC", 4);
    number_at = number ? number - frame : -1;
    connection_at = connection ? connection - frame : -1;
}

static const struct option OPTIONS[] = {
    {"protocol", 1, 0, 'p'}, {"target", 1, 0, 't'}, {"data", 1, 0, 'd'},  {"preamble", 1, 0, 'P'},
    {"connections", 1, 0, 'c'}, {"window", 1, 0, 'w'}, {"items", 1, 0, 'i'}, {"replies", 1, 0, 'r'},
    {"warm", 1, 0, 'W'}, {"seconds", 1, 0, 'D'}, {0, 0, 0, 0},
};

int main(int argc, char **argv)
{
    const char *protocol = "", *target = "", *data = "", *preamble = NULL;
    unsigned connections = 1, items = 1;
    double warm = 0.5, seconds = 2;
    for (int o; (o = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (o) {
        case 'p': protocol = optarg; break;
        case 't': target = optarg; break;
        case 'd': data = optarg; break;
        case 'P': preamble = optarg; break;
        case 'c': connections = (unsigned)atoi(optarg); break;
        case 'w': window = (unsigned)atoi(optarg); break;
        case 'i': items = (unsigned)atoi(optarg); break;
        case 'r': replies = (unsigned)atoi(optarg); break;
        case 'W': warm = atof(optarg); break;
        case 'D': seconds = atof(optarg); break;
        default: return 2;
        }
    }
    parser parse = !strcmp(protocol, "remoting") ? parse_remoting
                   : !strcmp(protocol, "resp")   ? parse_resp
                   : !strcmp(protocol, "nats")   ? parse_nats
                                                 : NULL;
    if (!parse || window > RING / 2)
        die("unknown protocol or window too large");
    load_frame(data);

    int poll = epoll_create1(0);
    struct connection *all = calloc(connections, sizeof *all);
    meter_init(&meter, warm, seconds);
    for (unsigned i = 0; i < connections; i++)
        open_connection(&all[i], (int)i, poll, target, preamble);

    struct epoll_event events[64];
    while (meter_tick(&meter)) {
        int n = epoll_wait(poll, events, 64, 20);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !receive(c, parse))
                die("the server closed the connection");
            fill(c);
            flush(c, poll);
        }
    }
    return meter_report(&meter, items);
}
