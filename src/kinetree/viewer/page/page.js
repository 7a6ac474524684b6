"use strict";
// Plays a kinetree scene with WebGL 2: the scene as JSON, its arrays as compressed base64.
(async () => {
  const $ = (id) => document.getElementById(id);
  const scene = JSON.parse($("scene").textContent);
  const bytes = Uint8Array.from(atob($("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(stream).arrayBuffer();
  const floats = ([at, n]) => new Float32Array(data, at, n);
  const whole = ([at, n]) => new Uint32Array(data, at, n);
  const times = floats(scene.times), P = floats(scene.positions), Q = floats(scene.quaternions);
  const N = scene.nodes.length, T = times.length;
  const { add, dot, cross, size, unit, frame, posed, about } = vectors;

  const canvas = $("view");
  const gl = canvas.getContext("webgl2", { antialias: true, alpha: false, preserveDrawingBuffer: true });
  if (!gl) { $("notices").textContent = "This browser has no WebGL 2, which the picture needs."; return; }
  const { solid, floor, uploaded } = graphics(gl);
  const surfaces = scene.surfaces.map((s) => uploaded(floats(s.vertices), whole(s.faces)));
  const square = uploaded(new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]),
    new Uint32Array([0, 1, 2, 0, 2, 3]));
  for (const a of scene.arrows) { a.o = floats(a.origins); a.v = floats(a.vectors); }
  const night = window.matchMedia("(prefers-color-scheme: dark)");
  const light = { sky: [0.965, 0.972, 0.98], ground: [0.90, 0.91, 0.925], lines: [0.70, 0.72, 0.745], glow: 0 };
  const dark = { sky: [0.16, 0.172, 0.192], ground: [0.215, 0.23, 0.255], lines: [0.37, 0.39, 0.42],
    glow: 0.14 };  // so that black bodies are seen

  // --- camera ---------------------------------------------------------------------------------
  const up = unit(scene.camera.up);
  const camera = {};
  const goHome = () => Object.assign(camera, {
    target: [...scene.camera.target], from: add(scene.camera.position, scene.camera.target, -1) });
  goHome();
  const side = () => unit(cross(up, camera.from));
  const orbit = (dx, dy) => {
    camera.from = about(up, -dx)(camera.from);
    const tilted = about(side(), -dy)(camera.from), rise = dot(unit(tilted), up);
    if (Math.abs(rise) < 0.995) camera.from = tilted;
  };
  const pan = (dx, dy) => {
    const r = side(), u = unit(cross(camera.from, r)), s = size(camera.from) * Math.tan(scene.camera.angle / 2);
    camera.target = add(add(camera.target, r, -dx * s), u, dy * s);
  };
  const zoom = (factor) => {
    const n = Math.min(Math.max(size(camera.from) * factor, 0.02 * scene.size), 50 * scene.size);
    camera.from = unit(camera.from).map((x) => x * n);
  };

  // --- time -----------------------------------------------------------------------------------
  const begin = times[0], end = times[T - 1];
  const state = { t: begin, playing: T > 1, speed: 1, dirty: true, shown: {}, follow: scene.follow };
  const sample = () => {
    let k = 0, j = T - 1;
    while (j - k > 1) { const m = (k + j) >> 1; if (times[m] <= state.t) k = m; else j = m; }
    if (T < 2) return [0, 0, 0];
    const h = times[k + 1] - times[k];
    return [k, k + 1, h > 0 ? Math.min(Math.max((state.t - times[k]) / h, 0), 1) : 0];
  };
  let moved = null;  // places of the nodes, where sliders have moved the mechanism
  const node = (i, [k, j, s]) => {
    if (moved) return moved[i];
    const a = 3 * (k * N + i), b = 3 * (j * N + i), c = 4 * (k * N + i), d = 4 * (j * N + i);
    const p = [0, 1, 2].map((e) => (1 - s) * P[a + e] + s * P[b + e]);
    let same = 0;
    for (let e = 0; e < 4; e++) same += Q[c + e] * Q[d + e];
    const q = [0, 1, 2, 3].map((e) => (1 - s) * Q[c + e] + s * (same < 0 ? -1 : 1) * Q[d + e]);
    const n = Math.hypot(...q);
    return [p, q.map((x) => x / n)];
  };

  // --- drawing --------------------------------------------------------------------------------
  const drawn = { parts: 0, arrows: 0 };
  const put = (surface, model, color) => {
    gl.uniformMatrix4fv(solid.model, false, model);
    gl.uniform4fv(solid.color, color);
    gl.bindVertexArray(surface.array);
    gl.drawElements(gl.TRIANGLES, surface.count, gl.UNSIGNED_INT, 0);
  };
  const arrow = (origin, vector, color) => {
    const n = size(vector);
    if (!(n > 0.01 * scene.size)) return;
    const z = unit(vector), least = [0, 1, 2].sort((i, j) => Math.abs(z[i]) - Math.abs(z[j]))[0];
    const x = unit(cross([0, 1, 2].map((i) => +(i === least)), z)), y = cross(z, x);
    const w = 0.007 * scene.size, tip = Math.min(5 * w, 0.5 * n), by = (v, s) => v.map((e) => e * s);
    put(surfaces[scene.shaft], frame(by(x, w), by(y, w), by(z, n - tip), origin), color);
    put(surfaces[scene.head],
      frame(by(x, 2.4 * w), by(y, 2.4 * w), by(z, tip), add(origin, z, n - tip)), color);
    drawn.arrows++;
  };
  const draw = () => {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [canvas.clientWidth * ratio | 0, canvas.clientHeight * ratio | 0];
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    gl.viewport(0, 0, w, h);
    const paint = night.matches ? dark : light;
    gl.clearColor(...paint.sky, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const now = sample(), where = scene.nodes.map((_, i) => node(i, now));
    let target = camera.target;
    if (state.follow) {
      const c = scene.center;
      target = add(target, add(where[c][0], [P[3 * c], P[3 * c + 1], P[3 * c + 2]], -1));
    }
    const eye = add(target, camera.from), z = unit(camera.from), x = side(), y = cross(z, x);
    const view = new Float32Array([x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0,
      -dot(x, eye), -dot(y, eye), -dot(z, eye), 1]);
    const near = 0.01 * scene.size, far = 200 * scene.size;
    // A narrow window has a larger angle, so that all is in view.
    const f = Math.min(w / h / scene.camera.aspect, 1) / Math.tan(scene.camera.angle / 2);
    const lens = new Float32Array([f * h / w, 0, 0, 0, 0, f, 0, 0,
      0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0]);

    gl.enable(gl.BLEND); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    if (state.shown.grid) {
      gl.disable(gl.DEPTH_TEST); gl.useProgram(floor.p);
      const a = unit(cross(up, Math.abs(up[0]) < 0.7 ? [1, 0, 0] : [0, 1, 0])), b = cross(up, a);
      const mid = add(target, up, scene.floor - dot(target, up)), reach = 3.2 * scene.size;
      gl.uniformMatrix4fv(floor.view, false, view); gl.uniformMatrix4fv(floor.lens, false, lens);
      gl.uniform3fv(floor.mid, mid); gl.uniform3fv(floor.a, a); gl.uniform3fv(floor.b, b);
      gl.uniform2f(floor.center, dot(mid, a), dot(mid, b));
      gl.uniform1f(floor.step_, scene.step); gl.uniform1f(floor.far, reach);
      gl.uniform3fv(floor.ground, paint.ground); gl.uniform3fv(floor.lines, paint.lines);
      gl.bindVertexArray(square.array);
      if (dot(eye, up) > scene.floor) gl.drawElements(gl.TRIANGLES, square.count, gl.UNSIGNED_INT, 0);
    }
    gl.enable(gl.DEPTH_TEST); gl.useProgram(solid.p);
    gl.uniformMatrix4fv(solid.view, false, view); gl.uniformMatrix4fv(solid.lens, false, lens);
    gl.uniform1f(solid.glow, paint.glow);
    const clear = [];
    drawn.parts = 0;
    for (const part of scene.parts) {
      const [p, q] = where[part.node];
      if (!state.shown[part.layer] || Number.isNaN(p[0])) continue;
      const model = posed(p, q);
      // What is inside the bodies can be seen when it is asked for.
      const alpha = part.color[3] * (part.layer === "bodies" && (state.shown.inertias || state.shown.center) ? 0.3 : 1);
      const color = [...part.color.slice(0, 3), alpha];
      if (alpha < 1) clear.push([size(add(p, eye, -1)), part, model, color]);
      else put(surfaces[part.surface], model, color);
      drawn.parts++;
    }
    const k = now[2] > 0.5 ? now[1] : now[0];
    const arrows = moved ? [] : scene.arrows;  // they are of the state that was saved
    const pointing = (alpha) => {
      drawn.arrows = 0;
      for (const a of arrows) if (state.shown[a.layer]) for (let i = 0; i < a.count; i++) {
        const at = 3 * (k * a.count + i);
        arrow([...a.o.subarray(at, at + 3)], [...a.v.subarray(at, at + 3)], [...a.color, alpha]);
      }
    };
    pointing(1);
    gl.disable(gl.DEPTH_TEST);
    pointing(0.35);  // arrows that are inside a body shine through it
    gl.enable(gl.DEPTH_TEST);
    gl.depthMask(false);
    clear.sort((a, b) => b[0] - a[0]);
    for (const [, part, model, color] of clear) put(surfaces[part.surface], model, color);
    gl.depthMask(true);
  };

  // --- what the user does ---------------------------------------------------------------------
  const redraw = () => { state.dirty = true; };
  const setTime = (t) => {
    state.t = Math.min(Math.max(t, begin), end);
    $("time").value = end > begin ? (state.t - begin) / (end - begin) : 0;
    $("clock").textContent = `${(state.t - begin).toFixed(2)} / ${(end - begin).toFixed(2)} s`;
    redraw();
  };
  const setPlaying = (on) => {
    if (on && state.t >= end) setTime(begin);
    state.playing = on && T > 1;
    $("play").textContent = state.playing ? "\u2016" : "\u25B6";
    redraw();
  };
  const choice = (key, label, on, act) => {
    const line = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox"; box.checked = on; box.dataset.layer = key;
    box.onchange = () => { act(box.checked); redraw(); };
    act(on);
    line.append(box, label);
    $("layers").append(line);
  };
  const legends = () => {
    $("legend").replaceChildren(...scene.arrows.filter((a) => a.legend && state.shown[a.layer]).map((a) => {
      const line = document.createElement("div"), mark = document.createElement("i");
      mark.style.background = `rgb(${a.color.map((x) => Math.round(255 * x))})`;
      line.append(mark, a.legend);
      return line;
    }));
  };
  for (const [key, label, on] of scene.layers)
    choice(key, label, on, (x) => { state.shown[key] = x; legends(); });
  if (T > 1) choice("follow", "follow", scene.follow, (x) => { state.follow = x; });
  for (const notice of scene.notices) {
    $("notices").append(Object.assign(document.createElement("p"), { textContent: notice }));
  }
  let joints = null;
  if (scene.sliders) {
    $("joints").hidden = false;
    $("joints").open = window.innerWidth >= 600;
    joints = sliders(scene.sliders, $("knobs"), (poses, center) => {
      const gone = [[NaN, NaN, NaN], [1, 0, 0, 0]], before = scene.nodes.map((_, i) => (moved = null, node(i, [0, 0, 0])));
      moved = scene.nodes.map((name, i) => i < poses.length ? poses[i]
        : i === scene.center ? [center, [1, 0, 0, 0]] : name.startsWith("contact ") ? gone : before[i]);
      redraw();
    });
  }
  for (const s of [0.1, 0.25, 0.5, 1, 2, 5, ...(end - begin > 60 ? [20, 100] : [])])
    $("speed").add(new Option(`\u00D7${s}`, s, s === 1, s === 1));
  $("speed").onchange = (e) => { state.speed = +e.target.value; };
  $("play").onclick = () => setPlaying(!state.playing);
  $("time").oninput = (e) => { setPlaying(false); setTime(begin + e.target.value * (end - begin)); };
  $("home").onclick = () => { goHome(); redraw(); };
  if (T < 2) $("bar").classList.add("still");
  if (window.innerWidth < 600) $("choices").open = false;

  const fingers = new Map();
  canvas.onpointerdown = (e) => { canvas.setPointerCapture(e.pointerId); fingers.set(e.pointerId, [e.clientX, e.clientY]); };
  canvas.onpointerup = canvas.onpointercancel = (e) => fingers.delete(e.pointerId);
  canvas.oncontextmenu = (e) => e.preventDefault();
  canvas.onpointermove = (e) => {
    const last = fingers.get(e.pointerId);
    if (!last) return;
    const dx = e.clientX - last[0], dy = e.clientY - last[1], h = canvas.clientHeight;
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== e.pointerId)[1];
      zoom(Math.hypot(last[0] - other[0], last[1] - other[1]) / (Math.hypot(e.clientX - other[0], e.clientY - other[1]) || 1));
      pan(dx / h, dy / h);
    } else if (e.buttons & 2 || e.shiftKey) pan(2 * dx / h, 2 * dy / h);
    else orbit(dx / h * 4, dy / h * 4);
    fingers.set(e.pointerId, [e.clientX, e.clientY]);
    redraw();
  };
  canvas.onwheel = (e) => { e.preventDefault(); zoom(Math.exp(0.001 * e.deltaY)); redraw(); };
  window.onresize = night.onchange = redraw;
  window.onkeydown = (e) => {
    if (e.target.tagName === "INPUT" && e.target.type !== "checkbox" || e.target.tagName === "SELECT") return;
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (way && (e.shiftKey || e.altKey || T < 2 || way[1])) {
      e.preventDefault();
      if (e.altKey) pan(0.05 * way[0], 0.05 * way[1]); else orbit(-0.1 * way[0], -0.1 * way[1]);
      redraw();
      return;
    }
    if (e.key === "+" || e.key === "-") { zoom(e.key === "+" ? 0.9 : 1 / 0.9); redraw(); }
    const speeds = $("speed").options, at = $("speed").selectedIndex;
    if ((e.key === "," || e.key === ".") && T > 1) {
      $("speed").selectedIndex = Math.min(Math.max(at + (e.key === "." ? 1 : -1), 0), speeds.length - 1);
      state.speed = +$("speed").value;
    }
    if (e.key === " ") { e.preventDefault(); setPlaying(!state.playing); }
    if (e.key === "Home") { goHome(); redraw(); }
    if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
      setPlaying(false);
      setTime(state.t + (e.key === "ArrowRight" ? 1 : -1) * (end - begin) / 100);
    }
  };

  let last = performance.now();
  const tick = (now) => {
    const passed = Math.min((now - last) / 1000, 0.1);
    last = now;
    if (state.playing) {
      const t = state.t + state.speed * passed;
      setTime(t > end ? begin : t);
    }
    if (state.dirty) { state.dirty = false; draw(); }
    requestAnimationFrame(tick);
  };
  setTime(begin);
  setPlaying(state.playing);
  requestAnimationFrame(tick);
  window.kinetree = { scene, state, camera, drawn, joints, places: () => moved, setTime, setPlaying, draw, redraw };
})().catch((error) => {
  console.error(error);
  document.getElementById("notices").textContent = `The scene cannot be shown: ${error.message}`;
});
