/* Rows between device memory and shared memory, the 32 threads of a warp together.
 *
 * Arrays are (samples, size), one sample after the other. A thread that read its own row would touch
 * memory far from its neighbours'; so a warp copies its 32 rows as they lie, 16 bytes a thread, into
 * a tile in shared memory, where every thread finds its own. Where more than four threads would find
 * theirs in the same bank, a number is left out after every `group` rows; there numbers are copied
 * one by one. Sizes are constants wherever these functions are called, so all places are known to the
 * compiler.
 */

DEVICE void copy_16_bytes(real *to, const real *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from));
#else
    *(vector16 *)to = *(const vector16 *)from;
#endif
}

DEVICE void copy_number(real *to, const real *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(sizeof(real)));
#else
    *to = *from;
#endif
}

/* Numbers left out before a row. */
DEVICE int skipped(int row, int group) { return group ? row / group : 0; }

/* Start to fill a tile with rows that lie one after the other, 16 bytes aligned. */
DEVICE void load_dense(real *tile, int size, int group, const real *from)
{
    const int lane = threadIdx.x & 31;
    if (group) {
#pragma unroll
        for (int k = 0; k < size; k++)
            copy_number(tile + k * 32 + k * 32 / (group * size) + lane, from + k * 32 + lane);
    } else {
#pragma unroll
        for (int k = 0; k < (size + NUMBERS_IN_16_BYTES - 1) / NUMBERS_IN_16_BYTES; k++) {
            const int i = (k * 32 + lane) * NUMBERS_IN_16_BYTES;
            if ((k + 1) * NUMBERS_IN_16_BYTES <= size || i < 32 * size)
                copy_16_bytes(tile + i, from + i);
        }
    }
}

/* Fill a tile with the same row 32 times, of an input that all samples share. */
DEVICE void load_shared(real *tile, int size, int group, const real *from)
{
    const int lane = threadIdx.x & 31;
    real *const own = tile + lane * size + skipped(lane, group);
#pragma unroll 4
    for (int k = 0; k < size; k++) own[k] = from[k];
}

/* Fill a tile with any rows; those beyond the last are copies of it, for threads that have none. */
DEVICE void load_rows(real *tile, int size, int group, const real *from, long long step, int rows)
{
#pragma unroll 1
    for (int i = threadIdx.x & 31; i < 32 * size; i += 32) {
        const int row = i / size, column = i - row * size;
        tile[i + skipped(row, group)] = from[(row < rows ? row : rows - 1) * step + column];
    }
}

DEVICE void finish_loads(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp();
}

/* Write a tile to rows that lie one after the other, 16 bytes aligned. */
DEVICE void store_dense(real *to, const real *tile, int size, int group)
{
    const int lane = threadIdx.x & 31;
    if (group) {
#pragma unroll
        for (int k = 0; k < size; k++)
            to[k * 32 + lane] = tile[k * 32 + k * 32 / (group * size) + lane];
    } else {
#pragma unroll
        for (int k = 0; k < (size + NUMBERS_IN_16_BYTES - 1) / NUMBERS_IN_16_BYTES; k++) {
            const int i = (k * 32 + lane) * NUMBERS_IN_16_BYTES;
            if ((k + 1) * NUMBERS_IN_16_BYTES <= size || i < 32 * size)
                *(vector16 *)(to + i) = *(const vector16 *)(tile + i);
        }
    }
}

/* Write a tile to any rows. */
DEVICE void store_rows(real *to, const real *tile, int size, int group, int rows)
{
#pragma unroll 1
    for (int i = threadIdx.x & 31; i < rows * size; i += 32)
        to[i] = tile[i + skipped(i / size, group)];
}

/* Rows that come and go while a warp computes. From Hopper on one thread, `REQUESTS`, requests whole
 * tiles, which the chip copies by itself; `landed` counts their bytes, and what threads have written
 * must be announced before the chip reads it or writes over it. Others copy as above.
 */
typedef unsigned long long counter;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define REQUESTS ((threadIdx.x & 31) == 0)

DEVICE unsigned place_of(const void *x) { return (unsigned)__cvta_generic_to_shared(x); }

