/* Functions for C++ that libsrt has beside its C interface, as far as programs outside of libsrt
 * use them. They are inline, so that they need nothing else from the library. */

#ifndef INC_SRT_UDT_H
#define INC_SRT_UDT_H

#include "srt.h"

typedef SRTSOCKET UDTSOCKET;

#ifdef __cplusplus

#include <fstream>
#include <string>
#include <vector>

namespace srt
{

inline void setloglevel(srt_logging::LogLevel::type level)
{
    srt_setloglevel(level);
}

inline void addlogfa(srt_logging::LogFA area)
{
    srt_addlogfa(area);
}

inline void dellogfa(srt_logging::LogFA area)
{
    srt_dellogfa(area);
}

inline void resetlogfa(const int *areas, size_t count)
{
    srt_resetlogfa(areas, count);
}

inline void resetlogfa(const std::set<srt_logging::LogFA> &areas)
{
    const std::vector<int> numbers(areas.begin(), areas.end());
    srt_resetlogfa(numbers.data(), numbers.size());
}

inline void setlogflags(int flags)
{
    srt_setlogflags(flags);
}

inline void setloghandler(void *opaque, SRT_LOG_HANDLER_FN *handler)
{
    srt_setloghandler(opaque, handler);
}

/* Writes the log to this stream, which must live as long as the library. */
inline void setlogstream(std::ostream &stream)
{
    struct To {
        static void write(void *opaque, int, const char *, int, const char *, const char *message)
        {
            *static_cast<std::ostream *>(opaque) << message << std::flush;
        }
    };
    srt_setloghandler(&stream, &To::write);
}

/* Sets the stream ID, at most 512 bytes. False if it cannot be set. */
inline bool setstreamid(SRTSOCKET socket, const std::string &name)
{
    return srt_setsockflag(socket, SRTO_STREAMID, name.data(), static_cast<int>(name.size())) == 0;
}

/* The stream ID, or an empty one. */
inline std::string getstreamid(SRTSOCKET socket)
{
    char name[513];
    int length = sizeof name;
    if (srt_getsockflag(socket, SRTO_STREAMID, name, &length) != 0)
        return std::string();
    return std::string(name, static_cast<size_t>(length));
}

namespace logging
{
using namespace srt_logging;
}

}

/* The same under the name of the library from which libsrt came. */
namespace UDT
{
using srt::addlogfa;
using srt::dellogfa;
using srt::getstreamid;
using srt::resetlogfa;
using srt::setlogflags;
using srt::setloghandler;
using srt::setloglevel;
using srt::setlogstream;
using srt::setstreamid;
}

#endif

#endif
