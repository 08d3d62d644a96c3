/* Groups of links, on libraries that have them. Debian's libsrt has none: the record beside this
 * program has the rows of one that was built with them. */
#include "common.h"

#include <stdio.h>
#include <string.h>

/* The links of a group, sorted by token and weight. */
struct links {
    SRT_SOCKGROUPDATA link[8];
    int count;
};

static struct links links_of(SRTSOCKET group)
{
    struct links links = { .count = 0 };
    size_t room = 8;
    links.count = srt_group_data(group, links.link, &room);
    for (int i = 0; i < links.count; i++)
        for (int j = i + 1; j < links.count; j++)
            if (links.link[j].token < links.link[i].token
                || (links.link[j].token == links.link[i].token
                    && links.link[j].weight < links.link[i].weight)) {
                SRT_SOCKGROUPDATA other = links.link[i];
                links.link[i] = links.link[j];
                links.link[j] = other;
            }
    return links;
}

static const char *member_name(SRT_MEMBERSTATUS state)
{
    switch (state) {
    case SRT_GST_PENDING: return "PENDING";
    case SRT_GST_IDLE: return "IDLE";
    case SRT_GST_RUNNING: return "RUNNING";
    case SRT_GST_BROKEN: return "BROKEN";
    }
    return "another";
}

/* A row of all links: the states of socket and link, the weight and the token. */
static void links_row(const char *situation, SRTSOCKET group)
{
    struct links links = links_of(group);
    char text[256] = "none";
    int length = 0;
    for (int i = 0; i < links.count; i++) {
        const SRT_SOCKGROUPDATA *it = &links.link[i];
        const char *token = it->token >= 0 && it->token < 100 ? say("%d", it->token)
            : it->token == -1 ? "-1" : "one of the library";
        length += snprintf(text + length, sizeof text - length, "%s%s %s weight %d token %s",
                           i ? "; " : "", state_name(it->sockstate), member_name(it->memberstate),
                           it->weight, token);
    }
    value("srt_group_data", situation, "%s", text);
}

static int wait_links(SRTSOCKET group, int count, int member, int ms)
{
    double end = now_ms() + ms;
    while (now_ms() < end) {
        struct links links = links_of(group);
        int right = links.count == count || count == -1;
        for (int i = 0; i < links.count; i++)
            right = right && (member == -1 || (int)links.link[i].memberstate == member);
        if (right)
            return 1;
        pause_ms(5);
    }
    return 0;
}

static SRT_SOCKGROUPCONFIG link_to(int port, int token, int weight)
{
    struct sockaddr_in address = loopback(port);
    SRT_SOCKGROUPCONFIG config =
        srt_prepare_endpoint(NULL, (struct sockaddr *)&address, sizeof address);
    config.token = token;
    config.weight = weight;
    return config;
}

static void accepts_groups(SRTSOCKET s)
{
    set_int(s, SRTO_GROUPCONNECT, 1);
}

/* A group with two links to one listener, and the group at the other end. */
struct ends {
    SRTSOCKET listener;
    SRTSOCKET caller;
    SRTSOCKET accepted;
    int port;
};

static struct ends ends(SRT_GROUP_TYPE type)
{
    struct ends ends;
    ends.listener = listening(accepts_groups);
    ends.port = port_of(ends.listener);
    ends.caller = srt_create_group(type);
    SRT_SOCKGROUPCONFIG config[2] = { link_to(ends.port, 1, 1), link_to(ends.port, 2, 2) };
    srt_connect_group(ends.caller, config, 2);
    ends.accepted = srt_accept(ends.listener, NULL, NULL);
    set_int(ends.accepted, SRTO_RCVTIMEO, LONG_MS);
    wait_links(ends.caller, 2, -1, LONG_MS);
    wait_links(ends.accepted, 2, -1, LONG_MS);
    pause_ms(SETTLE_MS);
    return ends;
}

static void close_ends(struct ends *ends)
{
    srt_close(ends->caller);
    srt_close(ends->accepted);
    srt_close(ends->listener);
}

static const char *group_or_not(SRTSOCKET s)
{
    return s == SRT_INVALID_SOCK ? "-1" : s & SRTGROUP_MASK ? "a group" : "a socket";
}

static void set_row(const char *situation, SRTSOCKET s, SRT_SOCKOPT option, const char *name,
                    const void *bytes, int length)
{
    answer("srt_setsockflag", say("%s, %s", situation, name),
           srt_setsockflag(s, option, bytes, length));
}

