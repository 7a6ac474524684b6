/* CUDA C on a CPU: the threads of a block take turns, from one barrier to the next.
 *
 * Every thread is a fiber with a stack of its own. Blocks run one after the other.
 */

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __shared__
#define __constant__ const
#define __restrict__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)

typedef struct { float x, y, z, w; } float4;
typedef struct { double x, y; } double2;
static struct { int x; } threadIdx, blockIdx, blockDim, gridDim;

#define FIBERS 512
#define STACK (256 * 1024)
static ucontext_t scheduler, fibers[FIBERS];
static char ended[FIBERS];
static int turn_of, alive, waiting, barriers;

/* Threads of a warp go in step, those of other warps need not. */
static void __syncwarp(void) { swapcontext(&fibers[turn_of], &scheduler); }

static void __syncthreads(void)
{
    const int before = barriers;
    waiting++;
    while (before == barriers) __syncwarp();
}

/* Teams of as many threads, each with a barrier of its own. */
static void __barrier_sync_count(int n, int threads)
{
    static int arrived[FIBERS], passed[FIBERS];
    const int before = passed[n];
    if (++arrived[n] == threads) {
        arrived[n] = 0;
        passed[n]++;
    }
    while (before == passed[n]) __syncwarp();
    __syncwarp();
}

static unsigned votes[FIBERS / 32];

static unsigned __ballot_sync(unsigned mask, int x)
{
    unsigned *const vote = &votes[threadIdx.x >> 5], bit = 1u << (threadIdx.x & 31);
    *vote = x ? *vote | bit : *vote & ~bit;
    __syncwarp();
    return *vote & mask;
}

static int __any_sync(unsigned mask, int x)
{
    const int any = __ballot_sync(mask, x) != 0;
    __syncwarp();
    return any;
}

static int __syncthreads_or(int x)
{
    unsigned any = 0;
    __ballot_sync(0xffffffffu, x);
    __syncthreads();
    for (int k = 0; k < blockDim.x / 32; k++) any |= votes[k];
    __syncthreads();
    return any != 0;
}

static double given_lanes[FIBERS];

static double __shfl_sync(unsigned mask, double x, int k)
{
    (void)mask;
    given_lanes[threadIdx.x] = x;
    __syncwarp();
    x = given_lanes[(threadIdx.x & ~31) + k];
    __syncwarp();
    return x;
}

static double __shfl_xor_sync(unsigned mask, double x, int k)
{
    (void)mask;
    given_lanes[threadIdx.x] = x;
    __syncwarp();
    x = given_lanes[threadIdx.x ^ k];
    __syncwarp();
    return x;
}

static int __popc(unsigned x) { return __builtin_popcount(x); }
static int atomicAdd(int *place, int x) { const int before = *place; *place += x; return before; }

static int __float_as_int(float x) { int i; memcpy(&i, &x, sizeof i); return i; }
static float __int_as_float(int i) { float x; memcpy(&x, &i, sizeof x); return x; }
static int __double2loint(double x) { int64_t i; memcpy(&i, &x, sizeof i); return (int)i; }

static void kernel(void);

static void fiber(void)
{
    kernel();
    ended[turn_of] = 1;
    alive--;
    swapcontext(&fibers[turn_of], &scheduler);
}

static void run_block(char *stacks)
{
    memset(ended, 0, sizeof ended);
    memset(votes, 0, sizeof votes);
    for (int t = 0; t < blockDim.x; t++) {
        getcontext(&fibers[t]);
        fibers[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
        fibers[t].uc_stack.ss_size = STACK;
        fibers[t].uc_link = 0;
        makecontext(&fibers[t], fiber, 0);
    }
    alive = blockDim.x;
    waiting = 0;
    for (int more = 1; more;) {
        more = 0;
        if (alive && waiting == alive) {
            waiting = 0;
            barriers++;
        }
        for (turn_of = 0; turn_of < blockDim.x; turn_of++) {
            threadIdx.x = turn_of;
            if (ended[turn_of]) continue;
            swapcontext(&scheduler, &fibers[turn_of]);
            more |= !ended[turn_of];
        }
    }
}

static void run_grid(int blocks, int threads)
{
    char *stacks = malloc((size_t)threads * STACK);
    blockDim.x = threads;
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) run_block(stacks);
    free(stacks);
}
