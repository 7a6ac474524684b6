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

#define FIBERS 256
#define STACK (256 * 1024)
static ucontext_t scheduler, fibers[FIBERS];
static char ended[FIBERS];
static int turn_of;

static void __syncthreads(void) { swapcontext(&fibers[turn_of], &scheduler); }
static void __syncwarp(void) { __syncthreads(); }

static unsigned votes[FIBERS / 32];

static unsigned __ballot_sync(unsigned mask, int x)
{
    unsigned *const vote = &votes[threadIdx.x >> 5], bit = 1u << (threadIdx.x & 31);
    *vote = x ? *vote | bit : *vote & ~bit;
    __syncthreads();
    return *vote & mask;
}

static int __any_sync(unsigned mask, int x)
{
    const int any = __ballot_sync(mask, x) != 0;
    __syncthreads();
    return any;
}

static int __syncthreads_or(int x)
{
    unsigned any = 0;
    __ballot_sync(0xffffffffu, x);
    for (int k = 0; k < blockDim.x / 32; k++) any |= votes[k];
    __syncthreads();
    return any != 0;
}

static double given_lanes[FIBERS];

static double __shfl_sync(unsigned mask, double x, int k)
{
    (void)mask;
    given_lanes[threadIdx.x] = x;
    __syncthreads();
    x = given_lanes[(threadIdx.x & ~31) + k];
    __syncthreads();
    return x;
}

static double __shfl_xor_sync(unsigned mask, double x, int k)
{
    (void)mask;
    given_lanes[threadIdx.x] = x;
    __syncthreads();
    x = given_lanes[threadIdx.x ^ k];
    __syncthreads();
    return x;
}

static int __float_as_int(float x) { int i; memcpy(&i, &x, sizeof i); return i; }
static float __int_as_float(int i) { float x; memcpy(&x, &i, sizeof x); return x; }
static int __double2loint(double x) { int64_t i; memcpy(&i, &x, sizeof i); return (int)i; }

static void kernel(void);
static void fiber(void) { kernel(); ended[turn_of] = 1; swapcontext(&fibers[turn_of], &scheduler); }

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
    for (int more = 1; more;) {
        more = 0;
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
