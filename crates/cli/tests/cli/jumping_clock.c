/*
 * A clock of the day that is set to another time, for any program under which this library is put
 * by LD_PRELOAD: a second after the program has read the clock for the first time, it shows
 * CLOCK_JUMPS_BY seconds more. Other clocks go on as they are. The kernel's timestamps of received
 * datagrams remain those of the true clock, as those of datagrams that came before a jump.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static _Atomic long first;
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result != 0 || clock != CLOCK_REALTIME)
        return (int)result;
    long none = 0;
    atomic_compare_exchange_strong(&first, &none, time->tv_sec);
    const char *jump = getenv("CLOCK_JUMPS_BY");
    if (jump && time->tv_sec > atomic_load(&first))
        time->tv_sec += atol(jump);
    return 0;
}