static void option_row(const char *situation, SRTSOCKET s, SRT_SOCKOPT option, const char *name)
{
    int32_t number[16] = { 0 };
    int length = sizeof number;
    const char *key = say("%s, %s", situation, name);
    if (srt_getsockflag(s, option, number, &length) == SRT_ERROR)
        answer("srt_getsockflag", key, SRT_ERROR);
    else if (option == SRTO_ISN || option == SRTO_PEERVERSION)
        value("srt_getsockflag", key, "%s", number[0] > 0 ? ">0" : say("%d", number[0]));
    else
        value("srt_getsockflag", key, "%d", length == 1 ? *(char *)number : number[0]);
}

static void of_groups(void)
{
    int one = 1, five = 5001, two = 2000, size = 1400;
    long long rate = 100000;
    char on = 1;
    const struct {
        SRT_SOCKOPT option;
        const char *name;
        const void *bytes;
        int length;
    } rows[] = {
        { SRTO_RENDEZVOUS, "RENDEZVOUS", &on, 1 },
        { SRTO_SENDER, "SENDER", &on, 1 },
        { SRTO_TSBPDMODE, "TSBPDMODE", &on, 1 },
        { SRTO_CONGESTION, "CONGESTION", "live", 4 },
        { SRTO_TRANSTYPE, "TRANSTYPE", &(int){ SRTT_LIVE }, 4 },
        { SRTO_GROUPCONNECT, "GROUPCONNECT", &one, 4 },
        { SRTO_IPV6ONLY, "IPV6ONLY", &one, 4 },
        { SRTO_BINDTODEVICE, "BINDTODEVICE", "lo", 2 },
        { SRTO_GROUPMINSTABLETIMEO, "GROUPMINSTABLETIMEO 5001", &five, 4 },
        { SRTO_GROUPMINSTABLETIMEO, "GROUPMINSTABLETIMEO 2000", &two, 4 },
        { SRTO_GROUPMINSTABLETIMEO, "GROUPMINSTABLETIMEO 1", &one, 4 },
        { SRTO_GROUPTYPE, "GROUPTYPE", &one, 4 },
        { SRTO_STATE, "STATE", &one, 4 },
        { SRTO_KMSTATE, "KMSTATE", &one, 4 },
        { SRTO_PACKETFILTER, "PACKETFILTER", "fec,cols:10", 11 },
        { SRTO_MESSAGEAPI, "MESSAGEAPI", &on, 1 },
        { SRTO_PAYLOADSIZE, "PAYLOADSIZE", &size, 4 },
        { SRTO_STREAMID, "STREAMID", "camera", 6 },
        { SRTO_PASSPHRASE, "PASSPHRASE", "passphrase of both", 18 },
        { SRTO_MSS, "MSS", &size, 4 },
        { SRTO_LATENCY, "LATENCY", &two, 4 },
        { SRTO_CONNTIMEO, "CONNTIMEO", &two, 4 },
        { SRTO_MAXBW, "MAXBW", &rate, 8 },
        { SRTO_OHEADBW, "OHEADBW", &(int){ 20 }, 4 },
        { SRTO_SNDSYN, "SNDSYN", &on, 1 },
        { SRTO_REUSEADDR, "REUSEADDR", &on, 1 },
        { SRTO_NAKREPORT, "NAKREPORT", &on, 1 },
    };
    struct ends connected = ends(SRT_GTYPE_BROADCAST);
    SRTSOCKET link = links_of(connected.caller).link[0].id;
    SRT_SOCKOPT_CONFIG *config = srt_create_config();
    for (int i = 0; i < COUNT(rows); i++) {
        SRTSOCKET group = srt_create_group(SRT_GTYPE_BROADCAST);
        set_row("group", group, rows[i].option, rows[i].name, rows[i].bytes, rows[i].length);
        set_row("connected group", connected.caller, rows[i].option, rows[i].name, rows[i].bytes,
                rows[i].length);
        set_row("link", link, rows[i].option, rows[i].name, rows[i].bytes, rows[i].length);
        value("srt_config_add", rows[i].name, "%d",
              srt_config_add(config, rows[i].option, rows[i].bytes, rows[i].length));
        srt_close(group);
    }
    const struct {
        SRT_SOCKOPT option;
        const char *name;
        int length;
    } more[] = {
        { SRTO_DRIFTTRACER, "DRIFTTRACER", 4 }, { SRTO_KMREFRESHRATE, "KMREFRESHRATE", 4 },
        { SRTO_KMPREANNOUNCE, "KMPREANNOUNCE", 4 }, { SRTO_LOSSMAXTTL, "LOSSMAXTTL", 4 },
        { SRTO_MINVERSION, "MINVERSION", 4 }, { SRTO_PEERIDLETIMEO, "PEERIDLETIMEO", 4 },
        { SRTO_IPTOS, "IPTOS", 4 }, { SRTO_IPTTL, "IPTTL", 4 },
        { SRTO_SNDDROPDELAY, "SNDDROPDELAY", 4 }, { SRTO_SNDBUF, "SNDBUF", 4 },
        { SRTO_RCVBUF, "RCVBUF", 4 }, { SRTO_UDP_SNDBUF, "UDP_SNDBUF", 4 },
        { SRTO_UDP_RCVBUF, "UDP_RCVBUF", 4 }, { SRTO_RETRANSMITALGO, "RETRANSMITALGO", 4 },
        { SRTO_TLPKTDROP, "TLPKTDROP", 4 }, { SRTO_PBKEYLEN, "PBKEYLEN", 4 },
        { SRTO_FC, "FC", 4 }, { SRTO_INPUTBW, "INPUTBW", 8 }, { SRTO_LINGER, "LINGER", 8 },
    };
    for (int i = 0; i < COUNT(more); i++)
        value("srt_config_add", more[i].name, "%d",
              srt_config_add(config, more[i].option, &rate, more[i].length));
    srt_delete_config(config);
    const struct {
        SRT_SOCKOPT option;
        const char *name;
    } reads[] = {
        { SRTO_STATE, "STATE" }, { SRTO_EVENT, "EVENT" }, { SRTO_KMSTATE, "KMSTATE" },
        { SRTO_SNDKMSTATE, "SNDKMSTATE" }, { SRTO_RCVKMSTATE, "RCVKMSTATE" },
        { SRTO_ISN, "ISN" }, { SRTO_GROUPTYPE, "GROUPTYPE" }, { SRTO_RCVLATENCY, "RCVLATENCY" },
        { SRTO_PEERVERSION, "PEERVERSION" }, { SRTO_SNDSYN, "SNDSYN" },
        { SRTO_GROUPMINSTABLETIMEO, "GROUPMINSTABLETIMEO" }, { SRTO_CONNTIMEO, "CONNTIMEO" },
        { SRTO_PAYLOADSIZE, "PAYLOADSIZE" }, { SRTO_MSS, "MSS" }, { SRTO_SNDDATA, "SNDDATA" },
    };
    SRTSOCKET fresh = srt_create_group(SRT_GTYPE_BACKUP);
    struct ends again = ends(SRT_GTYPE_BROADCAST);
    link = links_of(again.caller).link[0].id;
    SRTSOCKET theirs = links_of(again.accepted).link[0].id;
    for (int i = 0; i < COUNT(reads); i++) {
        option_row("group", fresh, reads[i].option, reads[i].name);
        option_row("connected group", again.caller, reads[i].option, reads[i].name);
        option_row("accepted group", again.accepted, reads[i].option, reads[i].name);
        option_row("link", link, reads[i].option, reads[i].name);
        option_row("accepted link", theirs, reads[i].option, reads[i].name);
    }
    srt_close(fresh);
    close_ends(&again);
    close_ends(&connected);
}

