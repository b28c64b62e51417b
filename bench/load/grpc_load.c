/*
 * gRPC load generator on libnghttp2: one thread, any number of connections, no protobuf.
 *
 * The harness writes the encoded request into a file; it is repeated as it is. Three shapes of a call:
 *   unary     each of `streams` slots of a connection makes one call after the other
 *   bidi      each slot holds one stream open and keeps `window` requests in flight on it, one answer each
 *   download  each slot sends one request, leaves its side open and counts what comes until `take` bytes have come;
 *             then it cancels the stream and opens the next
 *   upload    each slot sends `window` requests on one stream, ends it, and awaits the one answer; then the next stream
 *
 *   grpc_load --target 127.0.0.1:10911 --path /pkg.Service/Method --data FILE [--mode unary|bidi|download|upload]
 *             [--connections 1] [--streams 1] [--window 1] [--items 1] [--take 268435456] [--answer BYTES]
 *             [--byte INDEX --value NUMBER] [--counter OFFSET] [--header name:value]...
 *             [--warm 0.5] [--seconds 2]
 *
 * --target may list several servers: connections take turns. --counter: sixteen hex digits of the message from there on
 * are the request's number, for a server that would know it again. Numbers begin at the time, so that no run has those
 * of another one: the server remembers them for a while.
 *
 * Checked of every call: it ends with grpc-status 0 and as many answers as are due, also of those that are still open
 * when the time is over; with --answer, that every answer has so many bytes; with --byte, that this byte of every answer
 * has that value (the status of a SendResponse, say).
 */
#define _GNU_SOURCE
#include "call_headers.h"
#include "meter.h"

#include <errno.h>
#include <getopt.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RING = 8192, OUT_SIZE = 1 << 20, OUT_HIGH = 256 << 10, IN_SIZE = 1 << 20, PREFIX = 5, COUNTER = 16 };
enum mode { UNARY, BIDI, DOWNLOAD, UPLOAD };

struct connection;

/* One slot: the call it is making now. */
struct call {
    struct connection *connection;
    int32_t id;
    size_t offset;               /* how far the present request has been written */
    uint64_t number;             /* of the present request, among all */
    uint64_t sent, answered;     /* messages on this stream */
    uint64_t *sent_at;           /* ring of send times, by message number */
    bool paused;                 /* nghttp2 waits for nghttp2_session_resume_data */
    uint8_t prefix[PREFIX];      /* gRPC's message prefix as far as it has come */
    unsigned prefix_length;
    uint32_t length, left;       /* bytes of the present answer, and those still to come */
    uint64_t taken;              /* bytes received on this stream */
    int status;                  /* grpc-status, -1 until it comes */
};

struct connection {
    int fd;
    bool waits_for_write;
    nghttp2_session *session;
    struct call *calls;
    uint8_t *out;
    size_t out_from, out_to;
};

static struct meter meter;
static enum mode mode = UNARY;
static uint8_t *request;             /* prefix and message */
static size_t request_length;
static unsigned window = 1;
static uint64_t take = 256u << 20;
static long answer_length = -1;     /* of every answer; -1: any */
static long byte_index = -1;        /* of the byte that is looked at in every answer; -1: none */
static unsigned byte_value;
static long counter_at = -1;         /* where each request has a number of its own; -1: nowhere */
static uint64_t requests;
static const char *path;

/* Writes the number of a request into the part of it that lies at `to`. */
static void stamp(const struct call *c, uint8_t *to, size_t part)
{
    static const char DIGITS[] = "0123456789ABCDEF";
    if (counter_at < 0)
        return;
    for (unsigned i = 0; i < COUNTER; i++) {
        size_t at = PREFIX + (size_t)counter_at + i;
        if (at >= c->offset && at < c->offset + part)
            to[at - c->offset] = (uint8_t)DIGITS[c->number >> (4 * (COUNTER - 1 - i)) & 15];
    }
}

static ssize_t next_bytes(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                          nghttp2_data_source *source, void *user)
{
    (void)session, (void)id, (void)user;
    struct call *c = source->ptr;
    size_t n = 0;
    while (n < room) {
        if (c->offset == 0) {
            bool full = mode == DOWNLOAD ? c->sent == 1 : mode == BIDI && c->sent - c->answered >= window;
            if (mode == BIDI && meter.closing) {
                *flags |= NGHTTP2_DATA_FLAG_EOF;
                break;
            }
            if (full && n == 0) {
                c->paused = true;
                return NGHTTP2_ERR_DEFERRED;
            }
            if (full)
                break;
            if (mode != UPLOAD || !c->sent)
                c->sent_at[c->sent % RING] = now_ns();
        }
        size_t part = request_length - c->offset < room - n ? request_length - c->offset : room - n;
        if (c->offset == 0)
            c->number = ++requests;
        memcpy(to + n, request + c->offset, part);
        stamp(c, to + n, part);
        n += part;
        c->offset += part;
        if (c->offset < request_length)
            continue;
        c->offset = 0;
        c->sent++;
        if (mode == UNARY || (mode == UPLOAD && c->sent == window)) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            break;
        }
    }
    return (ssize_t)n;
}

