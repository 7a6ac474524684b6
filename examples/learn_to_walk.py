"""Learning to walk: a quadruped follows commanded velocities, by proximal policy optimization.

    python examples/learn_to_walk.py --worlds 64 --iterations 3          # a try on the CPU
    python examples/learn_to_walk.py --device cuda                       # 4,096 dogs on a GPU

Feet touch the ground rigidly; joints follow targets by position and speed (PD), four steps of the
mechanics to one of the policy, all of it one compiled call. Observations, noise, rewards and pushes
are those of legged_gym (Rudin et al., "Learning to walk in minutes", 2022). Writes walk.pt, the
policy, walk.csv, the curve, and walk.npz, a motion to look at:

    kt.show(model, motion["q"], motion["t"])
"""

import argparse
import csv

import numpy as np
import ppo
import torch

import kinetree as kt

DT, DECIMATION = 0.005, 4
STEP = DT * DECIMATION
KP, KD, EFFORT = 40.0, 1.0, 21.0  # [N·m, N·m·s, N·m]
RESAMPLE = 500  # control steps after which a command changes
PUSH = 750  # control steps between pushes

model = kt.contact.with_ground(kt.samples.quadruped())
HOME = np.array(model.posture("home").q)


def up(q):
    """The vertical in coordinates of the trunk, (3,)."""
    w, x, y, z = q[3:7]
    return np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])


def clipped(x, low, high):
    """Entries of a vector within limits."""
    return np.array([kt.select(a < low, low, kt.select(a > high, high, a)) for a in x])


@kt.kernel
def act(model, q, qd, action: (12,)):
    """Joint forces towards the home posture plus a part of the action."""
    wanted = KP * (HOME[7:] + 0.25 * action - q[7:]) - KD * qd[6:]
    return np.concatenate([np.zeros(6), clipped(wanted, -EFFORT, EFFORT)])


@kt.kernel
def observe(model, q, qd, action, command, uniform: (33,)):
    """Velocities of the trunk, the vertical, the command, joints, the last action; noisy."""
    noise = 2 * uniform - 1
    return np.concatenate([
        2.0 * (qd[3:6] + 0.1 * noise[:3]),
        0.25 * (qd[:3] + 0.2 * noise[3:6]),
        up(q) + 0.05 * noise[6:9],
        command * np.array([2.0, 2.0, 0.25]),
        q[7:] - HOME[7:] + 0.01 * noise[9:21],
        0.05 * (qd[6:] + 1.5 * noise[21:33]),
        action,
    ])  # fmt: skip


@kt.kernel
def reward(
    model, q, qd, action, previous_action, tau, command, last_qd: (18,), air: (4,),
    contact_force: (4, 3), terminated: (),
):  # fmt: skip
    """Follow the command; little bouncing, rolling, effort, and jerk; long strides."""
    off = qd[3:5] - command[:2]
    turn = qd[2] - command[2]
    bend = (qd[6:] - last_qd[6:]) * (1 / STEP)
    change = action - previous_action
    stride = 0.0
    for foot in range(4):
        lands = (contact_force[foot, 0] > 1) & (air[foot] > 0)
        stride = stride + kt.select(lands, air[foot] + STEP - 0.3, 0.0)
    walks = command @ command > 0.01
    total = (
        1.0 * np.exp(-(off @ off) * 4)
        + 0.5 * np.exp(-turn * turn * 4)
        - 2.0 * qd[5] * qd[5]
        - 0.05 * (qd[0] * qd[0] + qd[1] * qd[1])
        - 1.0 * (up(q)[0] ** 2 + up(q)[1] ** 2)
        - 1e-4 * (tau @ tau)
        - 2.5e-7 * (bend @ bend)
        - 0.01 * (change @ change)
        + kt.select(walks, 1.0 * stride, 0.0)
    )
    return STEP * kt.select(total > 0, total, 0.0) - 1.0 * terminated


@kt.kernel
def fallen(model, q):
    """Trunk near the ground, or on its side."""
    return (q[2] < 0.14) | (up(q)[2] < 0.4)


def commanded(uniform, reach):
    """A command: forward and sideways velocity, rate of turning; a tenth of them to stand."""
    stands = uniform[3] < 0.1
    return kt.select(stands, np.zeros(3), (2 * uniform[:3] - 1) * reach)


@kt.kernel
def begin(model, uniform: (26,), reach: (3,)):
    """Near the home posture, moving a little; with its own load and soles."""
    noise = 2 * uniform - 1
    return {
        "q": np.concatenate([HOME[:7], HOME[7:] + 0.2 * noise[:12]]) + 0.02 * np.eye(19)[2],
        "qd": np.concatenate([0.3 * noise[12:18], np.zeros(12)]),
        "command": commanded(uniform[18:22], reach),
        "load": 6.0 + 1.0 * noise[22],
        "grip": 0.6 + 0.6 * uniform[23],
        "air": np.zeros(4),
        "last_qd": np.zeros(18),
        "phase": np.floor(uniform[24] * PUSH),
    }