static void secured(SRTSOCKET s)
{
    accepts_groups(s);
    set_string(s, SRTO_PASSPHRASE, "passphrase of both");
}

static void encrypted(void)
{
    SRTSOCKET listener = listening(secured);
    SRTSOCKET group = srt_create_group(SRT_GTYPE_BROADCAST);
    set_string(group, SRTO_PASSPHRASE, "passphrase of both");
    SRT_SOCKGROUPCONFIG config = link_to(port_of(listener), 1, 0);
    value("srt_connect_group", "with a passphrase", "%s",
          srt_connect_group(group, &config, 1) > 0 ? "a link" : "-1");
    SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
    value("srt_getsockflag", "encrypted group, KMSTATE", "%s",
          km_name(get_int(group, SRTO_KMSTATE)));
    value("srt_getsockflag", "encrypted accepted group, KMSTATE", "%s",
          km_name(get_int(accepted, SRTO_KMSTATE)));
    value("srt_getsockflag", "encrypted link, KMSTATE", "%s",
          km_name(get_int(config.id, SRTO_KMSTATE)));
    srt_close(group);
    srt_close(accepted);
    srt_close(listener);
}

/* A link is a socket of its own. */
static void link_as_socket(void)
{
    struct ends it = ends(SRT_GTYPE_BROADCAST);
    SRTSOCKET link = links_of(it.caller).link[0].id;
    SRTSOCKET theirs = links_of(it.accepted).link[0].id;
    struct sockaddr_in address;
    int length = sizeof address;
    SRT_TRACEBSTATS statistics;
    state("link", link);
    value("srt_groupof", "link", "%s", srt_groupof(link) == it.caller ? "its group" : "another");
    value("srt_groupof", "accepted link", "%s",
          srt_groupof(theirs) == it.accepted ? "its group" : "another");
    int got = srt_getpeername(link, (struct sockaddr *)&address, &length);
    value("srt_getpeername", "link", "%d, port %s", got,
          ntohs(address.sin_port) == it.port ? "as called" : "another");
    length = sizeof address;
    got = srt_getsockname(theirs, (struct sockaddr *)&address, &length);
    value("srt_getsockname", "accepted link", "%d, port %s", got,
          ntohs(address.sin_port) == it.port ? "as called" : "another");
    length = sizeof address;
    answer("srt_getpeername", "group",
           srt_getpeername(it.caller, (struct sockaddr *)&address, &length));
    answer("srt_getsockname", "group",
           srt_getsockname(it.caller, (struct sockaddr *)&address, &length));
    answer("srt_bistats", "link", srt_bistats(link, &statistics, 0, 1));
    answer("srt_bstats", "group", srt_bstats(it.caller, &statistics, 0));
    int eid = watch(link, 0);
    wait_events(eid, SRT_EPOLL_OUT, LONG_MS);
    ready("link", eid);
    for (int i = 0; i < 10; i++)
        srt_send(it.caller, "message", 7);
    char bytes[1500];
    for (int i = 0; i < 10; i++)
        srt_recv(it.accepted, bytes, sizeof bytes);
    srt_bstats(link, &statistics, 0);
    value("srt_bstats", "link, packets sent", "%d", (int)statistics.pktSentUniqueTotal);
    srt_bstats(theirs, &statistics, 0);
    value("srt_bstats", "accepted link, packets received", "%d",
          (int)statistics.pktRecvUniqueTotal);
    srt_bstats(it.caller, &statistics, 0);
    value("srt_bstats", "group, packets sent", "%d", (int)statistics.pktSentUniqueTotal);
    answer("srt_bind", "link", srt_bind(link, (struct sockaddr *)&address, sizeof address));
    answer("srt_listen", "link", srt_listen(link, 1));
    answer("srt_connect", "link", call(link, it.port));
    answer("srt_close", "link", srt_close(link));
    wait_state(link, SRTS_NONEXIST, LONG_MS);
    state("link, closed", link);
    answer("srt_groupof", "link, closed", srt_groupof(link));
    links_row("after a link was closed", it.caller);
    wait_links(it.accepted, 1, -1, LONG_MS);
    links_row("accepted, after a link was closed", it.accepted);
    close_ends(&it);
}

