/* Logging: levels, flags and the type of a handler. srt.h declares the functions, and
 * srt_errors.h the areas. */

#ifndef INC_SRT_LOGGING_API_H
#define INC_SRT_LOGGING_API_H

#ifdef __cplusplus
#include <iostream>
#include <set>
#endif

/* The levels are those of syslog(3). A smaller number is a more serious message. */
#ifdef _WIN32
#define LOG_CRIT 2
#define LOG_ERR 3
#define LOG_WARNING 4
#define LOG_NOTICE 5
#define LOG_DEBUG 7
#else
#include <syslog.h>
#endif

#define SRT_LOG_LEVEL_MIN LOG_CRIT
#define SRT_LOG_LEVEL_MAX LOG_DEBUG
#ifndef LOG_DEBUG_TRACE
#define LOG_DEBUG_TRACE 8
#endif

/* Flags of srt_setlogflags(): the parts of a line that are left out. */
#define SRT_LOGF_DISABLE_TIME 1
#define SRT_LOGF_DISABLE_THREADNAME 2
#define SRT_LOGF_DISABLE_SEVERITY 4
#define SRT_LOGF_DISABLE_EOL 8

/* Receives each message in the place of standard error.
 *
 * `opaque` is the pointer that was given to srt_setloghandler(); `area` is the short name of a
 * functional area; `message` is the line as srt_setlogflags() wants it. All texts are valid during
 * the call only. The call comes from any thread, also from the library's own, and must not wait. */
typedef void SRT_LOG_HANDLER_FN(void *opaque, int level, const char *file, int line,
                                const char *area, const char *message);

#ifdef __cplusplus

/* Names that C++ programs use for the same numbers. */
namespace srt_logging
{

namespace LogLevel
{
enum type {
    fatal = LOG_CRIT,
    error = LOG_ERR,
    warning = LOG_WARNING,
    note = LOG_NOTICE,
    debug = LOG_DEBUG
};
}

/* The number of a functional area, SRT_LOGFA_... */
struct LogFA {
    LogFA(int number) : number_(number) {}
    operator int() const { return number_; }

private:
    int number_;
};

const LogFA LOGFA_GENERAL = 0;

}

#endif

#endif
