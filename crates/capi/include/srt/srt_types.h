/* Types and constants of srt.h: sockets, states, messages, readiness, groups. */

#ifndef PUNCTUAL_SRT_TYPES_H
#define PUNCTUAL_SRT_TYPES_H

#include "platform_sys.h"

/* Marks an exported function or object. A program can define it before it includes srt.h. */
#ifndef SRT_API
#if !defined(_WIN32)
#define SRT_API __attribute__((visibility("default")))
#elif !defined(SRT_DYNAMIC)
#define SRT_API
#elif defined(SRT_EXPORTS)
#define SRT_API __declspec(dllexport)
#else
#define SRT_API __declspec(dllimport)
#endif
#endif

#if defined(__cplusplus) && __cplusplus >= 201703L
#define SRT_HAVE_CXX17 1
#else
#define SRT_HAVE_CXX17 0
#endif

/* Attributes, as programs written for libsrt spell them. A deprecated function has
 * SRT_ATR_DEPRECATED_PX before its declaration and SRT_ATR_DEPRECATED after it, because compilers
 * disagree about the place. SRT_NO_DEPRECATED silences the warnings. */
#if SRT_HAVE_CXX17
#define SRT_ATR_UNUSED [[maybe_unused]]
#define SRT_ATR_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define SRT_ATR_UNUSED __attribute__((unused))
#define SRT_ATR_NODISCARD __attribute__((warn_unused_result))
#elif defined(_MSC_VER)
#define SRT_ATR_UNUSED __pragma(warning(suppress : 4100 4101))
#define SRT_ATR_NODISCARD _Check_return_
#else
#define SRT_ATR_UNUSED
#define SRT_ATR_NODISCARD
#endif

#if defined(SRT_NO_DEPRECATED)
#define SRT_ATR_DEPRECATED_PX
#define SRT_ATR_DEPRECATED
#elif SRT_HAVE_CXX17
#define SRT_ATR_DEPRECATED_PX [[deprecated]]
#define SRT_ATR_DEPRECATED
#elif defined(__GNUC__)
#define SRT_ATR_DEPRECATED_PX
#define SRT_ATR_DEPRECATED __attribute__((deprecated))
#elif defined(_MSC_VER)
#define SRT_ATR_DEPRECATED_PX __declspec(deprecated)
#define SRT_ATR_DEPRECATED
#else
#define SRT_ATR_DEPRECATED_PX
#define SRT_ATR_DEPRECATED
#endif

/* Groups are always part of this library; a build of libsrt may lack them. */
#ifndef ENABLE_BONDING
#define ENABLE_BONDING 1
#endif

/* For SRTO_MINVERSION: the first version with the present handshake. */
#define SRT_VERSION_FEAT_HSv5 0x010300

/* The number of a socket or of a group, greater than 0. Both kinds fit wherever a function takes
 * one, unless its description says otherwise. */
typedef int32_t SRTSOCKET;

/* A socket of the system. */
#ifdef _WIN32
typedef SOCKET SYSSOCKET;
static const SYSSOCKET SYSSOCKET_INVALID = INVALID_SOCKET;
#else
typedef int SYSSOCKET;
static const int SYSSOCKET_INVALID = -1;
#endif
typedef SYSSOCKET UDPSOCKET;

/* The result of a function that failed. */
static const int SRT_ERROR = -1;
/* The result of a function that makes a socket or a group and failed. */
static const SRTSOCKET SRT_INVALID_SOCK = -1;
/* The bit that the number of a group has, and the number of a socket lacks. */
static const int32_t SRTGROUP_MASK = 1 << 30;

/* The states of a socket. */
typedef enum SRT_SOCKSTATUS {
    SRTS_INIT = 1,       /* created */
    SRTS_OPENED = 2,     /* bound to a port */
    SRTS_LISTENING = 3,  /* takes calls */
    SRTS_CONNECTING = 4, /* calls */
    SRTS_CONNECTED = 5,  /* connected */
    SRTS_BROKEN = 6,     /* not connected any more, or a call failed; close it */
    SRTS_CLOSING = 7,    /* closed here, and still sends buffered data */
    SRTS_CLOSED = 8,     /* closed, and about to be removed */
    SRTS_NONEXIST = 9    /* there is no such socket */
} SRT_SOCKSTATUS;