/* The states of links before and after data. */
static void data(SRT_GROUP_TYPE type, const char *name)
{
    struct ends it = ends(type);
    char bytes[1500];
    links_row(say("%s before data", name), it.caller);
    links_row(say("%s before data, accepted", name), it.accepted);
    /* A backup group may send over both links until it knows the better one. */
    int running = type == SRT_GTYPE_BACKUP ? 1 : 2;
    for (double end = now_ms() + LONG_MS; now_ms() < end;) {
        srt_send(it.caller, "message", 7);
        pause_ms(20);
        struct links links = links_of(it.caller);
        int run = 0;
        for (int i = 0; i < links.count; i++)
            run += links.link[i].memberstate == SRT_GST_RUNNING;
        if (run == running)
            break;
    }
    SRT_MSGCTRL control = srt_msgctrl_default;
    SRT_SOCKGROUPDATA places[4];
    control.grpdata = places;
    control.grpdata_size = 4;
    int taken = srt_recvmsg2(it.accepted, bytes, sizeof bytes, &control);
    value("srt_recvmsg2", say("%s", name), "%d, links %d", taken, (int)control.grpdata_size);
    links_row(say("%s after data", name), it.caller);
    close_ends(&it);
}

/* A group that calls a port which does not answer. */
static void connecting(void)
{
    int silent;
    silent_socket(&silent);
    SRTSOCKET group = srt_create_group(SRT_GTYPE_BROADCAST);
    char bytes[1500];
    state("group", group);
    answer("srt_send", "group without links", srt_send(group, "x", 1));
    answer("srt_recv", "group without links", srt_recv(group, bytes, sizeof bytes));
    links_row("group without links", group);
    unblock(group);
    set_int(group, SRTO_CONNTIMEO, 1000);
    int eid = watch(group, 0);
    SRT_SOCKGROUPCONFIG config = link_to(silent, 7, 3);
    value("srt_connect_group", "no answer, not blocking", "%s",
          srt_connect_group(group, &config, 1) > 0 ? "a link" : last_error());
    state("group that calls", group);
    links_row("group that calls", group);
    answer_ready("srt_send", "group that calls", srt_send(group, "x", 1), group, eid);
    answer("srt_recv", "group that calls", srt_recv(group, bytes, sizeof bytes));
    state("link that is called", config.id);
    SRT_SOCKGROUPCONFIG unnamed = link_to(silent, -1, 0);
    srt_connect_group(group, &unnamed, 1);
    value("srt_connect_group", "a link without a token", "%s",
          unnamed.token == -1 ? "stays without" : "gets one");
    srt_close(group);
    group = srt_create_group(SRT_GTYPE_BROADCAST);
    set_int(group, SRTO_CONNTIMEO, 300);
    config = link_to(silent, 7, 3);
    value("srt_connect_group", "no answer, blocking", "%d, %s",
          srt_connect_group(group, &config, 1), last_error());
    state("group after a failed call", group);
    answer("srt_send", "group after a failed call", srt_send(group, "x", 1));
    links_row("group after a failed call", group);
    SRTSOCKET listener = listening(accepts_groups);
    config = link_to(port_of(listener), 7, 3);
    value("srt_connect_group", "after a failed call", "%s",
          srt_connect_group(group, &config, 1) > 0 ? "a link" : last_error());
    state("group that called again after a failed call", group);
    srt_close(group);
    srt_close(listener);
}

