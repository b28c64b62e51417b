/*
 * Consumers over gRPC on libnghttp2: each receives messages, acknowledges all of them in one call, and receives again.
 *
 * No protobuf library: the harness writes the encoded receive request, and the beginning of the acknowledgement (group
 * and topic). Handles are found by their field numbers in the answers, unary or streamed, and put into the
 * acknowledgement behind its beginning.
 *
 *   receive_load --target 127.0.0.1:8081 --receive-path /a.S/Receive --receive FILE --ack-path /a.S/Acknowledge --ack FILE
 *                --handle 1.3 --entry 3 [--outcome BYTES] [--connections 1] [--header name:value]...
 *                [--items 1] [--warm 0.5] [--seconds 2]
 *
 * --handle: field numbers from an answer down to a handle. --entry: from an acknowledgement down to it, one or two.
 * --outcome: an acknowledgement's answer has so many bytes for each handle; any other length is an error. A message counts
 * when its acknowledgement has ended with grpc-status 0; its latency is that of both calls.
 */
#define _GNU_SOURCE
#include "call_headers.h"
#include "meter.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_SIZE = 1 << 20, OUT_HIGH = 64 << 10, PREFIX = 5, DEPTH = 4, MOST_EMPTY = 50 };

struct bytes {
    uint8_t *data;
    size_t length, room;
};

/* A consumer: a connection with one call at a time. */
struct consumer {
    int fd;
    bool waits_for_write, acknowledging;
    nghttp2_session *session;
    struct bytes out;           /* frames on their way */
    size_t out_from;
    struct bytes request, answer;
    size_t offset;              /* how far the request has been written */
    uint64_t began;             /* the receive */
    unsigned handles, empty;    /* in the present round; receives that gave nothing, in a row */
    int status;                 /* grpc-status, -1 until it comes */
};

static struct meter meter;
static struct bytes receive_request, ack_beginning;
static const char *receive_path, *ack_path;
static unsigned handle_path[DEPTH], handle_depth, entry_path[DEPTH], entry_depth;
static long outcome = -1;

static void add(struct bytes *to, const void *data, size_t length)
{
    if (to->length + length > to->room) {
        to->room = 2 * (to->length + length);
        to->data = realloc(to->data, to->room);
        if (!to->data)
            die("no memory");
    }
    if (length)
        memcpy(to->data + to->length, data, length);
    to->length += length;
}

static void add_varint(struct bytes *to, uint64_t number)
{
    do {
        uint8_t byte = (uint8_t)(number & 0x7f) | (number > 0x7f ? 0x80 : 0);
        add(to, &byte, 1);
    } while (number >>= 7);
}

static unsigned varint_size(uint64_t number)
{
    unsigned n = 1;
    while (number >>= 7)
        n++;
    return n;
}

