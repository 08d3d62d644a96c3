/* What Punctual's C library offers beyond libsrt's interface. A program that uses it runs on this
 * library only, except for the options: libsrt refuses their numbers with SRT_EINVPARAM. */

#ifndef PUNCTUAL_H
#define PUNCTUAL_H

#include "srt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Punctual's own version, such as "0.1.0". srt_getversion() has that of the interface. */
SRT_API const char *punctual_version(void);

/* Values of SRTO_RETRANSMITALGO. libsrt has the first two. */
#define PUNCTUAL_RETRANSMIT_AGGRESSIVE 0 /* retransmit for each NAK */
#define PUNCTUAL_RETRANSMIT_EFFICIENT 1  /* not before the last retransmission can be there */
#define PUNCTUAL_RETRANSMIT_DEADLINE 2   /* once for each NAK; the last one in time with copies */

/* Options of our own. Times are int32_t in ms, rates int64_t in bytes/s, switches bool; all others
 * are text with the words and units of srt:// URIs, such as "0.001%". docs/options.md explains
 * each under its name in lower case. The phases are those of srt_options.h. */

/* text, bind, not readable: several options at once as in the query of an srt:// URI, such as
 * "latency=200ms&retransmitalgo=deadline". */
#define PUNCTUAL_SRTO_OPTIONS ((SRT_SOCKOPT)1000)
/* text, "0.001%", call */
#define PUNCTUAL_SRTO_LOSSTARGET ((SRT_SOCKOPT)1003)
/* text, "auto", call: or "delay", "file" */
#define PUNCTUAL_SRTO_RATECONTROL ((SRT_SOCKOPT)1005)
/* rate, 0, any */
#define PUNCTUAL_SRTO_TARGETRATE ((SRT_SOCKOPT)1007)
/* rate, 0, any */
#define PUNCTUAL_SRTO_MINRATE ((SRT_SOCKOPT)1008)
/* time, 0, any */
#define PUNCTUAL_SRTO_QUEUETARGET ((SRT_SOCKOPT)1009)
/* time, 0, call */
#define PUNCTUAL_SRTO_PLAYOUT ((SRT_SOCKOPT)1010)
/* bool, 1, call */
#define PUNCTUAL_SRTO_PATHUPDATE ((SRT_SOCKOPT)1013)

#ifdef __cplusplus
}
#endif

#endif
