/* Texts, numbers and constants: error texts, reasons, version, clock, control block, last error. */
#include "common.h"

#include <pthread.h>
#include <string.h>

static void errors(void)
{
    static const int limits[][2] = {
        { -2, 1 }, { 999, 1006 }, { 2000, 2003 }, { 3000, 3004 }, { 4000, 4005 },
        { 5000, 5016 }, { 6000, 6006 }, { 7000, 7001 },
    };
    for (int i = 0; i < COUNT(limits); i++)
        for (int code = limits[i][0]; code <= limits[i][1]; code++)
            value("srt_strerror", say("%d", code), "%s", srt_strerror(code, 0));
    value("srt_strerror", "5003 with errno 2", "%s", srt_strerror(5003, 2));
    value("srt_strerror", "1003 with errno 98", "%s", srt_strerror(1003, 98));
}

static void reasons(void)
{
    static const int others[] = { -1, 18, 19, 100, 999, 1000, 1001, 1002, 1400, 1403, 1999, 2000,
                                  3000 };
    for (int i = 0; i < 18; i++)
        value("srt_rejectreason_str", say("%d", i), "%s", srt_rejectreason_str(i));
    for (int i = 0; i < COUNT(others); i++)
        value("srt_rejectreason_str", say("%d", others[i]), "%s",
              srt_rejectreason_str(others[i]));
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    for (int i = 0; i < 17; i++)
        value("srt_rejectreason_msg", say("%d", i), "%s", srt_rejectreason_msg[i]);
}

static const char *control_text(const SRT_MSGCTRL *control)
{
    return say("%d %d %d %d %lld %d %d %s %zu", control->flags, control->msgttl,
               control->inorder, control->boundary, (long long)control->srctime, control->pktseq,
               control->msgno, control->grpdata == NULL ? "NULL" : "set",
               control->grpdata_size);
}

static void constants(void)
{
    SRT_MSGCTRL control;
    memset(&control, 0x5a, sizeof control);
    srt_msgctrl_init(&control);
    value("srt_msgctrl_init", "fields", "%s", control_text(&control));
    value("srt_msgctrl_default", "fields", "%s", control_text(&srt_msgctrl_default));
    value("srt_getversion", "-", "%#x", srt_getversion());
    value("srt_clock_type", "-", "%d", srt_clock_type());
    int64_t first = srt_time_now();
    pause_ms(20);
    int64_t later = srt_time_now() - first;
    value("srt_time_now", "after 20 ms", "%s",
          later >= 19000 && later < 500000 ? "later by as much" : "another time");
    double difference = (double)srt_time_now() / 1e3 - now_ms();
    value("srt_time_now", "and CLOCK_MONOTONIC", "%s",
          difference > -1000 && difference < 1000 ? "near" : "far");
}

static int fail(void)
{
    return srt_close(opened(NULL)) | srt_listen(12345, 1);
}

static void *in_another_thread(void *opaque)
{
    (void)opaque;
    value("srt_getlasterror", "another thread, at first", "%s", last_error());
    answer("srt_epoll_release", "another thread", srt_epoll_release(4711));
    return NULL;
}

static void last(void)
{
    pthread_t thread;
    int system_error = -5;
    value("srt_getlasterror", "a failure", "%s", (fail(), last_error()));
    value("srt_getlasterror_str", "a failure", "%s", srt_getlasterror_str());
    int code = srt_getlasterror(&system_error);
    value("srt_getlasterror", "a failure, errno", "%s %d", error_name(code), system_error);
    opened(NULL);
    value("srt_getlasterror", "after a success", "%s", last_error());
    pthread_create(&thread, NULL, in_another_thread, NULL);
    pthread_join(thread, NULL);
    value("srt_getlasterror", "after another thread's failure", "%s", last_error());
    srt_clearlasterror();
    value("srt_getlasterror", "cleared", "%s", last_error());
    value("srt_getlasterror_str", "cleared", "%s", srt_getlasterror_str());
    srt_getsockstate(12345);
    value("srt_getlasterror", "after srt_getsockstate of an unknown socket", "%s", last_error());
}

static void layouts(void)
{
    value("sizeof", "SRT_MSGCTRL", "%zu", sizeof(SRT_MSGCTRL));
    value("sizeof", "SRT_TRACEBSTATS", "%zu", sizeof(SRT_TRACEBSTATS));
    value("sizeof", "SRT_EPOLL_EVENT", "%zu", sizeof(SRT_EPOLL_EVENT));
    value("sizeof", "SRT_SOCKGROUPCONFIG", "%zu", sizeof(SRT_SOCKGROUPCONFIG));
    value("sizeof", "SRT_SOCKGROUPDATA", "%zu", sizeof(SRT_SOCKGROUPDATA));
}

int main(void)
{
    program_start();
    errors();
    reasons();
    constants();
    last();
    layouts();
    return program_end();
}
