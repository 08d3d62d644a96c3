/* Errors, reasons of rejections, and areas of the log. */

#ifndef PUNCTUAL_SRT_ERRORS_H
#define PUNCTUAL_SRT_ERRORS_H

/* Codes of srt_getlasterror(): a thousand for the category, and the rest for the cause. */
typedef enum SRT_ERRNO {
    SRT_EUNKNOWN = -1,
    SRT_SUCCESS = 0,

    /* A call failed. */
    SRT_ECONNSETUP = 1000, /* for no particular cause */
    SRT_ENOSERVER = 1001,  /* nobody answered in time */
    SRT_ECONNREJ = 1002,   /* rejected: srt_getrejectreason() has the reason */
    SRT_ESOCKFAIL = 1003,  /* the system refused a socket or an address */
    SRT_ESECFAIL = 1004,   /* the passphrases or the ciphers do not fit */
    SRT_ESCLOSED = 1005,   /* the socket was closed in the meantime */

    /* A connection failed. */
    SRT_ECONNFAIL = 2000,
    SRT_ECONNLOST = 2001, /* it has ended */
    SRT_ENOCONN = 2002,   /* the socket is not connected */

    /* The system lacks something. */
    SRT_ERESOURCE = 3000,
    SRT_ETHREAD = 3001, /* no thread */
    SRT_ENOBUF = 3002,  /* no memory */
    SRT_ESYSOBJ = 3003, /* no other object */

    /* A file failed. */
    SRT_EFILE = 4000,
    SRT_EINVRDOFF = 4001, /* the offset to read from */
    SRT_ERDPERM = 4002,   /* opening or reading */
    SRT_EINVWROFF = 4003, /* the offset to write to */
    SRT_EWRPERM = 4004,   /* writing */

    /* The program asked for something that is not possible. */
    SRT_EINVOP = 5000,
    SRT_EBOUNDSOCK = 5001,      /* the socket is bound already */
    SRT_ECONNSOCK = 5002,       /* the socket is connected, listens or calls already */
    SRT_EINVPARAM = 5003,       /* an argument is wrong */
    SRT_EINVSOCK = 5004,        /* there is no such socket */
    SRT_EUNBOUNDSOCK = 5005,    /* the socket is not bound */
    SRT_ENOLISTEN = 5006,       /* the socket does not listen */
    SRT_ERDVNOSERV = 5007,      /* a socket for rendezvous cannot listen or accept */
    SRT_ERDVUNBOUND = 5008,     /* a rendezvous needs a bound socket */
    SRT_EINVALMSGAPI = 5009,    /* the size or the function does not fit messages */
    SRT_EINVALBUFFERAPI = 5010, /* the function does not fit a stream of bytes */
    SRT_EDUPLISTEN = 5011,      /* another socket listens on this port */
    SRT_ELARGEMSG = 5012,       /* the message is larger than the buffer */
    SRT_EINVPOLLID = 5013,      /* there is no such set of sockets */
    SRT_EPOLLEMPTY = 5014,      /* the set has no sockets */
    SRT_EBINDCONFLICT = 5015,   /* another socket of the program has the port, with other options */

    /* Nothing failed, but it cannot be done now. */
    SRT_EASYNCFAIL = 6000,
    SRT_EASYNCSND = 6001, /* there is no room to send */
    SRT_EASYNCRCV = 6002, /* there is nothing to receive or accept */
    SRT_ETIMEOUT = 6003,  /* the time is over */
    SRT_ECONGEST = 6004,  /* unused */

    SRT_EPEERERR = 7000 /* the peer cannot store what is sent */
} SRT_ERRNO;

/* The category of a code, in thousands. */
enum CodeMajor {
    MJ_UNKNOWN = -1,
    MJ_SUCCESS = 0,
    MJ_SETUP = 1,
    MJ_CONNECTION = 2,
    MJ_SYSTEMRES = 3,
    MJ_FILESYSTEM = 4,
    MJ_NOTSUP = 5,
    MJ_AGAIN = 6,
    MJ_PEERERROR = 7
};

/* The cause of a code within its category. */
enum CodeMinor {
    MN_NONE = 0,
    /* MJ_SETUP */
    MN_TIMEOUT = 1,
    MN_REJECTED = 2,
    MN_NORES = 3,
    MN_SECURITY = 4,
    MN_CLOSED = 5,
    /* MJ_CONNECTION */
    MN_CONNLOST = 1,
    MN_NOCONN = 2,
    /* MJ_SYSTEMRES */
    MN_THREAD = 1,
    MN_MEMORY = 2,
    MN_OBJECT = 3,
    /* MJ_FILESYSTEM */
    MN_SEEKGFAIL = 1,
    MN_READFAIL = 2,
    MN_SEEKPFAIL = 3,
    MN_WRITEFAIL = 4,
    /* MJ_NOTSUP */
    MN_ISBOUND = 1,
    MN_ISCONNECTED = 2,
    MN_INVAL = 3,
    MN_SIDINVAL = 4,
    MN_ISUNBOUND = 5,
    MN_NOLISTEN = 6,
    MN_ISRENDEZVOUS = 7,
    MN_ISRENDUNBOUND = 8,
    MN_INVALMSGAPI = 9,
    MN_INVALBUFFERAPI = 10,
    MN_BUSY = 11,
    MN_XSIZE = 12,
    MN_EIDINVAL = 13,
    MN_EEMPTY = 14,
    MN_BUSYPORT = 15,
    /* MJ_AGAIN */
    MN_WRAVAIL = 1,
    MN_RDAVAIL = 2,
    MN_XMTIMEOUT = 3,
    MN_CONGESTION = 4
};

