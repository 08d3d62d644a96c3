/* The interface of libsrt 1.5, as Punctual's C library offers it. punctual.h has what it offers
 * beyond that.
 *
 * All functions can be called from any thread. Unless a description says otherwise, a function
 * returns 0, or -1 on failure; then srt_getlasterror() has the cause, one of the SRT_E... codes.
 * "Waits" holds while SRTO_RCVSYN is set, or SRTO_SNDSYN for sending; without it the function
 * returns at once, and srt_epoll_wait() says when to call it again. */

#ifndef INC_SRTC_H
#define INC_SRTC_H

#include "version.h"

#include "platform_sys.h"

#include "logging_api.h"

#include "srt_errors.h"
#include "srt_options.h"
#include "srt_stats.h"
#include "srt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The library ---- */

/* Starts the library; the first socket does so, too. Returns 0, or 1 if it runs already. */
SRT_API int srt_startup(void);

/* Takes back one srt_startup(). The last one closes all sockets at once, without linger. */
SRT_API int srt_cleanup(void);

/* The version of the interface, 0xMMmmpp. */
SRT_API uint32_t srt_getversion(void);

/* The time in us on the clock of SRT_MSGCTRL's srctime. Its zero is arbitrary. */
SRT_API int64_t srt_time_now(void);

/* The clock behind srt_time_now(), SRT_SYNC_CLOCK_... */
SRT_API int srt_clock_type(void);

/* ---- Sockets ---- */

/* A new socket, or SRT_INVALID_SOCK. */
SRT_API SRTSOCKET srt_create_socket(void);

/* The same; its arguments have no meaning. */
SRT_ATR_DEPRECATED_PX SRT_API SRTSOCKET srt_socket(int family, int type,
                                                   int protocol) SRT_ATR_DEPRECATED;

/* Binds the socket to a local address of IPv4 or IPv6; port 0 takes a free one.
 *
 * Fails with SRT_EINVPARAM for an unknown socket or a wrong address, SRT_EINVOP if the socket is
 * bound, SRT_EBINDCONFLICT if another socket of this program has the port with other options, and
 * SRT_ESOCKFAIL if the system refuses it, with the system's error in srt_getlasterror(). */
SRT_API int srt_bind(SRTSOCKET u, const struct sockaddr *name, int namelen);

/* Binds the socket to a UDP socket of the system, which is bound already, and takes it over. */
SRT_API int srt_bind_acquire(SRTSOCKET u, UDPSOCKET sys_udp_sock);

/* The former name of srt_bind_acquire(). */
SRT_ATR_DEPRECATED_PX static inline int srt_bind_peerof(SRTSOCKET u,
                                                        UDPSOCKET sys_udp_sock) SRT_ATR_DEPRECATED;
static inline int srt_bind_peerof(SRTSOCKET u, UDPSOCKET sys_udp_sock)
{
    return srt_bind_acquire(u, sys_udp_sock);
}

/* Closes the socket or group, and is 0 for an unknown one. With SRTO_LINGER and SRTO_SNDSYN it
 * waits until buffered data is sent, within the linger time. Calls of other threads on the socket
 * end with an error. */
SRT_API int srt_close(SRTSOCKET u);

/* The state of a socket; SRTS_NONEXIST for an unknown one. */
SRT_API SRT_SOCKSTATUS srt_getsockstate(SRTSOCKET u);

/* The peer's address and the own one. *namelen is the room at `name` in bytes, and then the
 * length of the address. Both fail with SRT_EINVPARAM if the room is too small, and with
 * SRT_ENOCONN if there is no peer, or if the socket is not bound. */
SRT_API int srt_getpeername(SRTSOCKET u, struct sockaddr *name, int *namelen);
SRT_API int srt_getsockname(SRTSOCKET u, struct sockaddr *name, int *namelen);

/* The time in us at which the socket was bound, connected or accepted, on the clock of
 * srt_time_now(). 0 before that, -1 for an unknown socket. */