/* All links are lost, and the program calls again. */
static void lost(void)
{
    struct ends it = ends(SRT_GTYPE_BROADCAST);
    char bytes[1500];
    srt_send(it.caller, "one", 3);
    int taken = srt_recv(it.accepted, bytes, sizeof bytes);
    value("srt_recv", "before all links are lost", "%d", taken);
    int eid = watch(it.caller, SRT_EPOLL_OUT | SRT_EPOLL_ERR | SRT_EPOLL_UPDATE);
    srt_close(it.accepted);
    wait_state(it.caller, SRTS_BROKEN, LONG_MS);
    wait_links(it.caller, 0, -1, LONG_MS);
    ready("group, all links lost", eid);
    state("group, all links lost", it.caller);
    links_row("group, all links lost", it.caller);
    answer("srt_send", "group, all links lost", srt_send(it.caller, "x", 1));
    answer("srt_recv", "group, all links lost", srt_recv(it.caller, bytes, sizeof bytes));
    pause_ms(2500);
    state("group, all links lost 2.5 s ago", it.caller);
    SRT_SOCKGROUPCONFIG config = link_to(it.port, 1, 1);
    value("srt_connect_group", "all links lost", "%s",
          srt_connect_group(it.caller, &config, 1) > 0 ? "a link" : last_error());
    state("group that called again", it.caller);
    it.accepted = srt_accept(it.listener, NULL, NULL);
    value("srt_accept", "a group that called again", "%s", group_or_not(it.accepted));
    set_int(it.accepted, SRTO_RCVTIMEO, LONG_MS);
    srt_send(it.caller, "three", 5);
    value("srt_recv", "from a group that called again", "%d",
          srt_recv(it.accepted, bytes, sizeof bytes));
    links_row("group that called again", it.caller);
    close_ends(&it);
    state("group, closed", it.caller);
}

