/*
 * Consumers of a NATS JetStream pull consumer: each asks for some messages, acknowledges each of them and waits until the
 * server has confirmed that, and asks again.
 *
 *   nats_receive_load --target 127.0.0.1:4222 --stream NAME --consumer NAME [--connections 1] [--items 1]
 *                     [--warm 0.5] [--seconds 2]
 *
 * A message counts when its acknowledgement was confirmed; its latency is that of all of it, from the request on.
 */
#define _GNU_SOURCE
#include "meter.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_SIZE = 1 << 20, OUT_SIZE = 1 << 20, LINE = 512, MOST_EMPTY = 50 };

/* A consumer: a connection with one request at a time. */
struct consumer {
    int fd, number;
    bool waits_for_write;
    uint8_t *in, *out;
    size_t in_length, out_from, out_to;
    uint64_t began;
    unsigned come, confirmed, empty;    /* messages of this request; requests that gave nothing, in a row */
};

static struct meter meter;
static const char *stream, *durable;
static unsigned items = 1;

static void put(struct consumer *c, const char *text, size_t length)
{
    if (c->out_to + length > OUT_SIZE)
        die("no room for what is to be sent");
    memcpy(c->out + c->out_to, text, length);
    c->out_to += length;
}

static void ask(struct consumer *c)
{
    char body[64], line[LINE];
    int size = snprintf(body, sizeof body, "{\"batch\":%u,\"expires\":1000000000}", items);
    int n = snprintf(line, sizeof line, "PUB $JS.API.CONSUMER.MSG.NEXT.%s.%s _INBOX.%04d.m %d\r\n%s\r\n", stream, durable,
                     c->number, size, body);
    put(c, line, (size_t)n);
    c->come = c->confirmed = 0;
    c->began = now_ns();
    meter.outstanding++;
}

static void ask_again(struct consumer *c)
{
    meter.outstanding--;
    if (!meter.closing)
        ask(c);
}

/* The subject that a message is to be acknowledged at is the third word of its line. */
static void acknowledge(struct consumer *c, const char *reply, size_t length)
{
    char line[LINE];
    int n = snprintf(line, sizeof line, "PUB %.*s _INBOX.%04d.a 4\r\n+ACK\r\n", (int)length, reply, c->number);
    put(c, line, (size_t)n);
    c->come++;
}

static void confirmed(struct consumer *c)
{
    meter_ok(&meter, c->began);
    if (meter.measuring)
        meter.rx_messages++;
    c->empty = 0;
    if (++c->confirmed == items)
        ask_again(c);
}

/* A status instead of a message: the request has ended with fewer than it asked for. */
static void ended(struct consumer *c)
{
    if (!meter.closing && ++c->empty > MOST_EMPTY)
        die("nothing is there to be received");
    if (c->confirmed < c->come)
        die("a request ended before its acknowledgements were confirmed");
    ask_again(c);
}

/* "[H]MSG subject sid [reply] [headers] size\r\n…\r\n"; returns its length, or 0 when it is not all there. */
static size_t take_one(struct consumer *c, const uint8_t *data, size_t length)
{
    const uint8_t *end = memmem(data, length, "\r\n", 2);
    if (!end)
        return 0;
    size_t taken = (size_t)(end - data) + 2;
    if (data[0] == '-')
        meter_error(&meter, (const char *)data, taken);
    bool headers = data[0] == 'H';
    if (memcmp(data + headers, "MSG ", 4)) {
        if (!memcmp(data, "PING", 4))
            put(c, "PONG\r\n", 6);
        return taken;
    }
    const char *words[8];
    size_t sizes[8];
    int count = 0;
    for (const char *at = (const char *)data; at < (const char *)end && count < 8; count++) {
        const char *blank = memchr(at, ' ', (size_t)((const char *)end - at));
        words[count] = at;
        sizes[count] = (size_t)((blank ? blank : (const char *)end) - at);
        at = words[count] + sizes[count] + 1;
    }
    size_t body = strtoul(words[count - 1], NULL, 10);
    if (taken + body + 2 > length)
        return 0;
    if (meter.measuring)
        meter.rx_bytes += body;
    bool status = headers && body > 9 && data[taken + 8] == ' ';    /* "NATS/1.0 404 …", not "NATS/1.0\r\n" */
    if (status)
        ended(c);
    else if (words[1][sizes[1] - 1] == 'a')
        confirmed(c);
    else
        acknowledge(c, words[3], sizes[3]);
    return taken + body + 2;
}

static bool take(struct consumer *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_length, IN_SIZE - c->in_length, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    c->in_length += (size_t)n;
    size_t at = 0, taken;
    while ((taken = take_one(c, c->in + at, c->in_length - at)))
        at += taken;
    memmove(c->in, c->in + at, c->in_length - at);
    c->in_length -= at;
    return true;
}

static void flush(struct consumer *c, int poll)
{
    bool full = false;
    while (c->out_from < c->out_to && !full) {
        ssize_t n = send(c->fd, c->out + c->out_from, c->out_to - c->out_from, MSG_NOSIGNAL);
        full = n < 0;
        c->out_from += full ? 0 : (size_t)n;
    }
    if (!full)
        c->out_from = c->out_to = 0;
    if (c->waits_for_write != full) {
        struct epoll_event e = {.events = EPOLLIN | (full ? EPOLLOUT : 0u), .data.ptr = c};
        epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &e);
        c->waits_for_write = full;
    }
}

static void start(struct consumer *c, int number, int poll, const char *target)
{
    char line[LINE];
    c->number = number;
    c->fd = dial(target);
    c->in = malloc(IN_SIZE);
    c->out = malloc(OUT_SIZE);
    if (!c->in || !c->out)
        die("no memory");
    int n = snprintf(line, sizeof line,
                     "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\nSUB _INBOX.%04d.* 1\r\n", number);
    put(c, line, (size_t)n);
    ask(c);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &e);
    flush(c, poll);
}

static const struct option OPTIONS[] = {
    {"target", 1, 0, 't'}, {"stream", 1, 0, 's'}, {"consumer", 1, 0, 'n'}, {"connections", 1, 0, 'c'},
    {"items", 1, 0, 'i'}, {"warm", 1, 0, 'W'}, {"seconds", 1, 0, 'D'}, {0, 0, 0, 0},
};

int main(int argc, char **argv)
{
    const char *target = "";
    unsigned connections = 1;
    double warm = 0.5, seconds = 2;
    for (int o; (o = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (o) {
        case 't': target = optarg; break;
        case 's': stream = optarg; break;
        case 'n': durable = optarg; break;
        case 'c': connections = (unsigned)atoi(optarg); break;
        case 'i': items = (unsigned)atoi(optarg); break;
        case 'W': warm = atof(optarg); break;
        case 'D': seconds = atof(optarg); break;
        default: return 2;
        }
    }
    if (!stream || !durable || !items)
        die("--stream, --consumer or --items is missing");

    int poll = epoll_create1(0);
    struct consumer *all = calloc(connections, sizeof *all);
    meter_init(&meter, warm, seconds);
    for (unsigned i = 0; i < connections; i++)
        start(&all[i], (int)i, poll, target);

    struct epoll_event events[64];
    while (meter_tick(&meter)) {
        int n = epoll_wait(poll, events, 64, 20);
        for (int i = 0; i < n; i++) {
            struct consumer *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !take(c))
                die("the server closed the connection");
            flush(c, poll);
        }
    }
    return meter_report(&meter, 1);
}
