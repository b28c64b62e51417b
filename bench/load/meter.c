/* See meter.h. */
#define _GNU_SOURCE
#include "meter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SHOWN_ERRORS = 3 };
static const uint64_t DRAIN_NS = 10000000000ull;

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static double own_cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

void die(const char *what)
{
    if (errno)
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
    else
        fprintf(stderr, "%s\n", what);
    exit(1);
}

void meter_init(struct meter *m, double warm, double run)
{
    memset(m, 0, sizeof *m);
    m->warm_ns = (uint64_t)(warm * 1e9);
    m->run_ns = (uint64_t)(run * 1e9);
    m->capacity = 8u << 20;
    m->latency = malloc(m->capacity * sizeof *m->latency);
    if (!m->latency)
        die("no memory for latencies");
    m->began = now_ns();
}

bool meter_tick(struct meter *m)
{
    uint64_t now = now_ns();
    if (!m->start && now - m->began >= m->warm_ns) {
        m->start = now;
        m->measuring = true;
        m->cpu_at_start = own_cpu();
        puts("START");
        fflush(stdout);
    } else if (m->measuring && now - m->start >= m->run_ns) {
        m->end = now;
        m->measuring = false;
        m->closing = true;
        m->cpu = own_cpu() - m->cpu_at_start;
        puts("END");
        fflush(stdout);
    }
    if (!m->end || (m->outstanding && now - m->end < DRAIN_NS))
        return true;
    if (m->outstanding) {
        char why[60];
        int n = snprintf(why, sizeof why, "%lu requests had no answer", (unsigned long)m->outstanding);
        meter_error(m, why, (size_t)n);
    }
    return false;
}

void meter_ok(struct meter *m, uint64_t sent_at)
{
    if (!m->measuring)
        return;
    m->ok++;
    if (m->latencies < m->capacity) {
        uint64_t took = now_ns() - sent_at;
        m->latency[m->latencies++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
    }
}

void meter_error(struct meter *m, const char *why, size_t length)
{
    if (m->errors++ >= SHOWN_ERRORS)
        return;
    fputs("refused: ", stderr);
    for (size_t i = 0; i < length && i < 300; i++) /* it may be a frame: its text tells why */
        if (why[i] >= ' ' && why[i] <= '~')
            fputc(why[i], stderr);
    fputc('\n', stderr);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(const struct meter *m, double q)
{
    return m->latencies ? m->latency[(size_t)(q * (double)(m->latencies - 1))] / 1e3 : 0.0;
}

int meter_report(struct meter *m, unsigned items)
{
    double seconds = (double)(m->end - m->start) / 1e9;
    qsort(m->latency, m->latencies, sizeof *m->latency, by_value);
    printf("{\"requests\":%lu,\"messages\":%lu,\"errors\":%lu,\"seconds\":%.4f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
           "\"max_us\":%.1f,\"rx_messages\":%lu,\"rx_bytes\":%lu,\"client_cpu\":%.3f}\n",
           (unsigned long)m->ok, (unsigned long)(m->ok * items), (unsigned long)m->errors, seconds, quantile_us(m, .5),
           quantile_us(m, .99), quantile_us(m, 1), (unsigned long)m->rx_messages, (unsigned long)m->rx_bytes, m->cpu);
    return m->errors ? 3 : 0;
}

int dial(const char *targets)
{
    static const char *target;
    const char *comma = target ? strchr(target, ',') : NULL;
    target = comma ? comma + 1 : targets;

    char host[64];
    const char *colon = strchr(target, ':');
    if (!colon || (size_t)(colon - target) >= sizeof host)
        die("target must be host:port");
    memcpy(host, target, (size_t)(colon - target));
    host[colon - target] = 0;

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        die("target host must be a numeric IPv4 address");
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

uint8_t *read_file(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die(path);
    long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size)
        die(path);
    fclose(f);
    *length = (size_t)size;
    return data;
}
