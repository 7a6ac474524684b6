"""Warps without samples: they meet the others at every barrier, and skip all else."""

from kinetree.codegen.render.cuda_helpers import helping_lines

LINES = """\
real state_1 = 0.0f;
for (int run = 0; __syncthreads_or(active && run < in_count[0]); run++) {
    const int run_goes_on = active && run < in_count[0];
    {
        const int active = run_goes_on;
        status |= piece_0(frame, active, row, column);
        const float t_1 = frame[7];
        status |= piece_1(frame, active, row, column);
        status |= piece_2(frame, active, row, column);
        for (int inner = 0; inner < 3; inner++) {
            state_2 = state_2 + t_1;
        }
        {
            const int many = enlist(active, at);
            for (int turn; (turn = take(4, 32)) < many;) {
                slot_pairs_0(live, side + 5);
            }
            __syncthreads();
        }
        status |= piece_3(frame, active, row, column);
        status |= piece_4(frame, active, row, column);
    }
}
out[0] = state_1;""".splitlines()

HELP = """\
while (__syncthreads_or(0)) {
        {
            const int many = enlist(0, 0);
            for (int turn; (turn = take(4, 32)) < many;) {
                slot_pairs_0(live, side + 5);
            }
            __syncthreads();
        }
}""".splitlines()


def test_routines_are_taken_and_the_rest_is_left_out():
    assert helping_lines(LINES, "enlist(") == HELP
