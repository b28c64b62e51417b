/*
 * The least that a gRPC server can do, on libnghttp2: one thread, epoll, constant answers, nothing looked at but the
 * lengths of the messages. It is the limit that the other servers of the group `transport` are compared with.
 *
 *   grpc_echo --port 10911 --small 64 --large 1048576
 *
 * The last part of the path says what a call does; it is the same service as that of bench/peers/echo_server.py:
 *   Get     one small answer at the end of the request      Large   one large answer at the end of the request
 *   Upload  one small answer at the end of all requests     Each    a small answer to every request
 *   Stream  large answers until the call is cancelled
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PREFIX = 5, FRAME_HEAD = 9, IN_SIZE = 256 << 10, OUT_SIZE = 128 << 10, PIECES = 64, EVENTS = 64 };
enum { FRAME = 64 << 10, WINDOW = 16 << 20, COPIED = 4 << 10 /* longer answers are written from where they lie */ };

/* What a method answers with, and when. */
struct method {
    const char *name;
    bool large, each, endless;
};

static const struct method METHODS[] = {
    {"Get", false, false, false},   {"Large", true, false, false}, {"Upload", false, false, false},
    {"Each", false, true, false},   {"Stream", true, true, true},
};

/* One call. */
struct call {
    const struct method *method;
    uint64_t due;                /* answers that may be written by now */
    uint64_t written;            /* answers that are written */
    size_t offset;               /* how far the present answer has been written */
    size_t from;                 /* where in it the frame begins that is written without copying */
    bool begun, ended, paused;   /* response submitted; request over; nghttp2 waits for resume_data */
    uint8_t prefix[PREFIX];      /* of the present request, as far as it has come */
    unsigned prefix_length;
    uint32_t left;               /* bytes of the present request still to come */
};

/* What nghttp2 has written and the socket has not taken yet: pieces, of `bytes` or of a constant answer. */
struct output {
    struct output *next;         /* in the list of unused ones */
    unsigned from, to;           /* the pieces that are left */
    size_t used;                 /* of bytes */
    struct iovec pieces[PIECES];
    uint8_t bytes[OUT_SIZE];
};

struct connection {
    int fd;
    bool waits_for_write;
    nghttp2_session *session;
    struct output *output;       /* only while there is something to write: idle connections are many */
};

/* A message with its prefix. */
struct answer {
    uint8_t *bytes;
    size_t length;
};

static struct answer small, large;
static int epoll;
static struct output *unused;