SRT_API int64_t srt_connection_time(SRTSOCKET sock);

/* ---- Options ---- */

/* Sets an option from `optlen` bytes; srt_options.h has the types and phases.
 *
 * Fails with SRT_EINVPARAM for an unknown option, a value out of range or a wrong length,
 * SRT_EBOUNDSOCK or SRT_ECONNSOCK if it is too late for this option, SRT_ECONNLOST if the
 * connection has ended. */
SRT_API int srt_setsockflag(SRTSOCKET u, SRT_SOCKOPT opt, const void *optval, int optlen);

/* Reads an option into `optval`. *optlen is the room in bytes, and then the length of the value,
 * without the NUL of a text. Fails with SRT_EINVPARAM if there is too little room and with
 * SRT_EINVOP for an option that cannot be read. */
SRT_API int srt_getsockflag(SRTSOCKET u, SRT_SOCKOPT opt, void *optval, int *optlen);

/* The same two with an argument that has no meaning. */
SRT_API int srt_setsockopt(SRTSOCKET u, int level, SRT_SOCKOPT optname, const void *optval,
                           int optlen);
SRT_API int srt_getsockopt(SRTSOCKET u, int level, SRT_SOCKOPT optname, void *optval,
                           int *optlen);

/* ---- Connecting ---- */

/* Begins to take calls. `backlog` is the most connections that wait to be accepted, at least 1;
 * further callers are rejected with SRT_REJ_BACKLOG. Fails with SRT_EUNBOUNDSOCK, SRT_ECONNSOCK,
 * SRT_EDUPLISTEN, SRT_ERDVNOSERV or SRT_EINVPARAM. */
SRT_API int srt_listen(SRTSOCKET u, int backlog);

/* The next connection of a listener, or a group with SRTO_GROUPCONNECT; waits for one. The new
 * socket has the listener's options. `addr` and `addrlen` get the peer's address and may be NULL.
 *
 * Returns SRT_INVALID_SOCK on failure: SRT_EASYNCRCV if there is none now, SRT_ESCLOSED if the
 * listener was closed, SRT_ENOLISTEN, and SRT_EINVPARAM if there is too little room for the
 * address; then the connection is still there for the next call. */
SRT_API SRTSOCKET srt_accept(SRTSOCKET u, struct sockaddr *addr, int *addrlen);

/* The next connection of any of several listeners; waits for at most this time in ms, or without
 * limit for -1. Fails with SRT_ETIMEOUT. */
SRT_API SRTSOCKET srt_accept_bond(const SRTSOCKET listeners[], int lsize, int64_t msTimeOut);

/* Decides about a caller before it is connected: -1 rejects, anything else accepts.
 *
 * `ns` is the new socket, whose options can still be set. `hsversion` is 5: callers with an older
 * handshake are rejected before. `streamid` is "" if the caller has none, and ends at its first
 * NUL; SRTO_STREAMID of `ns` has all of it. srt_setrejectreason() sets the reason that the caller
 * gets. An exception rejects the caller.
 *
 * It runs on a thread of the library, for one caller of a listener after the other. It may wait:
 * connections go on meanwhile, and callers give up after their SRTO_CONNTIMEO. Each link of a group
 * is a caller of its own. libsrt runs the callback on the thread that receives for all connections
 * of the port, which then wait. */
typedef int srt_listen_callback_fn(void *opaq, SRTSOCKET ns, int hsversion,
                                   const struct sockaddr *peeraddr, const char *streamid);

/* Sets the callback of a listener, also while it listens: for callers from then on. libsrt 1.5.5
 * fails then with SRT_ECONNSOCK. */
SRT_API int srt_listen_callback(SRTSOCKET lsn, srt_listen_callback_fn *hook_fn,
                                void *hook_opaque);

/* Hears that a call in the background failed, or that a connection broke. `errorcode` is an
 * SRT_E... code, `token` that of SRT_SOCKGROUPCONFIG, or -1. It must not wait. An
 * exception has no effect; libsrt ends the program. */
