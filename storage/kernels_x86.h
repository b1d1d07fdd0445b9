/*
 * kernels_x86.h: byte planes with the instructions of amd64; included by kernels_sse42.c and its wider kin only.
 *
 * Those instructions work within lanes of 16 bytes. One level gathers equal bytes, three interleave: so 8 vectors of
 * numbers become 8 planes and back. A lane then holds pairs of numbers (pair = numbers 2p and 2p + 1), and with L
 * lanes the pair L * j + l stands at place j of lane l. arrange() brings a plane in memory's order into that
 * order, collect() undoes it.
 *
 * The file gives before: VEC_BYTES, vec (the register's type), V (the instructions of that size), repeat (16 bytes
 * in every lane), arrange and collect.
 */
#ifndef VARVE_STORAGE_KERNELS_X86_H
#define VARVE_STORAGE_KERNELS_X86_H

#define BLOCK VEC_BYTES
#define SHORT_SPLIT kernels_portable.split
#define SHORT_JOIN kernels_portable.join

static inline vec load_vec(const void *p)
{
    vec x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void store_vec(void *p, vec x)
{
    memcpy(p, &x, sizeof x);
}

/* Words 0..3 of a register's numbers: word k holds byte k of the two numbers of a lane. */
static inline vec load_words(const uint64_t *u)
{
    const vec pairs = repeat(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    return V(shuffle_epi8)(load_vec(u), pairs);
}

/* Planes 0 and 1 of four (least significant first), from their doublewords of the lower and the upper registers. */
static inline void store_planes(vec lower, vec upper, size_t stride, unsigned width, uint8_t *last)
{
    store_vec(last, collect(V(unpacklo_epi64)(lower, upper)));
    if (width > 1) store_vec(last - stride, collect(V(unpackhi_epi64)(lower, upper)));
}

/* Up to four planes, from the words of them in registers 0 and 1, 2 and 3, 4 and 5, 6 and 7. */
static inline void split_words(const vec w[4], size_t stride, unsigned width, uint8_t *last)
{
    store_planes(V(unpacklo_epi32)(w[0], w[1]), V(unpacklo_epi32)(w[2], w[3]), stride, width, last);
    if (width <= 2) return;
    store_planes(V(unpackhi_epi32)(w[0], w[1]), V(unpackhi_epi32)(w[2], w[3]), stride, width - 2, last - 2 * stride);
}

static inline void split_block(const uint64_t *u, size_t stride, unsigned width, uint8_t *last)
{
    enum { STEP = VEC_BYTES / 8 };
    const vec x[8] = {load_words(u),
                      load_words(u + STEP),
                      load_words(u + 2 * STEP),
                      load_words(u + 3 * STEP),
                      load_words(u + 4 * STEP),
                      load_words(u + 5 * STEP),
                      load_words(u + 6 * STEP),
                      load_words(u + 7 * STEP)};
    const vec low[4] = {V(unpacklo_epi16)(x[0], x[1]), V(unpacklo_epi16)(x[2], x[3]), V(unpacklo_epi16)(x[4], x[5]),
                        V(unpacklo_epi16)(x[6], x[7])};
    split_words(low, stride, width, last);
    if (width <= 4) return;
    const vec high[4] = {V(unpackhi_epi16)(x[0], x[1]), V(unpackhi_epi16)(x[2], x[3]), V(unpackhi_epi16)(x[4], x[5]),
                         V(unpackhi_epi16)(x[6], x[7])};
    split_words(high, stride, width - 4, last - 4 * stride);
}

/* Two registers of numbers from their lower and upper doublewords. */
static inline void store_numbers(vec lower, vec upper, uint64_t *u)
{
    enum { STEP = VEC_BYTES / 8 };
    store_vec(u, V(unpacklo_epi32)(lower, upper));
    store_vec(u + STEP, V(unpackhi_epi32)(lower, upper));
}

/* Four registers of numbers from words 0..3 of them (least significant first). */
static inline void join_words(vec w0, vec w1, vec w2, vec w3, uint64_t *u)
{
    enum { STEP = VEC_BYTES / 8 };
    store_numbers(V(unpacklo_epi16)(w0, w1), V(unpacklo_epi16)(w2, w3), u);
    store_numbers(V(unpackhi_epi16)(w0, w1), V(unpackhi_epi16)(w2, w3), u + 2 * STEP);
}

/* Plane i, 0 if it is absent. */
static inline vec plane_of(const uint8_t *last, size_t stride, const unsigned width, unsigned i)
{
    return i < width ? arrange(load_vec(last - i * stride)) : (vec){0};
}

/* Written out: a loop over the planes would keep them in memory, and the zeros would not fold away. */
static inline void join_block(const uint8_t *last, size_t stride, const unsigned width, uint64_t *u)
{
    enum { STEP = VEC_BYTES / 8 };
    const vec b[8] = {plane_of(last, stride, width, 0), plane_of(last, stride, width, 1),
                      plane_of(last, stride, width, 2), plane_of(last, stride, width, 3),
                      plane_of(last, stride, width, 4), plane_of(last, stride, width, 5),
                      plane_of(last, stride, width, 6), plane_of(last, stride, width, 7)};
    join_words(V(unpacklo_epi8)(b[0], b[1]), V(unpacklo_epi8)(b[2], b[3]), V(unpacklo_epi8)(b[4], b[5]),
               V(unpacklo_epi8)(b[6], b[7]), u);
    join_words(V(unpackhi_epi8)(b[0], b[1]), V(unpackhi_epi8)(b[2], b[3]), V(unpackhi_epi8)(b[4], b[5]),
               V(unpackhi_epi8)(b[6], b[7]), u + 4 * STEP);
}

#endif