/* Encryption, by SRTO_KMSTATE, SRTO_SNDKMSTATE and SRTO_RCVKMSTATE. */
enum SRT_KM_STATE {
    SRT_KM_S_UNSECURED = 0,    /* not encrypted */
    SRT_KM_S_SECURING = 1,     /* the ends exchange keys */
    SRT_KM_S_SECURED = 2,      /* encrypted, and both ends have the keys */
    SRT_KM_S_NOSECRET = 3,     /* this end or the peer has no passphrase */
    SRT_KM_S_BADSECRET = 4,    /* the passphrases differ */
    SRT_KM_S_BADCRYPTOMODE = 5 /* the ciphers differ */
};

/* ---- Messages ---- */

typedef struct SRT_SocketGroupData_ SRT_SOCKGROUPDATA;

/* Details of one message: srt_sendmsg2() reads and writes some of them, srt_recvmsg2() writes
 * some. srt_msgctrl_init() sets all to their defaults. */
typedef struct SRT_MsgCtrl_ {
    int flags;        /* unused, 0 */
    int msgttl;       /* send: ms after which an unsent message is dropped; -1: never */
    int inorder;      /* send: 1 to keep the order of messages; unused in live mode */
    int boundary;     /* unused, 0 */
    int64_t srctime;  /* us on the clock of srt_time_now(). Send: the origin time, 0 for now;
                         it may be up to a minute ahead. Receive: the time at which the message is
                         due; for live mode only */
    int32_t pktseq;   /* out: the sequence number of the first packet that was sent, or of the
                         last packet that was received */
    int32_t msgno;    /* out: the message number. Send: also in, -1 for the next one */
    SRT_SOCKGROUPDATA *grpdata; /* an array for the states of a group's members, or NULL */
    size_t grpdata_size;        /* in: the length of the array; out: the number of members */
} SRT_MSGCTRL;

/* No sequence number, no message number. */
static const int32_t SRT_SEQNO_NONE = -1;
static const int32_t SRT_MSGNO_NONE = -1;
/* The message number of a packet that a packet filter made. */
static const int32_t SRT_MSGNO_CONTROL = 0;
/* For msgttl: no limit. */
static const int SRT_MSGTTL_INF = -1;

/* Defaults for the `block` of srt_sendfile() and srt_recvfile(), bytes. */
#define SRT_DEFAULT_SENDFILE_BLOCK 364000
#define SRT_DEFAULT_RECVFILE_BLOCK 7280000

/* ---- Readiness ---- */

/* Events of sockets. IN, OUT, ERR and ET have the values of <sys/epoll.h>. */
#if defined(__GNUC__) && !defined(__cplusplus)
__extension__ /* ISO C has no enumerators beyond int. */
#endif
enum SRT_EPOLL_OPT {
    SRT_EPOLL_OPT_NONE = 0,
    SRT_EPOLL_IN = 0x1,      /* a message can be received, or a connection accepted */
    SRT_EPOLL_OUT = 0x4,     /* a message can be sent; the call has succeeded */
    SRT_EPOLL_ERR = 0x8,     /* the connection has broken, or the call has failed */
    SRT_EPOLL_UPDATE = 0x10, /* a group has lost a member, or a listener has a further link of a
                                group; always edge-triggered */
    SRT_EPOLL_ET = 1u << 31, /* edge-triggered: report each change once */

    SRT_EPOLL_ACCEPT = SRT_EPOLL_IN,
    SRT_EPOLL_CONNECT = SRT_EPOLL_OUT
};
typedef int32_t SRT_EPOLL_T;

#define SRT_EPOLL_EVENTTYPES (SRT_EPOLL_IN | SRT_EPOLL_OUT | SRT_EPOLL_UPDATE | SRT_EPOLL_ERR)
#define SRT_EPOLL_ETONLY (SRT_EPOLL_UPDATE)

