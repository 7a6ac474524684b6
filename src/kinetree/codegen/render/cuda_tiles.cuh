/* Rows between device memory and shared memory, the 32 threads of a warp together.
 *
 * Arrays are (samples, size), one sample after the other. A thread that read its own row would touch
 * memory far from its neighbours'; so a warp copies its 32 rows as they lie, 16 bytes a thread, into
 * a tile in shared memory, where every thread finds its own. Where more than four threads would find
 * theirs in the same bank, a number is left out after every `group` rows; there numbers are copied
 * one by one. `size` and `group` are constants wherever these functions are called, so all places
 * are known to the compiler.
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

/* Start to fill a tile; rows beyond the last are copies of it, for threads that have none. */
DEVICE void load_tile(real *tile, int size, int group, const real *from, long long step, int rows)
{
    const int lane = threadIdx.x & 31;
    if (rows == 32 && step == size && ((size_t)from & 15) == 0) {
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
    } else {
#pragma unroll 1
        for (int k = 0; k < size; k++) {
            const int i = k * 32 + lane, row = i / size, column = i - row * size;
            tile[i + skipped(row, group)] = from[(row < rows ? row : rows - 1) * step + column];
        }
    }
}

DEVICE void finish_loads(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp();
}

/* Write the rows of a tile. */
DEVICE void store_tile(real *to, const real *tile, int size, int group, int rows)
{
    const int lane = threadIdx.x & 31;
    if (rows == 32 && ((size_t)to & 15) == 0) {
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
    } else {
#pragma unroll 1
        for (int k = 0; k < size; k++) {
            const int i = k * 32 + lane, row = i / size;
            if (row < rows) to[i] = tile[i + skipped(row, group)];
        }
    }
}

/* Write a window of a large result: some columns of the 32 rows of a warp, kept `WINDOW + 1` numbers
 * apart. Before and after, the warp waits for all of its threads. */
FUNCTION void store_window(real *to, int size, int width, const real *window, int rows)
{
    const int lane = threadIdx.x & 31;
    __syncwarp();
#pragma unroll 8
    for (int k = 0; k < WINDOW; k++) {
        const int i = k * 32 + lane, row = i / WINDOW, column = i % WINDOW;
        if (row < rows && column < width)
            to[(long long)row * size + column] = window[row * (WINDOW + 1) + column];
    }
    __syncwarp();
}