@kt.kernel
def update(
    model, qd, steps, command, air: (4,), phase: (), contact_force: (4, 3), uniform: (6,),
    reach: (3,),
):  # fmt: skip
    """New commands and pushes at random times, and how long feet have been in the air."""
    fresh = (steps > 0) & (steps - RESAMPLE * np.floor(steps / RESAMPLE) < 0.5)
    count = steps + phase
    push = (steps > 0) & (count - PUSH * np.floor(count / PUSH) < 0.5)
    aside = np.array([0, 0, 0, *(2 * uniform[4:] - 1), 0, *np.zeros(12)])
    flies = [kt.select(contact_force[k, 0] > 1, 0.0, air[k] + STEP) for k in range(4)]
    return {
        "command": kt.select(fresh, commanded(uniform[:4], reach), command),
        "qd": kt.select(push, qd + 0.5 * aside, qd),
        "air": np.array(flies),
        "last_qd": qd,
    }


def environment(worlds, device="cpu", seed=0, reach=(0.8, 0.4, 0.8), **options):
    """Quadrupeds on four rigid feet; tensors on ``device``."""
    scene = kt.contact.Scene(model, pairs="feet", friction=1.0)
    gains = {"stiffness": [0.0] * 6 + [KP] * 12, "damping": [0.0] * 6 + [KD] * 12}
    tolerance = 1e-8 if device == "cpu" else 1e-4  # what float32 reaches [m/s]
    contact = kt.contact.TimeStepping(
        scene, tolerance=tolerance, rounds=16, conserving=False, **gains
    )
    return kt.learning.Environment(
        model, worlds, observe=observe, reward=reward, terminate=fallen, reset=begin, act=act,
        update=update, contact=contact, dt=DT, decimation=DECIMATION, episode=1000,
        action_limits=(-6.0, 6.0), parameters={"mass:trunk": "load", "friction": "grip"},
        arguments={"reach": np.array(reach)}, seed=seed, device=device, arrays="torch",
        limits=None, **options,
    )  # fmt: skip


def walk(policy, command=(0.6, 0.0, 0.0), seconds=10.0, device="cpu"):
    """Times and positions of one quadruped under a command, without noise in its actions."""
    env = environment(1, device, seed=1)
    seen, q = env.reset(), []
    given = torch.tensor([command], dtype=env.state["command"].dtype, device=device)
    for _ in range(round(seconds / STEP)):
        env.state["command"][:] = given
        with torch.no_grad():
            seen, *_ = env.step(policy(seen))
        q.append(env.state["q"][0].double().cpu().numpy())
    q = model.normalize(np.array(q))  # single precision is not enough for the viewer
    return STEP * np.arange(1, len(q) + 1), q


def tracking(policy, worlds=256, seconds=10.0, device="cpu"):
    """How well commands are followed [m/s, rad/s], root mean squares, and the falls a minute.

    With the noise, pushes, loads and soles of training; the first second of an episode not counted.
    """
    env = environment(worlds, device, seed=2)
    seen, squares, falls, counted = env.reset(), np.zeros(2), 0, 0
    for _ in range(round(seconds / STEP)):
        with torch.no_grad():
            seen, _, fell, *_ = env.step(policy(seen))
        falls += int(fell.sum())
        qd, command = (env.state[name].double().cpu().numpy() for name in ("qd", "command"))
        walks = env.state["steps"].cpu().numpy() > 1 / STEP
        off = qd[walks][:, [3, 4, 2]] - command[walks]
        squares += (off[:, 0] ** 2 + off[:, 1] ** 2).sum(), (off[:, 2] ** 2).sum()
        counted += walks.sum()
    return *np.sqrt(squares / (counted or np.nan)), 60 * falls / (worlds * seconds)


def main(argv=None):
    """Learn, and write what was learned."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu")
    options.add_argument("--worlds", type=int)
    options.add_argument("--iterations", type=int, default=1000)
    options.add_argument("--minutes", type=float, default=10.0, help="at most")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", default="walk", help="name of the files that are written")
    o = options.parse_args(argv)
    worlds = o.worlds or (256 if o.device == "cpu" else 4096)
    env = environment(worlds, o.device, o.seed)

    def report(r):
        print(
            f"{r['seconds']:7.1f} s ({r['simulation']:.1f} simulation)  reward {r['reward']:.4f}"
            f"  episode {r['episode']:.2f}",
            flush=True,
        )
        return r["seconds"] > 60 * o.minutes

    policy, history = ppo.train(
        env, iterations=o.iterations, hidden=(256, 128, 64), entropy=0.003, spread=0.6,
        seed=o.seed, report=report,
    )  # fmt: skip
    torch.save(policy.state_dict(), f"{o.out}.pt")
    with open(f"{o.out}.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(history[0]))
        table.writeheader()
        table.writerows(history)
    t, q = walk(policy, device=o.device)
    np.savez(f"{o.out}.npz", t=t, q=q)
    print(f"walked {q[-1, 0] - q[0, 0]:.2f} m forward in {t[-1]:.0f} s under a command of 0.6 m/s")
    along, turning, falls = tracking(policy, min(worlds, 1024), device=o.device)
    print(f"off by {along:.3f} m/s and {turning:.3f} rad/s (rms); {falls:.2f} falls a minute")
    return history


if __name__ == "__main__":
    main()