/* Flags of srt_epoll_set(). */
enum SRT_EPOLL_FLAGS {
    SRT_EPOLL_ENABLE_EMPTY = 1,      /* waiting on an empty set is allowed */
    SRT_EPOLL_ENABLE_OUTPUTCHECK = 2 /* waiting without an array for the results is an error */
};

/* A socket and its events, by srt_epoll_uwait(). */
typedef struct SRT_EPOLL_EVENT_STR {
    SRTSOCKET fd;
    int events; /* SRT_EPOLL_... */
#ifdef __cplusplus
    SRT_EPOLL_EVENT_STR() : fd(-1), events(0) {}
    SRT_EPOLL_EVENT_STR(SRTSOCKET socket, int which) : fd(socket), events(which) {}
#endif
} SRT_EPOLL_EVENT;

#ifdef __cplusplus
inline SRT_EPOLL_OPT operator|(SRT_EPOLL_OPT left, SRT_EPOLL_OPT right)
{
    return static_cast<SRT_EPOLL_OPT>(static_cast<unsigned>(left) | static_cast<unsigned>(right));
}
#endif

/* ---- Groups ---- */

/* The way in which the links of a group carry its messages. */
typedef enum SRT_GROUP_TYPE {
    SRT_GTYPE_UNDEFINED = 0,
    SRT_GTYPE_BROADCAST = 1, /* each link carries all messages */
    SRT_GTYPE_BACKUP = 2,    /* one link carries all messages, and another one replaces it */
    SRT_GTYPE_E_END = 3,
    PUNCTUAL_GTYPE_BALANCE = 1000 /* the links share the messages; needs Punctual at both ends */
} SRT_GROUP_TYPE;

static const uint32_t SRT_GFLAG_SYNCONMSG = 1;

/* The states of a link. */
typedef enum SRT_MemberStatus {
    SRT_GST_PENDING = 0, /* not connected yet */
    SRT_GST_IDLE = 1,    /* standby */
    SRT_GST_RUNNING = 2, /* active */
    SRT_GST_BROKEN = 3   /* about to be removed */
} SRT_MEMBERSTATUS;

/* A link of a group, by srt_group_data() and in SRT_MSGCTRL. */
struct SRT_SocketGroupData_ {
    SRTSOCKET id;
    struct sockaddr_storage peeraddr;
    SRT_SOCKSTATUS sockstate;
    uint16_t weight; /* the priority; in backup groups the highest one is used first */
    SRT_MEMBERSTATUS memberstate;
    int result; /* of the last operation: bytes sent or received, 0, or -1 */
    int token;  /* of the SRT_SOCKGROUPCONFIG with which it was connected; -1 at the listener */
};

/* Options of one link, by srt_create_config(). */
typedef struct SRT_SocketOptionObject SRT_SOCKOPT_CONFIG;

/* A link to connect, by srt_prepare_endpoint() for srt_connect_group(). */
typedef struct SRT_GroupMemberConfig_ {
    SRTSOCKET id; /* out: the socket, or -1 */
    struct sockaddr_storage srcaddr;
    struct sockaddr_storage peeraddr;
    uint16_t weight;            /* the priority, 0 by default */
    SRT_SOCKOPT_CONFIG *config; /* options of this link, or NULL */
    int errorcode;              /* out: the error of this link, or SRT_SUCCESS */
    int token;                  /* a number of the program's own for the callback; -1: a new one */
} SRT_SOCKGROUPCONFIG;

/* ---- Clock ---- */

/* Results of srt_clock_type(). */
#define SRT_SYNC_CLOCK_STDCXX_STEADY 0
#define SRT_SYNC_CLOCK_GETTIME_MONOTONIC 1
#define SRT_SYNC_CLOCK_WINQPC 2
#define SRT_SYNC_CLOCK_MACH_ABSTIME 3
#define SRT_SYNC_CLOCK_POSIX_GETTIMEOFDAY 4
#define SRT_SYNC_CLOCK_AMD64_RDTSC 5
#define SRT_SYNC_CLOCK_IA32_RDTSC 6
#define SRT_SYNC_CLOCK_IA64_ITC 7

#endif