typedef void srt_connect_callback_fn(void *opaq, SRTSOCKET ns, int errorcode,
                                     const struct sockaddr *peeraddr, int token);

/* Sets the callback of a caller or a group. */
SRT_API int srt_connect_callback(SRTSOCKET clr, srt_connect_callback_fn *hook_fn,
                                 void *hook_opaque);

/* Calls a listener; waits for the answer. For a group, adds a link and returns its socket.
 *
 * Fails with SRT_ENOSERVER, SRT_ECONNREJ (srt_getrejectreason() has the reason), SRT_ESECFAIL,
 * SRT_ESCLOSED, SRT_ECONNSOCK, SRT_EINVPARAM or SRT_ERDVUNBOUND. After one of the first three, the
 * socket can call again. */
SRT_API int srt_connect(SRTSOCKET u, const struct sockaddr *name, int namelen);

/* The same with the first sequence number for tests. */
SRT_API int srt_connect_debug(SRTSOCKET u, const struct sockaddr *name, int namelen,
                              int forced_isn);

/* srt_bind() to `source` and srt_connect() to `target`, two addresses of `len` bytes. */
SRT_API int srt_connect_bind(SRTSOCKET u, const struct sockaddr *source,
                             const struct sockaddr *target, int len);

/* A connection of two ends that call each other: SRTO_RENDEZVOUS, srt_bind(), srt_connect(). */
SRT_API int srt_rendezvous(SRTSOCKET u, const struct sockaddr *local_name, int local_namelen,
                           const struct sockaddr *remote_name, int remote_namelen);

/* The reason of the last rejection: SRT_REJ_..., SRT_REJX_..., or from 2000 on a number of the
 * peer's program. 0 for an unknown socket. */
SRT_API int srt_getrejectreason(SRTSOCKET sock);

/* Sets the reason with which the listen callback rejects: 1000 or more. */
SRT_API int srt_setrejectreason(SRTSOCKET sock, int value);

/* A reason in words; 1000 and more share one text. */
SRT_API const char *srt_rejectreason_str(int id);

/* The texts of reasons below SRT_REJ_E_SIZE. */
SRT_API SRT_ATR_DEPRECATED extern const char *const srt_rejectreason_msg[];

/* ---- Sending and receiving ---- */

/* Sets all fields to their defaults, which srt_msgctrl_default has, too. */
SRT_API void srt_msgctrl_init(SRT_MSGCTRL *mctrl);
SRT_API extern const SRT_MSGCTRL srt_msgctrl_default;

/* Sends a message, or bytes of a stream; waits for room, at most SRTO_SNDTIMEO.
 *
 * Returns the number of bytes taken: all of a message, at least one byte of a stream. Fails with
 * SRT_EASYNCSND if there is no room, SRT_ETIMEOUT, SRT_ECONNLOST, SRT_ENOCONN, SRT_EINVALMSGAPI if
 * a live message is longer than SRTO_PAYLOADSIZE, SRT_ELARGEMSG if another message is longer than
 * the buffer, SRT_EINVOP for a link of a group, whose messages are those of the group. `ttl`,
 * `inorder` and `mctrl`: see SRT_MSGCTRL; `mctrl` may be NULL. */
SRT_API int srt_send(SRTSOCKET u, const char *buf, int len);
SRT_API int srt_sendmsg(SRTSOCKET u, const char *buf, int len, int ttl, int inorder);
SRT_API int srt_sendmsg2(SRTSOCKET u, const char *buf, int len, SRT_MSGCTRL *mctrl);

/* Receives a message, or bytes of a stream, into `len` bytes; waits for it, at most
 * SRTO_RCVTIMEO.
 *
 * Returns the number of bytes; 0 at the end of a stream of bytes. Fails with SRT_EASYNCRCV if
 * there is nothing, SRT_ETIMEOUT, SRT_ECONNLOST, SRT_ENOCONN, SRT_EINVALMSGAPI if `len` is less
 * than SRTO_PAYLOADSIZE in live mode, SRT_EINVOP for a link of a group. The rest of a message that
 * is longer than `len` is lost. */
