/* The version of libsrt whose interface these headers describe. Punctual's own version comes from
 * punctual_version(), see punctual.h. */

#ifndef INC_SRT_VERSION_H
#define INC_SRT_VERSION_H

#define SRT_VERSION_MAJOR 1
#define SRT_VERSION_MINOR 5
#define SRT_VERSION_PATCH 5
#define SRT_VERSION_STRING "1.5.5"

/* A version as one number that compares in order: 0xMMmmpp. */
#define SRT_MAKE_VERSION(major, minor, patch) (((major) << 16) + ((minor) << 8) + (patch))
#define SRT_MAKE_VERSION_VALUE SRT_MAKE_VERSION

#define SRT_VERSION_VALUE \
    SRT_MAKE_VERSION(SRT_VERSION_MAJOR, SRT_VERSION_MINOR, SRT_VERSION_PATCH)

#endif
