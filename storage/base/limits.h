/*
 * limits.h: every bound of the engine in one place, with the relations between them.
 */
#ifndef VARVE_STORAGE_BASE_LIMITS_H
#define VARVE_STORAGE_BASE_LIMITS_H

#include <assert.h>

/* labels of one series */
#define LIMIT_LABELS 256          /* pairs */
#define LIMIT_LABEL_NAME 1024     /* bytes */
#define LIMIT_LABEL_VALUE 65535   /* bytes */
#define LIMIT_SERIES_BYTES 131072 /* all names and values of a series */

/* bodies */
#define LIMIT_BODY_COMPRESSED (64u << 20)
#define LIMIT_BODY_RAW (256u << 20)
#define LIMIT_LINE (1u << 20) /* one line of a line protocol */

/* parts */
#define LIMIT_BLOCK_SAMPLES 2048   /* samples in one block of one series */
#define LIMIT_FRAME_TARGET 16384   /* raw bytes at which a data frame is closed */
#define LIMIT_FRAME_RAW (8u << 20) /* raw bytes a reader accepts for one frame */
#define LIMIT_BLOCK_RAW (2u << 20) /* encoded bytes one block may have (histograms are big) */
#define LIMIT_HIST_BLOB 65536      /* bytes of one encoded histogram sample */

/* the write-ahead log */
#define LIMIT_WAL_RECORD (512u << 20)

/* time: 1970 .. 2262 in ms; what a sample's timestamp may be at all */
#define LIMIT_TIME_MIN (-(INT64_C(1) << 53))
#define LIMIT_TIME_MAX (INT64_C(1) << 53)

static_assert(LIMIT_FRAME_TARGET < LIMIT_FRAME_RAW, "a frame must be readable");
static_assert(LIMIT_BLOCK_RAW < LIMIT_FRAME_RAW, "a block fits a frame");
static_assert(LIMIT_HIST_BLOB < LIMIT_BLOCK_RAW, "a histogram fits a block");
static_assert(LIMIT_BODY_RAW < LIMIT_WAL_RECORD, "a body fits a record");

#endif