static bool varint(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static void add_handle(struct consumer *c, const uint8_t *data, size_t length)
{
    c->handles++;
    add_varint(&c->request, entry_path[0] << 3 | 2);
    if (entry_depth == 2) {
        add_varint(&c->request, length + varint_size(length) + varint_size(entry_path[1] << 3));
        add_varint(&c->request, entry_path[1] << 3 | 2);
    }
    add_varint(&c->request, length);
    add(&c->request, data, length);
}

/* Finds the handles of one message of the answer. */
static void find_handles(struct consumer *c, const uint8_t *at, const uint8_t *end, unsigned depth)
{
    while (at < end) {
        uint64_t tag, length = 0;
        if (!varint(&at, end, &tag))
            die("an answer cannot be read");
        switch (tag & 7) {
        case 0: varint(&at, end, &length); continue;
        case 1: at += 8; continue;
        case 5: at += 4; continue;
        case 2: break;
        default: die("an answer cannot be read");
        }
        if (!varint(&at, end, &length) || length > (uint64_t)(end - at))
            die("an answer cannot be read");
        if (tag >> 3 == handle_path[depth]) {
            if (depth + 1 == handle_depth)
                add_handle(c, at, length);
            else
                find_handles(c, at, at + length, depth + 1);
        }
        at += length;
    }
}

static ssize_t next_bytes(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                          nghttp2_data_source *source, void *user)
{
    (void)session, (void)id, (void)user;
    struct consumer *c = source->ptr;
    size_t left = c->request.length - c->offset, n = left < room ? left : room;
    memcpy(to, c->request.data + c->offset, n);
    c->offset += n;
    if (c->offset == c->request.length)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void call(struct consumer *c, const char *path)
{
    nghttp2_nv headers[MOST_HEADERS];
    size_t count = call_headers(headers, path);
    uint32_t length = (uint32_t)(c->request.length - PREFIX);
    for (int i = 0; i < 4; i++)
        c->request.data[1 + i] = (uint8_t)(length >> (24 - 8 * i));
    const nghttp2_data_provider provider = {.source.ptr = c, .read_callback = next_bytes};
    c->offset = c->answer.length = 0;
    c->status = -1;
    int32_t id = nghttp2_submit_request(c->session, NULL, headers, count, &provider, c);
    if (id < 0)
        die(nghttp2_strerror(id));
    meter.outstanding++;
}

static void begin(struct consumer *c, const struct bytes *with, bool acknowledging)
{
    static const uint8_t none[PREFIX];
    c->acknowledging = acknowledging;
    c->request.length = 0;
    add(&c->request, none, PREFIX);
    add(&c->request, with->data, with->length);
}

static void receive_again(struct consumer *c)
{
    begin(c, &receive_request, false);
    c->began = now_ns();
    call(c, receive_path);
}

/* The answers of a receive have come: acknowledge what is in them. */
static void received(struct consumer *c)
{
    begin(c, &ack_beginning, true);
    c->handles = 0;
    for (size_t at = 0; at + PREFIX <= c->answer.length;) {
        const uint8_t *p = c->answer.data + at;
        size_t length = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (p[0] || at + PREFIX + length > c->answer.length)
            die("an answer is compressed or not whole");
        find_handles(c, p + PREFIX, p + PREFIX + length, 0);
        at += PREFIX + length;
    }
    if (c->handles) {
        c->empty = 0;
        call(c, ack_path);
    } else if (++c->empty > MOST_EMPTY) {
        die("nothing is there to be received");
    } else if (!meter.closing) {
        receive_again(c);
    }
}

static void acknowledged(struct consumer *c)
{
    if (outcome >= 0 && c->answer.length != PREFIX + (size_t)outcome * c->handles)
        meter_error(&meter, "an acknowledgement was refused", 30);
    for (unsigned i = 0; i < c->handles; i++)
        meter_ok(&meter, c->began);
    if (meter.measuring)
        meter.rx_messages += c->handles;
    if (!meter.closing)
        receive_again(c);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length, void *user)
{
    (void)flags, (void)user;
    struct consumer *c = nghttp2_session_get_stream_user_data(session, id);
    if (c)
        add(&c->answer, data, length);
    if (meter.measuring)
        meter.rx_bytes += length;
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    (void)flags, (void)user;
    struct consumer *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (c && name_length == 11 && !memcmp(name, "grpc-status", 11))
        c->status = atoi((const char *)value);
    else if (c && name_length == 12 && !memcmp(name, "grpc-message", 12) && value_length)
        meter_error(&meter, (const char *)value, value_length);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)user;
    struct consumer *c = nghttp2_session_get_stream_user_data(session, id);
    if (!c)
        return 0;
    meter.outstanding--;
    if (error != NGHTTP2_NO_ERROR || c->status != 0) {
        char why[80];
        int n = snprintf(why, sizeof why, "call ended: grpc-status %d, HTTP/2 error %u", c->status, error);
        meter_error(&meter, why, (size_t)n);
        die("a call failed");
    }
    if (c->acknowledging)
        acknowledged(c);
    else
        received(c);
    return 0;
}

static void want_write(struct consumer *c, int poll, bool wanted)
{
    if (c->waits_for_write == wanted)
        return;
    struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &e);
    c->waits_for_write = wanted;
}

/* Writes what nghttp2 has ready: the frames of a request together, as gRPC's own clients write them, and as
 * nats_receive_load writes its commands. Returns false when the connection is gone. */