SRT_API int srt_recv(SRTSOCKET u, char *buf, int len);
SRT_API int srt_recvmsg(SRTSOCKET u, char *buf, int len);
SRT_API int srt_recvmsg2(SRTSOCKET u, char *buf, int len, SRT_MSGCTRL *mctrl);

/* Sends `size` bytes of a file from *offset on as a stream of bytes; -1: to its end. Receives
 * `size` bytes into a file. Both wait until the end, `block` bytes at a time, move *offset, and
 * return the number of bytes. They fail with SRT_EINVALBUFFERAPI in live mode, SRT_EINVRDOFF,
 * SRT_ERDPERM, SRT_EINVWROFF, SRT_EWRPERM, or as srt_send() and srt_recv() do. */
SRT_API int64_t srt_sendfile(SRTSOCKET u, const char *path, int64_t *offset, int64_t size,
                             int block);
SRT_API int64_t srt_recvfile(SRTSOCKET u, const char *path, int64_t *offset, int64_t size,
                             int block);

/* The packets and bytes in the send buffer, each if not NULL. Returns the time from the oldest to
 * the newest in ms, or -1. */
SRT_API int srt_getsndbuffer(SRTSOCKET sock, size_t *blocks, size_t *bytes);

/* ---- Errors ---- */

/* The code of this thread's last failure, SRT_E...; a success does not change it. *errno_loc, if
 * not NULL, gets the system's error behind it, or 0. */
SRT_API int srt_getlasterror(int *errno_loc);

/* The same in words, until the next failure of this thread. */
SRT_API const char *srt_getlasterror_str(void);

/* A code in words. */
SRT_API const char *srt_strerror(int code, int errnoval);

/* Forgets this thread's last failure. */
SRT_API void srt_clearlasterror(void);

/* ---- Statistics ---- */

/* The statistics of a connection. `clear` begins a new interval; `instantaneous` gives the present
 * values of the buffers in the place of means. Both fail with SRT_EINVSOCK, SRT_ENOCONN, and with
 * SRT_ECONNLOST after the connection. */
SRT_API int srt_bstats(SRTSOCKET u, SRT_TRACEBSTATS *perf, int clear);
SRT_API int srt_bistats(SRTSOCKET u, SRT_TRACEBSTATS *perf, int clear, int instantaneous);

/* ---- Readiness of many sockets ---- */

/* A new set of sockets, a number greater than 0. */
SRT_API int srt_epoll_create(void);

/* Ends the set. This and the functions below fail with SRT_EINVPOLLID for an unknown set. */
SRT_API int srt_epoll_release(int eid);

/* Adds a socket of the library (usock) or of the system (ssock). *events is a combination of
 * SRT_EPOLL_..., NULL means IN, OUT and ERR. For a socket that the set has, the events replace the
 * former ones, as with update. */
SRT_API int srt_epoll_add_usock(int eid, SRTSOCKET u, const int *events);
SRT_API int srt_epoll_add_ssock(int eid, SYSSOCKET s, const int *events);
SRT_API int srt_epoll_update_usock(int eid, SRTSOCKET u, const int *events);
SRT_API int srt_epoll_update_ssock(int eid, SYSSOCKET s, const int *events);

/* Removes a socket, or all sockets of the library. A wait for a set that becomes empty ends with
 * SRT_EPOLLEMPTY. */
SRT_API int srt_epoll_remove_usock(int eid, SRTSOCKET u);
SRT_API int srt_epoll_remove_ssock(int eid, SYSSOCKET s);
SRT_API int srt_epoll_clear_usocks(int eid);

/* Sets flags of SRT_EPOLL_FLAGS; 0 clears all, -1 changes nothing. Returns the former ones. */
SRT_API int32_t srt_epoll_set(int eid, int32_t flags);

