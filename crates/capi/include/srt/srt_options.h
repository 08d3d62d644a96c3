/* Options of sockets: srt_setsockflag(), srt_getsockflag().
 *
 * Each line has the type, the default and the phase in which the option can be set:
 *   bool    1 byte, or an int; srt_getsockflag() writes 1 byte
 *   int     int32_t            int64   int64_t
 *   text    bytes, with or without a NUL at the end; srt_getsockflag() adds one
 *   bind    before srt_bind(), srt_connect() or srt_listen()
 *   call    before srt_connect() or srt_listen()
 *   any     at any time
 *   read    cannot be set
 * docs/options.md has the ranges and more about the effects. */

#ifndef PUNCTUAL_SRT_OPTIONS_H
#define PUNCTUAL_SRT_OPTIONS_H

typedef enum SRT_SOCKOPT {
    SRTO_MSS = 0,          /* int, 1500, bind: largest datagram with its headers, bytes */
    SRTO_SNDSYN = 1,       /* bool, 1, any: sending waits until there is room */
    SRTO_RCVSYN = 2,       /* bool, 1, any: receiving, accepting and connecting wait */
    SRTO_ISN = 3,          /* int, read: the first sequence number of this end */
    SRTO_FC = 4,           /* int, 25600, call: most packets in flight */
    SRTO_SNDBUF = 5,       /* int, bind: send buffer, bytes */
    SRTO_RCVBUF = 6,       /* int, bind: receive buffer, bytes; at most SRTO_FC packets */
    SRTO_LINGER = 7,       /* struct linger, any: time for which a close sends buffered data */
    SRTO_UDP_SNDBUF = 8,   /* int, 65536, bind: the system's send buffer, bytes */
    SRTO_UDP_RCVBUF = 9,   /* int, 12288000, bind: the system's receive buffer, bytes */
    SRTO_RENDEZVOUS = 12,  /* bool, 0, call: both ends call each other */
    SRTO_SNDTIMEO = 13,    /* int, -1, any: longest wait of a send, ms; -1: no limit */
    SRTO_RCVTIMEO = 14,    /* int, -1, any: longest wait of a receive, ms; -1: no limit */
    SRTO_REUSEADDR = 15,   /* bool, 1, bind: sockets can share a port */
    SRTO_MAXBW = 16,       /* int64, -1, any: sending rate, bytes/s; -1: unlimited, 0: relative */
    SRTO_STATE = 17,       /* int, read: SRTS_... */
    SRTO_EVENT = 18,       /* int, read: SRT_EPOLL_... */
    SRTO_SNDDATA = 19,     /* int, read: packets in the send buffer */
    SRTO_RCVDATA = 20,     /* int, read: packets in the receive buffer */
    SRTO_SENDER = 21,      /* bool, 0, call: sends to a peer older than 1.3.0 */
    SRTO_TSBPDMODE = 22,   /* bool, 1, call: deliver at origin time + latency */
    SRTO_LATENCY = 23,     /* int, 120, call: sets both latencies; reads SRTO_RCVLATENCY; ms */
    SRTO_INPUTBW = 24,     /* int64, 0, any: rate of the input, bytes/s; 0: measured */
    SRTO_OHEADBW = 25,     /* int, 25, any: room for retransmissions with SRTO_MAXBW 0, percent */
    SRTO_PASSPHRASE = 26,  /* text, call, not readable: 10 to 80 bytes, or none */
    SRTO_PBKEYLEN = 27,    /* int, 0, call: bytes of the key: 16, 24, 32; 0: the peer's */
    SRTO_KMSTATE = 28,     /* int, read: SRT_KM_S_... */
    SRTO_IPTTL = 29,       /* int, -1, bind: time to live; -1: the system's */
    SRTO_IPTOS = 30,       /* int, -1, bind: type of service; -1: the system's */
    SRTO_TLPKTDROP = 31,   /* bool, 1, call: drop packets that are too late */
    SRTO_SNDDROPDELAY = 32, /* int, 0, any: extra time before the sender drops; ms, -1: never */
    SRTO_NAKREPORT = 33,   /* bool, 1, call: repeat NAKs */
    SRTO_VERSION = 34,     /* int, read: this library's version, 0xMMmmpp */
    SRTO_PEERVERSION = 35, /* int, read: the peer's version, 0xMMmmpp */
    SRTO_CONNTIMEO = 36,   /* int, 3000, call: time for a call; in a rendezvous tenfold; ms */
    SRTO_DRIFTTRACER = 37, /* bool, 1, any: follow the drift of the peer's clock */
    SRTO_MININPUTBW = 38,  /* int64, 0, any: lower bound of the measured input, bytes/s */
    SRTO_SNDKMSTATE = 40,  /* int, read: encryption of what is sent, SRT_KM_S_... */
    SRTO_RCVKMSTATE = 41,  /* int, read: encryption of what is received, SRT_KM_S_... */
    SRTO_LOSSMAXTTL = 42,  /* int, 0, any: reordering tolerance, packets */
    SRTO_RCVLATENCY = 43,  /* int, 120, call: latency of this receiver, ms */
    SRTO_PEERLATENCY = 44, /* int, 0, call: least latency of the peer's receiver, ms */
    SRTO_MINVERSION = 45,  /* int, 0x010000, call: oldest peer, 0xMMmmpp */
    SRTO_STREAMID = 46,    /* text, call: names the stream to the listener; at most 512 bytes */
    SRTO_CONGESTION = 47,  /* text, "live", call: or "file" */
    SRTO_MESSAGEAPI = 48,  /* bool, 1, call: messages; 0: a stream of bytes */
    SRTO_PAYLOADSIZE = 49, /* int, 1316, call: largest message in live mode, bytes; 0: as fits */
    SRTO_TRANSTYPE = 50,   /* SRT_TRANSTYPE, bind, not readable: sets all options for a mode */
    SRTO_KMREFRESHRATE = 51,  /* int, 0, call: packets for each key; 0: the default */
    SRTO_KMPREANNOUNCE = 52,  /* int, 0, call: packets by which a new key comes early */
    SRTO_ENFORCEDENCRYPTION = 53, /* bool, 1, call: refuse a peer without this passphrase */
    SRTO_IPV6ONLY = 54,    /* int, -1, bind: a port of IPv6 takes no IPv4; -1: the system's way */
    SRTO_PEERIDLETIMEO = 55, /* int, 5000, call: silence that ends the connection, ms */
    SRTO_BINDTODEVICE = 56, /* text, bind: the name of a network device */
    SRTO_GROUPCONNECT = 57, /* int, 0, call: a listener accepts links of groups */
    SRTO_GROUPMINSTABLETIMEO = 58, /* int, 60, call: least time to find a link unstable, ms */
    SRTO_GROUPTYPE = 59,   /* int, read: SRT_GROUP_TYPE of the group of an accepted link */
    SRTO_PACKETFILTER = 60, /* text, call: such as "fec,cols:10,rows:5" */
    SRTO_RETRANSMITALGO = 61, /* int, call: PUNCTUAL_RETRANSMIT_... */
    SRTO_CRYPTOMODE = 62,  /* int, 0, call: 0 auto, 1 AES-CTR, 2 AES-GCM */
    SRTO_MAXREXMITBW = 63, /* int64, -1, any: rate of retransmissions, bytes/s; -1: unlimited */
    SRTO_E_SIZE = 64,

    /* Makes casts of the numbers in punctual.h to this type valid in C++. */
    PUNCTUAL_SRTO_LAST = 1999
} SRT_SOCKOPT;

/* Values of SRTO_TRANSTYPE. */
typedef enum SRT_TRANSTYPE {
    SRTT_LIVE = 0, /* live messages of one packet */
    SRTT_FILE = 1, /* a stream of bytes, or messages of any size with SRTO_MESSAGEAPI */
    SRTT_INVALID = 2
} SRT_TRANSTYPE;

/* Sizes of messages in live mode, bytes: the default, seven packets of MPEG-TS, and the largest,
 * which with 44 bytes of headers fills 1500. */
static const int SRT_LIVE_DEF_PLSIZE = 1316;
static const int SRT_LIVE_MAX_PLSIZE = 1456;
/* The default latency, ms. */
static const int SRT_LIVE_DEF_LATENCY_MS = 120;

#endif