/* Tiles come in so many portions. */
DEVICE void expect_tiles(counter *landed, int portions)
{
    if (REQUESTS) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place_of(landed)), "r"(portions));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
}

DEVICE void request(real *tile, int size, const real *from, counter *landed)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(place_of(tile)), "l"(from), "r"(32 * size * (int)sizeof(real)), "r"(place_of(landed))
                 : "memory");
}

/* All tiles of a portion, rows of so many numbers, have been requested. */
DEVICE void requested(counter *landed, int size)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(place_of(landed)), "r"(32 * size * (int)sizeof(real)) : "memory");
}

DEVICE void wait_for_tiles(counter *landed, int phase)
{
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 " @!done bra again; }" ::"r"(place_of(landed)), "r"(phase) : "memory");
}

DEVICE void announce(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEVICE void start_store(real *to, const real *tile, int size)
{
    if (REQUESTS)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;"
                     ::"l"(to), "r"(place_of(tile)), "r"(32 * size * (int)sizeof(real)) : "memory");
}

/* Wait until tiles that the thread stores may be filled again. */
DEVICE void finish_stores(void) { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
#else
#define REQUESTS 1
DEVICE void expect_tiles(counter *landed, int portions) {}
DEVICE void request(real *tile, int size, const real *from, counter *landed) { load_dense(tile, size, 0, from); }
DEVICE void requested(counter *landed, int size) {}
DEVICE void wait_for_tiles(counter *landed, int phase) { finish_loads(); }
DEVICE void announce(void) {}
DEVICE void start_store(real *to, const real *tile, int size) { store_dense(to, tile, size, 0); }
DEVICE void finish_stores(void) {}
#endif

/* Write the rows of a slice, `step` numbers apart; those of the tile are `pitch` apart. */
DEVICE void store_slice(real *to, int step, const real *tile, int size, int pitch, int rows, int dense)
{
    const int lane = threadIdx.x & 31;
    if (dense && pitch % NUMBERS_IN_16_BYTES == 0) {
#pragma unroll 4
        for (int row = 0; row < rows; row++)
#pragma unroll
            for (int i = lane * NUMBERS_IN_16_BYTES; i < size; i += 32 * NUMBERS_IN_16_BYTES)
                *(vector16 *)(to + row * step + i) = *(const vector16 *)(tile + row * pitch + i);
    } else {
#pragma unroll 4
        for (int row = 0; row < rows; row++)
            for (int i = lane; i < size; i += 32) to[row * step + i] = tile[row * pitch + i];
    }
}

/* One number of all rows, from those that are kept. */
DEVICE void store_column(real *to, int step, const real *kept, int rows)
{
#pragma unroll 4
    for (int row = 0; row < rows; row++) to[(long long)row * step] = kept[row];
}

/* Write rows of which only some numbers are kept: `places` says where each is for the first thread.
 * If all addresses but those of the first `head` numbers of a row are multiples of 16 bytes, `dense`. */
DEVICE void store_kept(real *to, int step, const real *kept, const int *places, int size, int rows,
                       int dense, int head)
{
    const int lane = threadIdx.x & 31, end = dense ? size - (size - head) % NUMBERS_IN_16_BYTES : 0;
    if (dense)
        for (int i = head + lane * NUMBERS_IN_16_BYTES; i < end; i += 32 * NUMBERS_IN_16_BYTES) {
            int place[NUMBERS_IN_16_BYTES];
#pragma unroll
            for (int k = 0; k < NUMBERS_IN_16_BYTES; k++) place[k] = places[i + k];
#pragma unroll 4
            for (int row = 0; row < rows; row++) {
                vector16 numbers;
#pragma unroll
                for (int k = 0; k < NUMBERS_IN_16_BYTES; k++)
                    ((real *)&numbers)[k] = kept[place[k] + row];
                *(vector16 *)(to + (long long)row * step + i) = numbers;
            }
        }
    for (int i = lane; dense && i < head; i += 32) store_column(to + i, step, kept + places[i], rows);
    for (int i = end + lane; i < size; i += 32) store_column(to + i, step, kept + places[i], rows);
}
