"use strict";
// Programs of the graphics card, for solid parts and for the ground, and surfaces on it.
const graphics = (gl) => {
  const { cross, unit } = vectors;
  const shader = (kind, text) => {
    const s = gl.createShader(kind);
    gl.shaderSource(s, "#version 300 es\nprecision highp float;\n" + text);
    gl.compileShader(s);
    if (!gl.getShaderParameter(s, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(s));
    return s;
  };
  const program = (vertex, fragment) => {
    const p = gl.createProgram();
    gl.attachShader(p, shader(gl.VERTEX_SHADER, vertex));
    gl.attachShader(p, shader(gl.FRAGMENT_SHADER, fragment));
    gl.bindAttribLocation(p, 0, "at"); gl.bindAttribLocation(p, 1, "normal");
    gl.linkProgram(p);
    if (!gl.getProgramParameter(p, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(p));
    const found = { p };
    for (let i = 0; i < gl.getProgramParameter(p, gl.ACTIVE_UNIFORMS); i++) {
      const name = gl.getActiveUniform(p, i).name;
      found[name] = gl.getUniformLocation(p, name);
    }
    return found;
  };
  const solid = program(
    `in vec3 at; in vec3 normal; uniform mat4 model, view, lens; out vec3 n, where;
     void main() { vec4 e = view * model * vec4(at, 1.0); where = e.xyz; gl_Position = lens * e;
       mat3 m = mat3(model); vec3 s = vec3(dot(m[0], m[0]), dot(m[1], m[1]), dot(m[2], m[2]));
       n = mat3(view) * (m * (normal / max(s, vec3(1e-12)))); }`,
    `in vec3 n, where; uniform vec4 color; uniform float glow; out vec4 pixel;
     void main() { vec3 m = normalize(n), eye = normalize(-where); if (dot(m, eye) < 0.0) m = -m;
       vec3 sun = normalize(vec3(0.42, 0.62, 0.66));
       float shine = pow(max(dot(m, normalize(sun + eye)), 0.0), 40.0);
       float light = 0.46 + 0.14 * m.y + 0.52 * max(dot(m, sun), 0.0);
       vec3 lit = min(color.rgb * light + 0.16 * shine, 1.0);
       pixel = vec4(lit + glow * (1.0 - lit), color.a); }`);
  const floor = program(
    `in vec3 at; uniform mat4 view, lens; uniform vec3 mid, a, b; uniform float far; out vec2 flat_;
     void main() { vec3 w = mid + far * (at.x * a + at.y * b); flat_ = vec2(dot(w, a), dot(w, b));
       gl_Position = lens * view * vec4(w, 1.0); }`,
    `in vec2 flat_; uniform vec2 center; uniform vec3 ground, lines; uniform float step_, far; out vec4 pixel;
     void main() { vec2 g = flat_ / step_, w = fwidth(g);
       vec2 d = 1.0 - min(abs(fract(g - 0.5) - 0.5) / (0.9 * w), 1.0);
       float line = max(d.x * min(1.0, 0.35 / w.x), d.y * min(1.0, 0.35 / w.y));
       float fade = pow(clamp(1.0 - distance(flat_, center) / far, 0.0, 1.0), 1.5);
       pixel = vec4(mix(ground, lines, line), fade); }`);

  const normalsOf = (v, f) => {
    const n = new Float32Array(v.length);
    for (let i = 0; i < f.length; i += 3) {
      const [a, b, c] = [f[i] * 3, f[i + 1] * 3, f[i + 2] * 3];
      const u = [v[b] - v[a], v[b + 1] - v[a + 1], v[b + 2] - v[a + 2]];
      const w = [v[c] - v[a], v[c + 1] - v[a + 1], v[c + 2] - v[a + 2]];
      const m = cross(u, w);
      for (const k of [a, b, c]) { n[k] += m[0]; n[k + 1] += m[1]; n[k + 2] += m[2]; }
    }
    for (let i = 0; i < n.length; i += 3) {
      const m = unit([n[i], n[i + 1], n[i + 2]]);
      n[i] = m[0]; n[i + 1] = m[1]; n[i + 2] = m[2];
    }
    return n;
  };
  const uploaded = (vertices, faces) => {
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    [vertices, normalsOf(vertices, faces)].forEach((values, k) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
    return { array, count: faces.length };
  };
  return { solid, floor, uploaded };
};