/* Changes of a group are events. */
static void updates(void)
{
    SRTSOCKET listener = listening(accepts_groups);
    int port = port_of(listener);
    int eid = watch(listener, SRT_EPOLL_IN | SRT_EPOLL_ERR | SRT_EPOLL_UPDATE);
    SRTSOCKET group = srt_create_group(SRT_GTYPE_BROADCAST);
    SRT_SOCKGROUPCONFIG config = link_to(port, 1, 0);
    srt_connect_group(group, &config, 1);
    wait_events(eid, SRT_EPOLL_IN, LONG_MS);
    ready("listener, the first link", eid);
    SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
    ready("listener, accepted", eid);
    config = link_to(port, 2, 0);
    srt_connect_group(group, &config, 1);
    value("srt_epoll_uwait", "listener, a further link", "%s",
          wait_events(eid, SRT_EPOLL_UPDATE, LONG_MS) ? "UPDATE" : "nothing");
    wait_links(accepted, 2, -1, LONG_MS);
    int own = watch(group, SRT_EPOLL_IN | SRT_EPOLL_ERR | SRT_EPOLL_UPDATE);
    int theirs = watch(accepted, SRT_EPOLL_IN | SRT_EPOLL_ERR | SRT_EPOLL_UPDATE);
    srt_close(config.id);
    value("srt_epoll_uwait", "group, a link was closed", "%s",
          wait_events(own, SRT_EPOLL_UPDATE, LONG_MS) ? "UPDATE" : "nothing");
    value("srt_epoll_uwait", "accepted group, a link was lost", "%s",
          wait_events(theirs, SRT_EPOLL_UPDATE, LONG_MS) ? "UPDATE" : "nothing");
    srt_close(group);
    srt_close(accepted);
    srt_close(listener);
}

/* Hooks of groups. */
static int asked;
static SRTSOCKET asked_about[4];

static int listen_hook(void *opaque, SRTSOCKET ns, int version, const struct sockaddr *peer,
                       const char *stream_id)
{
    (void)opaque, (void)version, (void)peer, (void)stream_id;
    if (asked < 4)
        asked_about[asked] = ns;
    asked++;
    return 0;
}

static volatile int failed_token = -77, failures;
static volatile SRTSOCKET failed_link;

static void connect_hook(void *opaque, SRTSOCKET ns, int error, const struct sockaddr *peer,
                         int token)
{
    (void)opaque, (void)error, (void)peer;
    failed_token = token;
    failed_link = ns;
    failures++;
}

static void hooks(void)
{
    SRTSOCKET listener = opened(accepts_groups);
    srt_listen_callback(listener, listen_hook, NULL);
    struct sockaddr_in any = loopback(0);
    srt_bind(listener, (struct sockaddr *)&any, sizeof any);
    srt_listen(listener, 5);
    SRTSOCKET group = srt_create_group(SRT_GTYPE_BROADCAST);
    SRT_SOCKGROUPCONFIG config[2] = { link_to(port_of(listener), 1, 0),
                                      link_to(port_of(listener), 2, 0) };
    srt_connect_group(group, config, 2);
    SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
    wait_links(accepted, 2, -1, LONG_MS);
    value("srt_listen_callback", "two links of a group, calls", "%d", asked);
    value("srt_listen_callback", "a link of a group, socket", "%s", group_or_not(asked_about[0]));
    value("srt_groupof", "the socket of a listen callback", "%s",
          srt_groupof(asked_about[0]) == accepted ? "the accepted group" : "another");
    int silent;
    silent_socket(&silent);
    answer("srt_connect_callback", "a group that is connected",
           srt_connect_callback(group, connect_hook, NULL));
    srt_close(group);
    group = srt_create_group(SRT_GTYPE_BROADCAST);
    answer("srt_connect_callback", "a group", srt_connect_callback(group, connect_hook, NULL));
    unblock(group);
    set_int(group, SRTO_CONNTIMEO, 200);
    SRT_SOCKGROUPCONFIG lost = link_to(silent, 42, 0);
    srt_connect_group(group, &lost, 1);
    for (int i = 0; i < 200 && !failures; i++)
        pause_ms(20);
    value("srt_connect_callback", "a link that fails", "%s, token %d",
          failed_link == lost.id ? "the link" : failed_link == group ? "the group" : "another",
          failed_token);
    srt_close(group);
    srt_close(accepted);
    srt_close(listener);
}

static void broadcast(void)
{
    data(SRT_GTYPE_BROADCAST, "broadcast");
}

static void backup(void)
{
    data(SRT_GTYPE_BACKUP, "backup");
}

int main(void)
{
    program_start();
    section *const sections[] = { of_groups, encrypted, link_as_socket, broadcast, backup,
                                  connecting, lost, updates, hooks };
    at_once(sections, COUNT(sections));
    return program_end();
}
