/* Prints the type of every function and object. Compiled with our headers and with libsrt's, it
 * prints the same lines. */
#define SRT_NO_DEPRECATED
#include <srt/srt.h>

#include <cstdio>
#include <typeinfo>

#define P(what) std::printf("%s: %s\n", #what, typeid(decltype(what)).name());
#define T(type) std::printf("%s: %s\n", #type, typeid(type).name());

int main()
{
    P(srt_startup) P(srt_cleanup) P(srt_getversion) P(srt_time_now) P(srt_clock_type)
    P(srt_create_socket) P(srt_socket) P(srt_bind) P(srt_bind_acquire) P(srt_bind_peerof)
    P(srt_close) P(srt_getsockstate) P(srt_getpeername) P(srt_getsockname)
    P(srt_connection_time) P(srt_setsockflag) P(srt_getsockflag) P(srt_setsockopt)
    P(srt_getsockopt) P(srt_listen) P(srt_accept) P(srt_accept_bond) P(srt_listen_callback)
    P(srt_connect_callback) P(srt_connect) P(srt_connect_debug) P(srt_connect_bind)
    P(srt_rendezvous) P(srt_getrejectreason) P(srt_setrejectreason) P(srt_rejectreason_str)
    P(srt_msgctrl_init) P(srt_send) P(srt_sendmsg) P(srt_sendmsg2) P(srt_recv) P(srt_recvmsg)
    P(srt_recvmsg2) P(srt_sendfile) P(srt_recvfile) P(srt_getsndbuffer) P(srt_getlasterror)
    P(srt_getlasterror_str) P(srt_strerror) P(srt_clearlasterror) P(srt_bstats) P(srt_bistats)
    P(srt_epoll_create) P(srt_epoll_release) P(srt_epoll_add_usock) P(srt_epoll_add_ssock)
    P(srt_epoll_update_usock) P(srt_epoll_update_ssock) P(srt_epoll_remove_usock)
    P(srt_epoll_remove_ssock) P(srt_epoll_clear_usocks) P(srt_epoll_set) P(srt_epoll_wait)
    P(srt_epoll_uwait) P(srt_create_group) P(srt_groupof) P(srt_group_data)
    P(srt_create_config) P(srt_delete_config) P(srt_config_add) P(srt_prepare_endpoint)
    P(srt_connect_group) P(srt_setloglevel) P(srt_addlogfa) P(srt_dellogfa) P(srt_resetlogfa)
    P(srt_setlogflags) P(srt_setloghandler)
    P(srt_msgctrl_default) P(srt_rejectreason_msg)
    T(SRT_LOG_HANDLER_FN*) T(srt_listen_callback_fn*) T(srt_connect_callback_fn*)
    return 0;
}
