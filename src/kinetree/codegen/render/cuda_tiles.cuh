/* Rows between device memory and shared memory, all threads of a block together.
 *
 * Arrays are (samples, size), one sample after the other. A thread that read its own row would touch
 * memory far from its neighbours'; so the block copies its rows as they lie, 16 bytes a thread, into
 * a tile in shared memory, where every thread finds its own. Rows of a tile are `pitch` numbers
 * apart, chosen so that the threads of a warp use different banks.
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

/* Start to fill a tile; rows beyond the last are copies of it, for threads that have none. */
DEVICE void load_tile(real *tile, int pitch, int size, const real *from, long long step, int rows)
{
    const int block = blockDim.x, thread = threadIdx.x;
    if (rows == block && step == size && pitch == size && ((size_t)from & 15) == 0) {
#pragma unroll
        for (int k = 0; k < (size + NUMBERS_IN_16_BYTES - 1) / NUMBERS_IN_16_BYTES; k++) {
            const int i = (k * block + thread) * NUMBERS_IN_16_BYTES;
            if (i < block * size) copy_16_bytes(tile + i, from + i);
        }
    } else {
#pragma unroll 8
        for (int k = 0; k < size; k++) {
            const int i = k * block + thread, row = i / size, column = i - row * size;
            tile[row * pitch + column] = from[(row < rows ? row : rows - 1) * step + column];
        }
    }
}

DEVICE void finish_loads(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

/* Write the rows of a tile. */
DEVICE void store_tile(real *to, const real *tile, int pitch, int size, int rows)
{
    const int block = blockDim.x, thread = threadIdx.x;
    if (rows == block && pitch == size && ((size_t)to & 15) == 0) {
#pragma unroll
        for (int k = 0; k < (size + NUMBERS_IN_16_BYTES - 1) / NUMBERS_IN_16_BYTES; k++) {
            const int i = (k * block + thread) * NUMBERS_IN_16_BYTES;
            if (i < block * size) *(vector16 *)(to + i) = *(const vector16 *)(tile + i);
        }
    } else {
#pragma unroll 8
        for (int k = 0; k < size; k++) {
            const int i = k * block + thread, row = i / size, column = i - row * size;
            if (row < rows) to[i] = tile[row * pitch + column];
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
