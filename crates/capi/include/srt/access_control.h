/* Codes with which a listener rejects a caller, by srt_setrejectreason() in its listen callback.
 * The caller reads them with srt_getrejectreason(). From 1400 on they are 1000 more than the HTTP
 * status of the same meaning. */

#ifndef INC_F_ACCESS_CONTROL_H
#define INC_F_ACCESS_CONTROL_H

/* No other code fits. It is also sent when the callback rejects without a code. */
#define SRT_REJX_FALLBACK 1000
/* The stream ID has a key that the service does not know. */
#define SRT_REJX_KEY_NOTSUP 1001
/* The stream ID names a file whose path is malformed or does not exist. */
#define SRT_REJX_FILEPATH 1002
/* The stream ID names a host (key h) that the service does not know. */
#define SRT_REJX_HOSTNOTFOUND 1003

/* The stream ID is malformed. */
#define SRT_REJX_BAD_REQUEST 1400
/* The caller did not prove who it is. */
#define SRT_REJX_UNAUTHORIZED 1401
/* The service is too busy, or the caller has used up its share. */
#define SRT_REJX_OVERLOAD 1402
/* The caller is known, and may not use this resource. */
#define SRT_REJX_FORBIDDEN 1403
/* There is no such resource at present. */
#define SRT_REJX_NOTFOUND 1404
/* The resource cannot be used in the mode that the stream ID asks for (key m). */
#define SRT_REJX_BAD_MODE 1405
/* The resource cannot be provided with the parameters that the stream ID asks for, or the data
 * that the caller would publish has the wrong format. */
#define SRT_REJX_UNACCEPTABLE 1406
/* Another caller already publishes this resource. */
#define SRT_REJX_CONFLICT 1409
/* The service does not carry media of this type (key t). */
#define SRT_REJX_NOTSUP_MEDIA 1415
/* The resource is locked for every kind of access. */
#define SRT_REJX_LOCKED 1423
/* The session on which this one depends has ended. */
#define SRT_REJX_FAILED_DEPEND 1424

/* The service failed in an unexpected way. */
#define SRT_REJX_ISE 1500
/* The service understands the request but does not implement it. */
#define SRT_REJX_UNIMPLEMENTED 1501
/* The service is a gateway, and the end behind it rejected the connection. */
#define SRT_REJX_GW 1502
/* The service is down; a substitute answers for it. */
#define SRT_REJX_DOWN 1503
/* The service does not support the caller's version of SRT. */
#define SRT_REJX_VERSION 1505
/* There is no space left to store the stream. */
#define SRT_REJX_NOROOM 1507

#endif