static void start_call(struct call *c)
{
    nghttp2_nv headers[MOST_HEADERS];
    size_t count = call_headers(headers, path);
    const nghttp2_data_provider provider = {.source.ptr = c, .read_callback = next_bytes};
    c->offset = c->sent = c->answered = c->taken = 0;
    c->prefix_length = c->left = 0;
    c->paused = false;
    c->status = -1;
    c->id = nghttp2_submit_request(c->connection->session, NULL, headers, count, &provider, c);
    if (c->id < 0)
        die(nghttp2_strerror(c->id));
    meter.outstanding++;
}

static void message_received(nghttp2_session *session, struct call *c)
{
    if (mode == BIDI) {
        meter_ok(&meter, c->sent_at[c->answered % RING]);
        if (c->paused) {
            c->paused = false;
            nghttp2_session_resume_data(session, c->id);
        }
    }
    c->answered++;
    if (meter.measuring)
        meter.rx_messages++;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length, void *user)
{
    (void)flags, (void)user;
    struct call *c = nghttp2_session_get_stream_user_data(session, id);
    if (!c)
        return 0;
    if (meter.measuring)
        meter.rx_bytes += length;
    c->taken += length;
    while (length) {
        if (c->left) {
            size_t part = c->left < length ? c->left : length, at = c->length - c->left;
            if (byte_index >= (long)at && byte_index < (long)(at + part) && data[(size_t)byte_index - at] != byte_value)
                meter_error(&meter, "an answer says something else", 29);
            c->left -= (uint32_t)part;
            data += part;
            length -= part;
            if (!c->left)
                message_received(session, c);
            continue;
        }
        c->prefix[c->prefix_length++] = *data++;
        length--;
        if (c->prefix_length < PREFIX)
            continue;
        c->prefix_length = 0;
        c->left = (uint32_t)c->prefix[1] << 24 | (uint32_t)c->prefix[2] << 16 | (uint32_t)c->prefix[3] << 8 | c->prefix[4];
        c->length = c->left;
        if (c->prefix[0] || (answer_length >= 0 && c->left != (uint32_t)answer_length))
            meter_error(&meter, "an answer is compressed or has the wrong length", 47);
        if (!c->left)
            message_received(session, c);
    }
    if (mode == DOWNLOAD && (c->taken >= take || meter.closing))
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    (void)flags, (void)user;
    struct call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (c && name_length == 11 && !memcmp(name, "grpc-status", 11))
        c->status = atoi((const char *)value);
    else if (c && name_length == 12 && !memcmp(name, "grpc-message", 12) && value_length)
        meter_error(&meter, (const char *)value, value_length);
    return 0;
}

/* Whether a call that has ended did so as it should: a download by our own cancelling, all others with every answer. */
static bool ended_well(const struct call *c, uint32_t error)
{
    if (mode == DOWNLOAD)
        return error == NGHTTP2_CANCEL && c->status < 0;
    return error == NGHTTP2_NO_ERROR && c->status == 0 && !c->left && !c->prefix_length && !c->offset &&
           c->answered == (mode == BIDI ? c->sent : 1) && (mode != BIDI || meter.closing);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)user;
    struct call *c = nghttp2_session_get_stream_user_data(session, id);
    if (!c)
        return 0;
    meter.outstanding--;
    if (!ended_well(c, error)) {
        char why[120];
        int n = snprintf(why, sizeof why, "call ended: grpc-status %d, HTTP/2 error %u, %lu sent, %lu answered", c->status,
                         error, (unsigned long)c->sent, (unsigned long)c->answered);
        meter_error(&meter, why, (size_t)n);
        if (meter.errors > 1000)
            die("too many errors");
    } else if (mode == UNARY || mode == UPLOAD) {
        meter_ok(&meter, c->sent_at[0]);
    }
    if (!meter.closing)
        start_call(c);
    return 0;
}

static void want_write(struct connection *c, int poll, bool wanted)
{
    if (c->waits_for_write == wanted)
        return;
    struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &e);
    c->waits_for_write = wanted;
}

/* Writes what nghttp2 has ready, in large pieces. Returns false when the connection is gone. */
static bool flush(struct connection *c, int poll)
{
    for (;;) {
        while (c->out_to - c->out_from < OUT_HIGH) {
            const uint8_t *data;
            ssize_t n = nghttp2_session_mem_send(c->session, &data);
            if (n <= 0)
                break;
            if (c->out_to + (size_t)n > OUT_SIZE) {
                memmove(c->out, c->out + c->out_from, c->out_to - c->out_from);
                c->out_to -= c->out_from;
                c->out_from = 0;
            }
            memcpy(c->out + c->out_to, data, (size_t)n);
            c->out_to += (size_t)n;
        }
        if (c->out_from == c->out_to) {
            c->out_from = c->out_to = 0;
            want_write(c, poll, false);
            return true;
        }
        ssize_t n = send(c->fd, c->out + c->out_from, c->out_to - c->out_from, MSG_NOSIGNAL);
        if (n < 0) {
            want_write(c, poll, true);
            return errno == EAGAIN;
        }
        c->out_from += (size_t)n;
    }
}

