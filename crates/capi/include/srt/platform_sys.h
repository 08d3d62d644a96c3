/* The system's headers that srt.h needs. Programs written for libsrt also rely on some that only
 * they need, so that the list is longer than the interface requires. */

#ifndef INC_SRT_PLATFORM_SYS_H
#define INC_SRT_PLATFORM_SYS_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32

#include <winsock2.h>

#include <ws2ipdef.h>
#include <ws2tcpip.h>

#include <windows.h>

#else

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#endif
