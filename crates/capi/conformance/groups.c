/* The answers of the functions for groups. Debian's libsrt is built without groups. */
#include "common.h"

#include <string.h>

/* Ids differ from run to run. */
static void answer_with_group(const char *situation, SRTSOCKET group)
{
    if (group != SRT_INVALID_SOCK && (group & SRTGROUP_MASK))
        value("srt_create_group", situation, "a group");
    else
        answer("srt_create_group", situation, group);
}

static void answers(void)
{
    SRTSOCKET s = opened(NULL);
    SRT_SOCKGROUPDATA data[2];
    size_t count = 2;
    SRT_SOCKGROUPCONFIG config;
    struct sockaddr_in address = loopback(9);
    const struct sockaddr *to = (struct sockaddr *)&address;
    int number = 1;
    srt_clearlasterror();
    answer_with_group("broadcast", srt_create_group(SRT_GTYPE_BROADCAST));
    answer_with_group("backup", srt_create_group(SRT_GTYPE_BACKUP));
    answer_with_group("type 77", srt_create_group((SRT_GROUP_TYPE)77));
    answer("srt_groupof", "opened socket", srt_groupof(s));
    answer("srt_groupof", "unknown socket", srt_groupof(12345));
    srt_clearlasterror();
    answer("srt_group_data", "a socket", srt_group_data(s, data, &count));
    answer("srt_group_data", "no array", srt_group_data(s, NULL, &count));
    SRT_SOCKOPT_CONFIG *options = srt_create_config();
    value("srt_create_config", "-", "%s", options == NULL ? "NULL" : "an object");
    srt_clearlasterror();
    answer("srt_config_add", "SNDBUF", srt_config_add(options, SRTO_SNDBUF, &number, 4));
    srt_delete_config(options);
    value("srt_delete_config", "an object", "returned");
    srt_delete_config(NULL);
    value("srt_delete_config", "NULL", "returned");
    memset(&config, 0x5a, sizeof config);
    config = srt_prepare_endpoint(NULL, to, sizeof address);
    value("srt_prepare_endpoint", "loopback", "error %s", error_name(config.errorcode));
    answer("srt_connect_group", "a socket", srt_connect_group(s, &config, 1));
    answer("srt_connect_group", "unknown group",
           srt_connect_group(SRTGROUP_MASK | 5, &config, 1));
    answer("srt_close", "unknown group", srt_close(SRTGROUP_MASK | 5));
    state("unknown group", SRTGROUP_MASK | 5);
    answer("srt_send", "unknown group", srt_send(SRTGROUP_MASK | 5, "x", 1));
    answer("srt_getsockflag", "unknown group, STATE", get_int(SRTGROUP_MASK | 5, SRTO_STATE));
    answer("srt_setsockflag", "GROUPCONNECT", set_int(s, SRTO_GROUPCONNECT, 1));
}

/* The control block's array of members, on a socket that has none. */
static void control_block(void)
{
    struct pair pair = connected(NULL, NULL);
    SRT_SOCKGROUPDATA data[2];
    SRT_MSGCTRL control = srt_msgctrl_default;
    memset(data, 0x5a, sizeof data);
    control.grpdata = data;
    control.grpdata_size = 2;
    answer("srt_sendmsg2", "with an array of members",
           srt_sendmsg2(pair.caller, "message", 7, &control));
    value("srt_sendmsg2", "the array of members afterwards", "%s, size %zu, %s",
          control.grpdata == data ? "kept" : "changed", control.grpdata_size,
          data[0].id == 0x5a5a5a5a ? "untouched" : "written");
    control = srt_msgctrl_default;
    control.grpdata = data;
    control.grpdata_size = 2;
    answer("srt_recvmsg2", "with an array of members",
           srt_recvmsg2(pair.accepted, (char[1456]){ 0 }, 1456, &control));
    value("srt_recvmsg2", "the array of members afterwards", "%s, size %zu, %s",
          control.grpdata == data ? "kept" : "changed", control.grpdata_size,
          data[0].id == 0x5a5a5a5a ? "untouched" : "written");
    srt_clearlasterror();
    answer("srt_groupof", "connected socket", srt_groupof(pair.caller));
    close_pair(&pair);
}

int main(void)
{
    program_start();
    answers();
    control_block();
    return program_end();
}