static void fail(const char *what)
{
    fprintf(stderr, "grpc_echo: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        fail("no memory");
    return memory;
}

static struct answer make_answer(size_t length)
{
    struct answer made = {allocate(length + PREFIX), length + PREFIX};
    for (int i = 0; i < 4; i++)
        made.bytes[1 + i] = (uint8_t)(length >> (24 - 8 * i));
    memset(made.bytes + PREFIX, 'x', length);
    return made;
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static ssize_t next_bytes(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                          nghttp2_data_source *source, void *user)
{
    (void)user;
    struct call *c = source->ptr;
    const struct answer *answer = c->method->large ? &large : &small;
    bool copied = answer->length <= COPIED;
    size_t n = 0;
    c->from = c->offset;
    while (n < room && (copied || !n) && (c->written < c->due || c->method->endless)) {
        size_t part = answer->length - c->offset < room - n ? answer->length - c->offset : room - n;
        if (copied)
            memcpy(to + n, answer->bytes + c->offset, part);
        else
            *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        n += part;
        c->offset += part;
        if (c->offset == answer->length) {
            c->offset = 0;
            c->written++;
        }
    }
    if (c->ended && c->written == c->due && !c->method->endless) {
        const nghttp2_nv trailers[] = {header("grpc-status", "0")};
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, trailers, 1);
    } else if (!n) {
        c->paused = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

/* Answers are due: begins the response, or goes on with it. */
static void answer(nghttp2_session *session, int32_t id, struct call *c)
{
    if (!c->begun) {
        const nghttp2_nv headers[] = {header(":status", "200"), header("content-type", "application/grpc")};
        const nghttp2_data_provider provider = {.source.ptr = c, .read_callback = next_bytes};
        c->begun = true;
        nghttp2_submit_response(session, id, headers, 2, &provider);
    } else if (c->paused) {
        c->paused = false;
        nghttp2_session_resume_data(session, id);
    }
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct call *c = allocate(sizeof *c);
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, c);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    (void)flags, (void)user, (void)value_length;
    struct call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!c || name_length != 5 || memcmp(name, ":path", 5))
        return 0;
    const char *slash = strrchr((const char *)value, '/');
    for (unsigned i = 0; slash && i < sizeof METHODS / sizeof *METHODS; i++)
        if (!strcmp(slash + 1, METHODS[i].name))
            c->method = &METHODS[i];
    return c->method ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length, void *user)
{
    (void)flags, (void)user;
    struct call *c = nghttp2_session_get_stream_user_data(session, id);
    if (!c)
        return 0;
    uint64_t due = c->due;
    while (length) {
        size_t part;
        if (c->prefix_length < PREFIX) {
            part = PREFIX - c->prefix_length < length ? PREFIX - c->prefix_length : length;
            memcpy(c->prefix + c->prefix_length, data, part);
            c->prefix_length += (unsigned)part;
            if (c->prefix_length == PREFIX)
                c->left = (uint32_t)c->prefix[1] << 24 | (uint32_t)c->prefix[2] << 16 | (uint32_t)c->prefix[3] << 8 |
                          c->prefix[4];
        } else {
            part = c->left < length ? c->left : length;
            c->left -= (uint32_t)part;
        }
        data += part;
        length -= part;
        if (c->prefix_length == PREFIX && !c->left) {
            c->prefix_length = 0;
            c->due += c->method->each;
        }
    }
    if (c->due > due)
        answer(session, id, c);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return 0;
    struct call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!c || !c->method)
        return 0;
    c->ended = true;
    c->due += !c->method->each;
    answer(session, frame->hd.stream_id, c);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)error, (void)user;
    free(nghttp2_session_get_stream_user_data(session, id));
    nghttp2_session_set_stream_user_data(session, id, NULL);
    return 0;
}

/* Frames of 64 KiB where the peer takes them, as bulk wants it. */
static ssize_t frame_length(nghttp2_session *session, uint8_t type, int32_t id, int32_t connection_window,
                            int32_t stream_window, uint32_t frame_max, void *user)
{
    (void)session, (void)type, (void)id, (void)user;
    int32_t length = connection_window < stream_window ? connection_window : stream_window;
    length = length < FRAME ? length : FRAME;
    return length < (int32_t)frame_max ? length : (int32_t)frame_max;
}

static void want_write(struct connection *c, bool wanted)
{
    if (c->waits_for_write == wanted)
        return;
    struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->waits_for_write = wanted;
}

static void put_piece(struct output *o, const void *bytes, size_t length)
{
    o->pieces[o->to++] = (struct iovec){(void *)bytes, length};
}

static void put_copy(struct output *o, const uint8_t *bytes, size_t length)
{
    uint8_t *to = o->bytes + o->used;
    memcpy(to, bytes, length);
    o->used += length;
    struct iovec *last = o->to > o->from ? &o->pieces[o->to - 1] : NULL;
    if (last && (uint8_t *)last->iov_base + last->iov_len == to)
        last->iov_len += length;
    else
        put_piece(o, to, length);
}

static bool has_room(const struct output *o)
{
    return o->used + FRAME + 1024 < OUT_SIZE && o->to + 3 < PIECES;
}

/* A frame of a large answer: its head, and the bytes where they lie. */
static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t length,
                        nghttp2_data_source *source, void *user)
{
    (void)session, (void)frame;
    struct connection *c = user;
    const struct call *call = source->ptr;
    if (!has_room(c->output))
        return NGHTTP2_ERR_WOULDBLOCK; /* it is called again with the same frame */
    put_copy(c->output, head, FRAME_HEAD);
    put_piece(c->output, large.bytes + call->from, length);
    return 0;
}