/* Waits until a socket is ready, for at most msTimeOut ms, or without limit for -1.
 *
 * Each pair of an array and its length gets the sockets that are ready: of the library to read and
 * to write, of the system to read and to write. A socket with ERR is in both. A pair may be NULL.
 * Returns the number of entries, and changes nothing on failure: SRT_ETIMEOUT if no socket is
 * ready, SRT_EPOLLEMPTY if the set is empty, SRT_EINVPARAM. */
SRT_API int srt_epoll_wait(int eid, SRTSOCKET *readfds, int *rnum, SRTSOCKET *writefds, int *wnum,
                           int64_t msTimeOut, SYSSOCKET *lrfds, int *lrnum, SYSSOCKET *lwfds,
                           int *lwnum);

/* The same with one entry and all events for each socket, for sets without sockets of the system,
 * in the order in which they became ready. Returns the number of entries, one more if there was
 * no room for further ones, 0 when the time is over. */
SRT_API int srt_epoll_uwait(int eid, SRT_EPOLL_EVENT *fdsSet, int fdsSize, int64_t msTimeOut);

/* ---- Groups ---- */

/* A new group without links, or SRT_INVALID_SOCK. */
SRT_API SRTSOCKET srt_create_group(SRT_GROUP_TYPE type);

/* The group of a link; SRT_INVALID_SOCK and SRT_EINVPARAM for a socket without one. */
SRT_API SRTSOCKET srt_groupof(SRTSOCKET socket);

/* The links of a group. *inoutlen is the length of `output`, and then the number of links, which
 * is the result as well; 0 if `output` is NULL. Fails with SRT_ELARGEMSG if it is too short. */
SRT_API int srt_group_data(SRTSOCKET socketgroup, SRT_SOCKGROUPDATA *output, size_t *inoutlen);

/* Options for one link of a group. srt_config_add() takes an option of those that a link can have
 * on its own. NULL can be deleted. */
SRT_API SRT_SOCKOPT_CONFIG *srt_create_config(void);
SRT_API void srt_delete_config(SRT_SOCKOPT_CONFIG *config);
SRT_API int srt_config_add(SRT_SOCKOPT_CONFIG *config, SRT_SOCKOPT option, const void *contents,
                           int len);

/* A link to `adr` from `src`, which may be NULL; both have `namelen` bytes. errorcode is not
 * SRT_SUCCESS if the addresses are wrong. */
SRT_API SRT_SOCKGROUPCONFIG srt_prepare_endpoint(const struct sockaddr *src,
                                                 const struct sockaddr *adr, int namelen);

/* Connects the links and waits for the first one. Returns its socket, or without SRTO_RCVSYN the
 * last one begun; the entries get the socket, the error and, in place of -1, the token of each.
 * Fails with SRT_ECONNLOST if no link is connected.
 *
 * The library calls a lost link again by itself while another one is connected. A call with the
 * same address and token takes the place of the library's, or its link. A group that has lost all
 * its links is SRTS_BROKEN and can be called again. */
SRT_API int srt_connect_group(SRTSOCKET group, SRT_SOCKGROUPCONFIG name[], int arraysize);

/* ---- The log ---- */

/* The least serious level that is logged, LOG_CRIT to LOG_DEBUG; LOG_WARNING at first. */
SRT_API void srt_setloglevel(int ll);

/* Switches a functional area on or off, SRT_LOGFA_..., or switches on just these. */
SRT_API void srt_addlogfa(int fa);
SRT_API void srt_dellogfa(int fa);
SRT_API void srt_resetlogfa(const int *fara, size_t fara_size);

/* The parts of a line that are left out, SRT_LOGF_... */
SRT_API void srt_setlogflags(int flags);

/* The function that receives the messages; NULL: standard error. The one before is no longer called
 * when this returns. */
SRT_API void srt_setloghandler(void *opaque, SRT_LOG_HANDLER_FN *handler);

#ifdef __cplusplus
}
#endif

#endif