static bool receive(struct connection *c)
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

static void open_connection(struct connection *c, unsigned streams, int poll, const char *target,
                            nghttp2_session_callbacks *callbacks, nghttp2_option *option)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 16 << 20},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 1 << 20},
    };
    c->fd = dial(target);
    c->out = malloc(OUT_SIZE + OUT_HIGH);
    c->calls = calloc(streams, sizeof *c->calls);
    if (!c->out || !c->calls)
        die("no memory");
    nghttp2_session_client_new2(&c->session, callbacks, c, option);
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 64 << 20);
    for (unsigned i = 0; i < streams; i++) {
        c->calls[i].connection = c;
        c->calls[i].sent_at = calloc(RING, sizeof(uint64_t));
        start_call(&c->calls[i]);
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &e);
    flush(c, poll);
}

static void load_request(const char *file)
{
    size_t length;
    uint8_t *data = read_file(file, &length);
    request_length = length + PREFIX;
    request = malloc(request_length);
    if (!request)
        die("no memory");
    request[0] = 0;
    for (int i = 0; i < 4; i++)
        request[1 + i] = (uint8_t)(length >> (24 - 8 * i));
    memcpy(request + PREFIX, data, length);
    free(data);
}

static const struct option OPTIONS[] = {
    {"target", 1, 0, 't'}, {"path", 1, 0, 'p'}, {"data", 1, 0, 'd'}, {"mode", 1, 0, 'm'}, {"connections", 1, 0, 'c'},
    {"streams", 1, 0, 's'}, {"window", 1, 0, 'w'}, {"items", 1, 0, 'i'}, {"take", 1, 0, 'k'}, {"answer", 1, 0, 'a'},
    {"warm", 1, 0, 'W'}, {"seconds", 1, 0, 'D'}, {"byte", 1, 0, 'b'}, {"value", 1, 0, 'v'},
    {"header", 1, 0, 'H'}, {"counter", 1, 0, 'n'}, {0, 0, 0, 0},
};

static enum mode mode_named(const char *name)
{
    static const char *const NAMES[] = {"unary", "bidi", "download", "upload"};
    for (unsigned i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(name, NAMES[i]))
            return (enum mode)i;
    die("unknown mode");
}

int main(int argc, char **argv)
{
    const char *target = "", *data = "";
    unsigned connections = 1, streams = 1, items = 1;
    double warm = 0.5, seconds = 2;
    for (int o; (o = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (o) {
        case 't': target = optarg; break;
        case 'p': path = optarg; break;
        case 'd': data = optarg; break;
        case 'm': mode = mode_named(optarg); break;
        case 'c': connections = (unsigned)atoi(optarg); break;
        case 's': streams = (unsigned)atoi(optarg); break;
        case 'w': window = (unsigned)atoi(optarg); break;
        case 'i': items = (unsigned)atoi(optarg); break;
        case 'k': take = strtoull(optarg, NULL, 10); break;
        case 'a': answer_length = atol(optarg); break;
        case 'b': byte_index = atol(optarg); break;
        case 'v': byte_value = (unsigned)atoi(optarg); break;
        case 'H': add_header(optarg); break;
        case 'n': counter_at = atol(optarg); break;
        case 'W': warm = atof(optarg); break;
        case 'D': seconds = atof(optarg); break;
        default: return 2;
        }
    }
    if (!path || window > RING / 2)
        die("--path is missing or the window is too large");
    load_request(data);
    if (counter_at >= 0 && PREFIX + (size_t)counter_at + COUNTER > request_length)
        die("--counter lies beyond the request");
    requests = now_ns();

    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_new(&option);
    nghttp2_option_set_peer_max_concurrent_streams(option, 1000);

    int poll = epoll_create1(0);
    struct connection *all = calloc(connections, sizeof *all);
    meter_init(&meter, warm, seconds);
    for (unsigned i = 0; i < connections; i++)
        open_connection(&all[i], streams, poll, target, callbacks, option);

    struct epoll_event events[64];
    bool lost = false;
    while (meter_tick(&meter) && !lost) {
        int n = epoll_wait(poll, events, 64, 20);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            lost |= events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !receive(c);
            lost |= !flush(c, poll);
        }
        if (lost && (!meter.closing || meter.outstanding))
            die("the server closed the connection");
    }
    return meter_report(&meter, items);
}