/* Reasons of srt_getrejectreason() below 1000. access_control.h has those from 1000 on. */
enum SRT_REJECT_REASON {
    SRT_REJ_UNKNOWN = 0,     /* not rejected, or for an unknown reason */
    SRT_REJ_SYSTEM = 1,      /* the system failed */
    SRT_REJ_PEER = 2,        /* the peer's program rejected without a reason */
    SRT_REJ_RESOURCE = 3,    /* memory or threads were missing */
    SRT_REJ_ROGUE = 4,       /* the handshake was malformed */
    SRT_REJ_BACKLOG = 5,     /* too many connections wait to be accepted */
    SRT_REJ_IPE = 6,         /* a fault in the library */
    SRT_REJ_CLOSE = 7,       /* the listener closes */
    SRT_REJ_VERSION = 8,     /* the peer is older than SRTO_MINVERSION */
    SRT_REJ_RDVCOOKIE = 9,   /* both ends of a rendezvous have the same cookie */
    SRT_REJ_BADSECRET = 10,  /* the passphrases differ */
    SRT_REJ_UNSECURE = 11,   /* one end has a passphrase, the other does not */
    SRT_REJ_MESSAGEAPI = 12, /* one end sends messages, the other a stream of bytes */
    SRT_REJ_CONGESTION = 13, /* the ends have different congestion control */
    SRT_REJ_FILTER = 14,     /* the ends have different packet filters */
    SRT_REJ_GROUP = 15,      /* the listener accepts no such group */
    SRT_REJ_TIMEOUT = 16,    /* the peer did not answer in time */
    SRT_REJ_CRYPTO = 17,     /* the ends have different ciphers */
    SRT_REJ_E_SIZE = 18
};
#define SRT_REJ__SIZE SRT_REJ_E_SIZE

/* The range of a reason: its thousands. */
#define SRT_REJC_VALUE(code) (1000 * ((code) / 1000))
#define SRT_REJC_INTERNAL 0       /* of the list above */
#define SRT_REJC_PREDEFINED 1000  /* of access_control.h */
#define SRT_REJC_USERDEFINED 2000 /* of the program's own */

/* Functional areas of the log, which srt_addlogfa() and its relatives select. */
#define SRT_LOGFA_GENERAL 0
#define SRT_LOGFA_SOCKMGMT 1 /* opening, setting and closing sockets */
#define SRT_LOGFA_CONN 2     /* handshakes */
#define SRT_LOGFA_XTIMER 3   /* timers */
#define SRT_LOGFA_TSBPD 4    /* delivery */
#define SRT_LOGFA_RSRC 5     /* resources of the system */
#define SRT_LOGFA_HAICRYPT 6 /* encryption */
#define SRT_LOGFA_CONGEST 7  /* congestion control */
#define SRT_LOGFA_PFILTER 8  /* packet filter */
#define SRT_LOGFA_APPLOG 10  /* free for programs */
/* Control. */
#define SRT_LOGFA_API_CTRL 11
#define SRT_LOGFA_QUE_CTRL 13
#define SRT_LOGFA_EPOLL_UPD 16
/* Receiving: interface, buffer, queue, port, group. */
#define SRT_LOGFA_API_RECV 21
#define SRT_LOGFA_BUF_RECV 22
#define SRT_LOGFA_QUE_RECV 23
#define SRT_LOGFA_CHN_RECV 24
#define SRT_LOGFA_GRP_RECV 25
/* Sending, in the same order. */
#define SRT_LOGFA_API_SEND 31
#define SRT_LOGFA_BUF_SEND 32
#define SRT_LOGFA_QUE_SEND 33
#define SRT_LOGFA_CHN_SEND 34
#define SRT_LOGFA_GRP_SEND 35
/* Management. */
#define SRT_LOGFA_INTERNAL 41
#define SRT_LOGFA_QUE_MGMT 43
#define SRT_LOGFA_CHN_MGMT 44
#define SRT_LOGFA_GRP_MGMT 45
#define SRT_LOGFA_EPOLL_API 46
/* No area has this number or a greater one. */
#define SRT_LOGFA_LASTNONE 63

#endif
