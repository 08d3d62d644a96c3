/* Statistics of a connection, by srt_bstats() and srt_bistats().
 *
 * A field with Total counts from the connection's beginning; the field of the same name without it
 * counts from the last call with `clear`. Bytes include 44 per packet for the headers of IPv4, UDP
 * and SRT, unless a comment says payload. docs/statistics.md has more about each. */

#ifndef PUNCTUAL_SRT_STATS_H
#define PUNCTUAL_SRT_STATS_H

#include <stdint.h>

typedef struct CBytePerfMon {
    int64_t msTimeStamp; /* since the socket was opened, ms */

    /* Since the connection's beginning. */
    int64_t pktSentTotal;          /* data packets sent, with retransmissions and filter packets */
    int64_t pktRecvTotal;          /* data packets that arrived, with duplicates */
    int pktSndLossTotal;           /* sent packets reported lost, once for each report */
    int pktRcvLossTotal;           /* packets missing when a later one arrived */
    int pktRetransTotal;           /* retransmissions sent */
    int pktSentACKTotal;           /* ACKs sent, without light ones */
    int pktRecvACKTotal;           /* ACKs received that acknowledged more packets */
    int pktSentNAKTotal;           /* NAKs sent */
    int pktRecvNAKTotal;           /* NAKs received */
    int64_t usSndDurationTotal;    /* time with something in the send buffer, us */
    int pktSndDropTotal;           /* not sent, or not sent again, because too late */
    int pktRcvDropTotal;           /* never delivered */
    int pktRcvUndecryptTotal;      /* could not be decrypted */
    uint64_t byteSentTotal;        /* of pktSentTotal */
    uint64_t byteRecvTotal;        /* of pktRecvTotal */
    uint64_t byteRcvLossTotal;     /* of pktRcvLossTotal, by the mean size */
    uint64_t byteRetransTotal;     /* of pktRetransTotal */
    uint64_t byteSndDropTotal;     /* of pktSndDropTotal */
    uint64_t byteRcvDropTotal;     /* of pktRcvDropTotal, by the mean size */
    uint64_t byteRcvUndecryptTotal; /* of pktRcvUndecryptTotal, payload */

    /* Since the last call with `clear`. */
    int64_t pktSent;               /* as with Total, above */
    int64_t pktRecv;
    int pktSndLoss;
    int pktRcvLoss;
    int pktRetrans;
    int pktRcvRetrans;             /* retransmissions that arrived */
    int pktSentACK;
    int pktRecvACK;
    int pktSentNAK;
    int pktRecvNAK;
    double mbpsSendRate;           /* byteSent over the interval, Mb/s */
    double mbpsRecvRate;           /* byteRecv over the interval, Mb/s */
    int64_t usSndDuration;
    int pktReorderDistance;        /* by how many packets one was overtaken at most; not cleared */
    double pktRcvAvgBelatedTime;   /* mean lateness of belated packets, ms; not cleared */
    int64_t pktRcvBelated;         /* arrived after they were delivered or given up */
    int pktSndDrop;
    int pktRcvDrop;
    int pktRcvUndecrypt;
    uint64_t byteSent;
    uint64_t byteRecv;
    uint64_t byteRcvLoss;
    uint64_t byteRetrans;
    uint64_t byteSndDrop;
    uint64_t byteRcvDrop;
    uint64_t byteRcvUndecrypt;

    /* At present. */
    double usPktSndPeriod;         /* time between two packets at the rate limit, us */
    int pktFlowWindow;             /* packets that the peer has room for */
    int pktCongestionWindow;       /* most packets in flight */
    int pktFlightSize;             /* packets in flight */
    double msRTT;                  /* smoothed round-trip time, ms */
    double mbpsBandwidth;          /* estimated capacity of the link, Mb/s */
    int byteAvailSndBuf;           /* free in the send buffer, bytes */
    int byteAvailRcvBuf;           /* free in the receive buffer, bytes */
    double mbpsMaxBW;              /* limit of the sending rate, Mb/s */
    int byteMSS;                   /* largest datagram with its headers, bytes */

    /* The buffers: means over about a second from srt_bstats(), present values from
     * srt_bistats(). Bytes are payload. */
    int pktSndBuf;                 /* in the send buffer */
    int byteSndBuf;
    int msSndBuf;                  /* from the oldest to the newest, ms */
    int msSndTsbPdDelay;           /* latency of the peer's receiver, ms */
    int pktRcvBuf;                 /* in the receive buffer */
    int byteRcvBuf;
    int msRcvBuf;                  /* from the oldest to the newest, ms */
    int msRcvTsbPdDelay;           /* latency of this receiver, ms */

    /* The packet filter. */
    int pktSndFilterExtraTotal;    /* parity packets sent */
    int pktRcvFilterExtraTotal;    /* parity packets that arrived */
    int pktRcvFilterSupplyTotal;   /* packets rebuilt */
    int pktRcvFilterLossTotal;     /* packets that could not be rebuilt */
    int pktSndFilterExtra;
    int pktRcvFilterExtra;
    int pktRcvFilterSupply;
    int pktRcvFilterLoss;

    int pktReorderTolerance;       /* the present reordering tolerance, packets */

    /* Originals alone. */
    int64_t pktSentUniqueTotal;    /* sent */
    int64_t pktRecvUniqueTotal;    /* stored for delivery, each once */
    uint64_t byteSentUniqueTotal;
    uint64_t byteRecvUniqueTotal;
    int64_t pktSentUnique;
    int64_t pktRecvUnique;
    uint64_t byteSentUnique;
    uint64_t byteRecvUnique;
} SRT_TRACEBSTATS;

#endif