static bool flush(struct consumer *c, int poll)
{
    for (;;) {
        while (c->out.length - c->out_from < OUT_HIGH) {
            const uint8_t *data;
            ssize_t n = nghttp2_session_mem_send(c->session, &data);
            if (n < 0)
                return false;
            if (!n)
                break;
            add(&c->out, data, (size_t)n);
        }
        if (c->out_from == c->out.length) {
            c->out_from = c->out.length = 0;
            want_write(c, poll, false);
            return true;
        }
        ssize_t n = send(c->fd, c->out.data + c->out_from, c->out.length - c->out_from, MSG_NOSIGNAL);
        if (n < 0) {
            want_write(c, poll, true);
            return errno == EAGAIN;
        }
        c->out_from += (size_t)n;
    }
}

static bool take(struct consumer *c)
{
    static uint8_t data[IN_SIZE];
    ssize_t n = recv(c->fd, data, sizeof data, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    ssize_t taken = nghttp2_session_mem_recv(c->session, data, (size_t)n);
    if (taken < 0)
        die(nghttp2_strerror((int)taken));
    return true;
}

static void start(struct consumer *c, int poll, const char *target, nghttp2_session_callbacks *callbacks)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 16 << 20},
    };
    c->fd = dial(target);
    nghttp2_session_client_new(&c->session, callbacks, c);
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 64 << 20);
    receive_again(c);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &e);
    flush(c, poll);
}

static unsigned fields(const char *text, unsigned *path)
{
    unsigned depth = 0;
    for (char *end; depth < DEPTH; text = end + 1) {
        path[depth++] = (unsigned)strtoul(text, &end, 10);
        if (*end != '.')
            return depth;
    }
    die("too many field numbers");
}

static struct bytes file(const char *path)
{
    struct bytes read = {0};
    read.data = read_file(path, &read.length);
    return read;
}

static const struct option OPTIONS[] = {
    {"target", 1, 0, 't'}, {"receive-path", 1, 0, 'p'}, {"receive", 1, 0, 'r'}, {"ack-path", 1, 0, 'q'},
    {"ack", 1, 0, 'a'}, {"handle", 1, 0, 'h'}, {"entry", 1, 0, 'e'}, {"outcome", 1, 0, 'o'}, {"connections", 1, 0, 'c'},
    {"header", 1, 0, 'H'}, {"items", 1, 0, 'i'}, {"warm", 1, 0, 'W'}, {"seconds", 1, 0, 'D'}, {0, 0, 0, 0},
};

int main(int argc, char **argv)
{
    const char *target = "";
    unsigned connections = 1;
    double warm = 0.5, seconds = 2;
    for (int o; (o = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (o) {
        case 't': target = optarg; break;
        case 'p': receive_path = optarg; break;
        case 'r': receive_request = file(optarg); break;
        case 'q': ack_path = optarg; break;
        case 'a': ack_beginning = file(optarg); break;
        case 'h': handle_depth = fields(optarg, handle_path); break;
        case 'e': entry_depth = fields(optarg, entry_path); break;
        case 'o': outcome = atol(optarg); break;
        case 'c': connections = (unsigned)atoi(optarg); break;
        case 'H': add_header(optarg); break;
        case 'i': break; /* each message counts by itself */
        case 'W': warm = atof(optarg); break;
        case 'D': seconds = atof(optarg); break;
        default: return 2;
        }
    }
    if (!receive_path || !ack_path || !handle_depth || !entry_depth || entry_depth > 2)
        die("--receive-path, --ack-path, --handle or --entry is missing");

    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);

    int poll = epoll_create1(0);
    struct consumer *all = calloc(connections, sizeof *all);
    meter_init(&meter, warm, seconds);
    for (unsigned i = 0; i < connections; i++)
        start(&all[i], poll, target, callbacks);

    struct epoll_event events[64];
    while (meter_tick(&meter)) {
        int n = epoll_wait(poll, events, 64, 20);
        for (int i = 0; i < n; i++) {
            struct consumer *c = events[i].data.ptr;
            bool there = !(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || take(c);
            if ((!there || !flush(c, poll)) && (!meter.closing || meter.outstanding))
                die("the server closed the connection");
        }
    }
    return meter_report(&meter, 1);
}
