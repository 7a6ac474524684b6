"use strict";
// Sliders of a mechanism that stands still: poses of its bodies from the values of its joints.
const sliders = (given, table, onMove) => {
  const { cross } = vectors;
  const product = (A, B) => {  // of poses, rows of a 3 x 4 matrix
    const C = new Array(12);
    for (let r = 0; r < 3; r++) for (let c = 0; c < 4; c++) {
      C[4 * r + c] = (c === 3 ? A[4 * r + 3] : 0);
      for (let k = 0; k < 3; k++) C[4 * r + c] += A[4 * r + k] * B[4 * k + c];
    }
    return C;
  };
  const exponential = (S, x) => {  // where the twist S leads to in the time x
    const w = S.slice(0, 3).map((e) => e * x), v = S.slice(3).map((e) => e * x), n = Math.hypot(...w);
    const a = n > 1e-9 ? Math.sin(n) / n : 1, b = n > 1e-9 ? (1 - Math.cos(n)) / (n * n) : 0.5;
    const c = n > 1e-9 ? (1 - a) / (n * n) : 1 / 6, P = new Array(12);
    const turned = (u) => { const wu = cross(w, u), wwu = cross(w, wu); return u.map((e, i) => e + a * wu[i] + b * wwu[i]); };
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((e, j) => turned(e).forEach((value, i) => { P[4 * i + j] = value; }));
    const wv = cross(w, v), wwv = cross(w, wv);
    for (let i = 0; i < 3; i++) P[4 * i + 3] = v[i] + b * wv[i] + c * wwv[i];
    return P;
  };
  const quaternion = (P) => {
    const [a, b, c, , d, e, f, , g, h, i] = P, t = a + e + i;
    const q = t > 0 ? [1 + t, h - f, c - g, d - b]
      : a > e && a > i ? [h - f, 1 + a - e - i, b + d, c + g]
      : e > i ? [c - g, b + d, 1 - a + e - i, f + h] : [d - b, c + g, f + h, 1 - a - e + i];
    const n = Math.hypot(...q);
    return q.map((x) => x / n);
  };
  const values = given.knobs.map((k) => k.value);
  const poses = () => {
    const found = [];
    given.parent.forEach((parent, i) => {
      let P = given.home[i];
      for (const [k, S] of given.moves[i]) P = product(P, exponential(S, values[k]));
      found.push(parent < 0 ? P : product(found[parent], P));
    });
    return found;
  };
  const center = (found) => {
    const sum = [0, 0, 0];
    let mass = 0;
    found.forEach((P, i) => {
      const m = given.masses[i], c = given.centers[i];
      for (let r = 0; r < 3; r++) sum[r] += m * (P[4 * r] * c[0] + P[4 * r + 1] * c[1] + P[4 * r + 2] * c[2] + P[4 * r + 3]);
      mass += m;
    });
    return mass > 0 ? sum.map((x) => x / mass) : sum;
  };
  const inputs = [];
  const set = (k, value) => {
    values[k] = value;
    inputs[k].value = value;
    inputs[k].output.textContent = `${value.toFixed(3)} ${given.knobs[k].unit}`;
    const found = poses();
    onMove(found.map((P) => [[P[3], P[7], P[11]], quaternion(P)]), center(found));
  };
  given.knobs.forEach((knob, k) => {
    const line = document.createElement("label"), name = document.createElement("span");
    const input = document.createElement("input"), output = document.createElement("output");
    Object.assign(input, { type: "range", min: knob.low, max: knob.high, step: "any" });
    input.value = knob.value;
    input.output = output;
    input.setAttribute("aria-label", knob.label);
    input.oninput = () => set(k, +input.value);
    name.textContent = knob.label;
    output.textContent = `${knob.value.toFixed(3)} ${knob.unit}`;
    line.append(name, input, output);
    table.append(line);
    inputs.push(input);
  });
  const home = () => given.knobs.forEach((knob, k) => set(k, knob.value));
  const button = Object.assign(document.createElement("button"), { textContent: "Back to the start", onclick: home });
  table.append(button);
  return { set, home, values };
};
