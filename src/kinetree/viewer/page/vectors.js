"use strict";
// Vectors as arrays of three, and matrices of four columns.
const vectors = (() => {
  const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const size = (a) => Math.hypot(...a);
  const unit = (a) => { const n = size(a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };
  const frame = (x, y, z, p) => new Float32Array([...x, 0, ...y, 0, ...z, 0, ...p, 1]);
  const posed = (p, q) => {
    const [w, x, y, z] = q;
    return frame(
      [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
      [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
      [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], p);
  };
  const about = (axis, angle) => (v) => {
    const c = Math.cos(angle), s = Math.sin(angle), k = dot(axis, v) * (1 - c), w = cross(axis, v);
    return [0, 1, 2].map((i) => v[i] * c + w[i] * s + axis[i] * k);
  };
  return { add, dot, cross, size, unit, frame, posed, about };
})();