/* Asks nghttp2 for frames until there are enough for one write. False when it fails. */
static bool gather(struct connection *c)
{
    while (has_room(c->output)) {
        const uint8_t *data;
        unsigned before = c->output->to;
        ssize_t n = nghttp2_session_mem_send(c->session, &data);
        if (n < 0)
            return false;
        if (n)
            put_copy(c->output, data, (size_t)n);
        else if (c->output->to == before)
            break;
    }
    return true;
}

static bool write_pieces(struct connection *c)
{
    struct output *o = c->output;
    struct msghdr message = {.msg_iov = o->pieces + o->from, .msg_iovlen = o->to - o->from};
    ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
    if (n < 0)
        return false;
    for (size_t left = (size_t)n; left;) {
        struct iovec *piece = &o->pieces[o->from];
        size_t part = piece->iov_len < left ? piece->iov_len : left;
        piece->iov_base = (uint8_t *)piece->iov_base + part;
        piece->iov_len -= part;
        left -= part;
        o->from += !piece->iov_len;
    }
    if (o->from == o->to)
        o->from = o->to = 0, o->used = 0;
    return true;
}

static void take_output(struct connection *c)
{
    if (c->output)
        return;
    c->output = unused ? unused : allocate(sizeof *c->output);
    unused = c->output->next;
}

static void give_output(struct connection *c)
{
    c->output->from = c->output->to = 0;
    c->output->used = 0;
    c->output->next = unused;
    unused = c->output;
    c->output = NULL;
}

/* Writes what nghttp2 has ready, gathered; what the socket does not take waits. False when the connection is gone. */
static bool flush(struct connection *c)
{
    take_output(c);
    for (;;) {
        if (!gather(c))
            return false;
        if (c->output->from == c->output->to) {
            give_output(c);
            want_write(c, false);
            return true;
        }
        if (!write_pieces(c)) {
            want_write(c, true);
            return errno == EAGAIN;
        }
    }
}

static bool receive(struct connection *c)
{
    static uint8_t data[IN_SIZE];
    ssize_t n = recv(c->fd, data, sizeof data, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    return nghttp2_session_mem_recv(c->session, data, (size_t)n) >= 0;
}

static void drop(struct connection *c)
{
    close(c->fd);
    if (c->output)
        give_output(c);
    nghttp2_session_del(c->session); /* frees no stream data of open calls: a server for benchmarks may lose that */
    free(c);
}

static void greet(int listener, const nghttp2_session_callbacks *callbacks)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 10000},
    };
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = allocate(sizeof *c);
    c->fd = fd;
    nghttp2_session_server_new(&c->session, callbacks, c);
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 4 * WINDOW);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
    if (!flush(c))
        drop(c);
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1024))
        fail("cannot listen");
    return fd;
}

static void serve(int listener, const nghttp2_session_callbacks *callbacks)
{
    struct epoll_event events[EVENTS], e = {.events = EPOLLIN, .data.ptr = NULL};
    epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) {
                greet(listener, callbacks);
                continue;
            }
            bool alive = !(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || receive(c);
            if (!alive || !flush(c))
                drop(c);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option OPTIONS[] = {{"port", 1, 0, 'p'}, {"small", 1, 0, 's'}, {"large", 1, 0, 'l'}, {0, 0, 0, 0}};
    int port = 0;
    size_t small_length = 64, large_length = 1 << 20;
    for (int o; (o = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (o) {
        case 'p': port = atoi(optarg); break;
        case 's': small_length = strtoul(optarg, NULL, 10); break;
        case 'l': large_length = strtoul(optarg, NULL, 10); break;
        default: return 2;
        }
    }
    small = make_answer(small_length);
    large = make_answer(large_length);

    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
    serve(listen_on((uint16_t)port), callbacks);
}
