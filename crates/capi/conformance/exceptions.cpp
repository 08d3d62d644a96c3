/* Hooks that throw C++ exceptions. Each situation has a process of its own, which may end. */
#include <srt/srt.h>

extern "C" {
#include "common.h"
}

#include <cstdio>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a situation in a child. Its last row says how the child ends. */
static void in_child(const char *function, const char *situation, void (*run)(const char *))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        program_start();
        run(situation);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    value(function, say("%s, the program", situation), "%s",
          WIFEXITED(status) ? "goes on" : "ends by a signal");
}

/* The listener's hook. It throws at the first caller, and accepts all others. */

struct plan {
    int reason;
    bool throws_object;
    int calls;
};

static int listen_hook(void *opaque, SRTSOCKET s, int, const sockaddr *, const char *)
{
    plan *plan = static_cast<struct plan *>(opaque);
    if (plan->calls++ > 0)
        return 0;
    if (plan->reason != 0)
        srt_setrejectreason(s, plan->reason);
    if (plan->throws_object)
        throw std::runtime_error("not this caller");
    throw 7;
}

static void two_calls(const char *situation, plan plan, bool blocks)
{
    SRTSOCKET listener = bound(nullptr);
    srt_listen_callback(listener, listen_hook, &plan);
    srt_listen(listener, 5);
    SRTSOCKET caller = opened(nullptr);
    if (!blocks)
        unblock(caller);
    int result = call(caller, port_of(listener));
    if (!blocks)
        wait_state(caller, SRTS_BROKEN, LONG_MS);
    answer_state("srt_connect", situation, result, caller);
    value("srt_getrejectreason", situation, "%d", srt_getrejectreason(caller));
    SRTSOCKET next = opened(nullptr);
    int accepted = call(next, port_of(listener));
    answer_state("srt_connect", say("%s, the next caller", situation), accepted, next);
    value("srt_listen_callback", say("%s, calls", situation), "%d", plan.calls);
}

static void an_int(const char *situation)
{
    two_calls(situation, { 0, false, 0 }, true);
}

static void an_object(const char *situation)
{
    two_calls(situation, { 0, true, 0 }, true);
}

static void with_a_reason(const char *situation)
{
    two_calls(situation, { 1403, true, 0 }, true);
}

static void not_blocking(const char *situation)
{
    two_calls(situation, { 1403, false, 0 }, false);
}

/* The caller's hook. */

static void connect_hook(void *opaque, SRTSOCKET, int, const sockaddr *, int)
{
    ++*static_cast<volatile int *>(opaque);
    throw 7;
}

static void unanswered_call(const char *situation, bool blocks)
{
    int port = 0;
    silent_socket(&port);
    volatile int calls = 0;
    SRTSOCKET s = opened(nullptr);
    if (!blocks)
        unblock(s);
    srt_connect_callback(s, connect_hook, const_cast<int *>(&calls));
    set_int(s, SRTO_CONNTIMEO, 200);
    int result = call(s, port);
    for (double end = now_ms() + LONG_MS; calls == 0 && now_ms() < end;)
        pause_ms(5);
    pause_ms(SETTLE_MS);
    answer("srt_connect", situation, result);
    value("srt_connect_callback", say("%s, calls", situation), "%d", calls);
}

static void unanswered(const char *situation)
{
    unanswered_call(situation, true);
}

static void unanswered_not_blocking(const char *situation)
{
    unanswered_call(situation, false);
}

/* The handler of the log. */

static void log_handler(void *, int, const char *, int, const char *, const char *message)
{
    throw std::runtime_error(message);
}

static void refused_call(const char *situation)
{
    srt_setloglevel(LOG_DEBUG);
    srt_setloghandler(nullptr, log_handler);
    SRTSOCKET listener = opened(nullptr);
    SRTSOCKET caller = opened(nullptr);
    sockaddr_in address = loopback(0);
    set_string(listener, SRTO_PASSPHRASE, "correct horse");
    set_string(caller, SRTO_PASSPHRASE, "battery staple");
    srt_bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
    srt_listen(listener, 1);
    answer("srt_connect", situation, call(caller, port_of(listener)));
    srt_setloghandler(nullptr, nullptr);
    srt_setloglevel(LOG_CRIT);
}

int main()
{
    in_child("srt_listen_callback", "throws an int", an_int);
    in_child("srt_listen_callback", "throws an object", an_object);
    in_child("srt_listen_callback", "gives 1403 and throws an object", with_a_reason);
    in_child("srt_listen_callback", "gives 1403 and throws, the caller does not block",
             not_blocking);
    in_child("srt_connect_callback", "no answer, throws", unanswered);
    in_child("srt_connect_callback", "no answer, not blocking, throws", unanswered_not_blocking);
    in_child("srt_setloghandler", "a refused call, the handler throws", refused_call);
    return program_end();
}
