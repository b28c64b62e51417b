/* The headers of a gRPC call on libnghttp2: what every call has, and what --header adds. */
#ifndef TANDEM_BENCH_CALL_HEADERS_H
#define TANDEM_BENCH_CALL_HEADERS_H

#include "meter.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

enum { OWN_HEADERS = 7, MOST_EXTRA = 8, MOST_HEADERS = OWN_HEADERS + MOST_EXTRA };

static nghttp2_nv extra_headers[MOST_EXTRA];
static size_t extras;

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

/* Takes name:value apart, in place. */
static void add_header(char *text)
{
    char *value = strchr(text, ':');
    if (!value || extras == MOST_EXTRA)
        die("a header is name:value, and there are eight at most");
    *value = 0;
    extra_headers[extras++] = header(text, value + 1);
}

/* Puts all of them into `to`, which has room for MOST_HEADERS; gives how many. */
static size_t call_headers(nghttp2_nv *to, const char *path)
{
    const nghttp2_nv own[OWN_HEADERS] = {
        header(":method", "POST"), header(":scheme", "http"), header(":path", path), header(":authority", "localhost"),
        header("content-type", "application/grpc"), header("te", "trailers"), header("user-agent", "tandem-bench"),
    };
    memcpy(to, own, sizeof own);
    memcpy(to + OWN_HEADERS, extra_headers, extras * sizeof *extra_headers);
    return OWN_HEADERS + extras;
}

#endif
