/* Logging: the handler, levels, areas, flags. Which lines there are is each library's own. */
#include "common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct log {
    int calls;
    int highest;
    int lowest;
    int without_file;
    int without_area;
    int without_message;
    int line_breaks;
    int negative_lines;
};

static void handler(void *opaque, int level, const char *file, int line, const char *area,
                    const char *message)
{
    struct log *log = opaque;
    pthread_mutex_lock(&lock);
    if (log->calls == 0 || level > log->highest)
        log->highest = level;
    if (log->calls == 0 || level < log->lowest)
        log->lowest = level;
    log->calls++;
    log->without_file += file == NULL || *file == '\0';
    log->without_area += area == NULL || *area == '\0';
    log->without_message += message == NULL || *message == '\0';
    log->line_breaks += message != NULL && strchr(message, '\n') != NULL;
    log->negative_lines += line < 0;
    pthread_mutex_unlock(&lock);
}

/* A failure of which a library tells as an error: a listener that refuses a call. */
static void cause_errors(void)
{
    SRTSOCKET listener = opened(NULL);
    SRTSOCKET caller = opened(NULL);
    struct sockaddr_in address = loopback(0);
    set_string(listener, SRTO_PASSPHRASE, "correct horse");
    set_string(caller, SRTO_PASSPHRASE, "battery staple");
    srt_bind(listener, (struct sockaddr *)&address, sizeof address);
    srt_listen(listener, 1);
    call(caller, port_of(listener));
    srt_close(caller);
    srt_close(listener);
}

static struct log at_level(int level)
{
    struct log log = { 0 };
    srt_setloghandler(&log, handler);
    srt_setloglevel(level);
    cause_errors();
    srt_setloghandler(NULL, NULL);
    srt_setloglevel(LOG_CRIT);
    return log;
}

static void level_row(const char *name, int level)
{
    struct log log = at_level(level);
    value("srt_setloglevel", say("%s, a refused call", name), "%s; none above the level: %s",
          log.calls > 0 ? "lines" : "no line", log.highest <= level ? "yes" : "no");
    if (log.calls == 0)
        return;
    value("srt_setloghandler", say("%s, arguments", name),
          "without file %s, area %s, message %s; lines below 0 %s",
          log.without_file ? "some" : "none", log.without_area ? "some" : "none",
          log.without_message ? "some" : "none", log.negative_lines ? "some" : "none");
}

static void levels(void)
{
    level_row("CRIT", LOG_CRIT);
    level_row("ERR", LOG_ERR);
    level_row("WARNING", LOG_WARNING);
    level_row("NOTICE", LOG_NOTICE);
    level_row("DEBUG", LOG_DEBUG);
}

/* Areas that are switched off say nothing. */
static void areas(void)
{
    static const int none[] = { 0 };
    struct log log;
    srt_resetlogfa(none, 0);
    log = at_level(LOG_DEBUG);
    value("srt_resetlogfa", "no area", "%s", log.calls > 0 ? "lines" : "no line");
    int all[63];
    for (int i = 0; i < 63; i++)
        all[i] = i;
    srt_resetlogfa(all, 63);
    log = at_level(LOG_DEBUG);
    value("srt_resetlogfa", "all areas", "%s", log.calls > 0 ? "lines" : "no line");
    for (int i = 0; i < 63; i++)
        srt_dellogfa(i);
    log = at_level(LOG_DEBUG);
    value("srt_dellogfa", "all areas", "%s", log.calls > 0 ? "lines" : "no line");
    for (int i = 0; i < 63; i++)
        srt_addlogfa(i);
    log = at_level(LOG_DEBUG);
    value("srt_addlogfa", "all areas", "%s", log.calls > 0 ? "lines" : "no line");
}

/* Without a handler the lines go to the standard error. */
static void standard_error(const char *situation, int level, int flags)
{
    char text[20000];
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    srt_setlogflags(flags);
    srt_setloglevel(level);
    cause_errors();
    srt_setloglevel(LOG_CRIT);
    srt_setlogflags(0);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    /* 12:34:56.123456/thread*E:SRT.cn: text */
    value("srt_setlogflags", situation, "%s; time %s, area %s, severity %s, line break %s",
          size > 0 ? "lines" : "no line", text[0] >= '0' && text[0] <= '9' ? "yes" : "no",
          strstr(text, "SRT.") != NULL ? "yes" : "no",
          strstr(text, "*E") != NULL ? "yes" : "no",
          size > 0 && text[size - 1] == '\n' ? "yes" : "no");
}

int main(void)
{
    program_start();
    levels();
    areas();
    standard_error("no flag, ERR", LOG_ERR, 0);
    standard_error("no flag, CRIT", LOG_CRIT, 0);
    standard_error("no time, ERR", LOG_ERR, SRT_LOGF_DISABLE_TIME);
    standard_error("no thread, ERR", LOG_ERR, SRT_LOGF_DISABLE_THREADNAME);
    standard_error("no severity, ERR", LOG_ERR, SRT_LOGF_DISABLE_SEVERITY);
    standard_error("no line break, ERR", LOG_ERR, SRT_LOGF_DISABLE_EOL);
    standard_error("no flag, NOTICE", LOG_NOTICE, 0);
    return program_end();
}
