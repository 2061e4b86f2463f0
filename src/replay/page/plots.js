// The strip of plots: drawn once, with a cursor on top that follows the frame.

const SERIES = ["#d2552c", "#3b82b0", "#4c9f70", "#a06cb4", "#c99a2e", "#6b7c93", "#c2587f", "#4aa5a0", "#8a7a5c", "#7d8f3f"];
const SYSTEMS = ["#4a86b8", "#e8954e", "#6fb59a", "#d4623f", "#ecc46a", "#7f6fb0", "#b9d08b", "#a8485a"];

function number(x, digits = 3) {
  if (!(x === x)) return "–";
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return x.toExponential(1).replace("e-", "e−").replace("e+", "e");
  return String(Number(x.toPrecision(digits))).replace("-", "−");
}

/** A length in the unit that reads best. */
function metres(x) {
  const size = Math.abs(x);
  if (!(x === x)) return "–";
  if (size >= 1) return `${number(x)} m`;
  if (size >= 1e-3) return `${number(1e3 * x)} mm`;
  return size >= 1e-7 ? `${number(1e6 * x)} µm` : `${number(x)} m`;
}

/** Plots of a body or joint that was clicked on: `kind` is "body" or "joint". */
function plotsOf(r, kind, id) {
  const series = pick => Float32Array.from({ length: r.frames }, (_, f) => pick(f));
  const three = (names, pick) => names.map((label, k) => ({ values: series(f => pick(f, k)), color: SERIES[k], label, recording: r }));
  const list = kind === "body" ? bodyPlots(r, id, three) : jointPlots(r, id, series, three);
  const one = kind === "body" ? r.bodies[id].name : r.joints[id].name;
  return list.map(d => ({ ...d, name: `picked ${d.name}`, title: `${one}: ${d.name}${d.unit ? `, ${d.unit}` : ""}`,
    reading: f => d.lines.map(l => d.format(l.values[f])).join(" · ") }));
}

function bodyPlots(r, b, three) {
  const at = (f, k) => r.position[k][f * r.count + b];
  const rate = (f, k) => {
    const a = Math.max(0, f - 1), z = Math.min(r.frames - 1, f + 1), dt = r.time[z] - r.time[a];
    return dt > 0 ? (at(z, k) - at(a, k)) / dt : 0;
  };
  return [
    { name: "position", unit: "m", lines: three(["x", "y", "z"], at), format: x => number(x) },
    { name: "velocity", unit: "m/s", lines: three(["vx", "vy", "vz"], rate), format: x => number(x) },
  ];
}

/** Where the second body of a joint is, seen from the first: what a hinge has turned by and a slide has slid since the start. */
function jointPlots(r, j, series, three) {
  const list = [], n = r.joints.length, { kind, bodies: [a, b] } = r.joints[j];
  const pose = (f, body) => {
    const out = [0, 0, 0, 0, 0, 0, 1];
    if (body !== null) r.pose(f, body, out);
    return out;
  };
  const seen = f => {
    const [p, q] = [pose(f, a), pose(f, b)], turn = q => new THREE.Quaternion(q[3], q[4], q[5], q[6]), back = turn(p).invert();
    const place = new THREE.Vector3(q[0] - p[0], q[1] - p[1], q[2] - p[2]).applyQuaternion(back);
    return { place, turn: back.multiply(turn(q)) };
  };
  if (r.frames && b !== null) {
    const start = seen(0);
    if (/prismatic|cylindrical|pointonline|planar/.test(kind)) {
      list.push({ name: "slide", lines: [{ values: series(f => seen(f).place.distanceTo(start.place)), color: SERIES[0], label: "slide", recording: r }], floor: 0, format: metres });
    }
    if (/revolute|cylindrical|universal|ball|wheel|planar/.test(kind)) {
      // Counted over turns: about the axis of the first turn that is one.
      let before = start.turn, axis = null, total = 0;
      const turned = f => {
        const now = seen(f).turn, d = before.clone().invert().multiply(now), v = new THREE.Vector3(d.x, d.y, d.z).multiplyScalar(d.w < 0 ? -1 : 1);
        if (!axis && v.length() > 1e-5) axis = v.clone().normalize();
        before = now;
        return total += axis ? 2 * Math.atan2(v.dot(axis), Math.abs(d.w)) * 180 / Math.PI : 0;
      };
      list.push({ name: "turn", lines: [{ values: series(turned), color: SERIES[1], label: "turn", recording: r }], format: x => `${number(x)}°` });
    }
  }
  if (r.load) {
    list.push({ name: "force", unit: "N", lines: three(["x", "y", "z"], (f, k) => r.load[k][f * n + j]), format: x => number(x) });
    list.push({ name: "torque", lines: [{ values: series(f => r.load[3][f * n + j]), color: SERIES[0], label: "torque", recording: r }], floor: 0, format: x => `${number(x)} N·m` });
  }
  return list;
}

/** What is plotted: lines to draw, whether the axis is logarithmic, and what the reading says. */
function plotDefinitions(recordings) {
  const many = recordings.length > 1, first = recordings[0];
  const each = (pick, label) => recordings.map((r, i) => ({ values: pick(r), color: SERIES[i % SERIES.length], label: label || r.info.solver, recording: r }));
  const reading = (lines, format) => f => many || !(lines[0].values[f] === lines[0].values[f]) ? "" : lines.map(l => format(l.values[f])).join(" · ");
  const list = [];
  const some = name => recordings.some(r => r.stat[name] && r.stat[name].some(v => v === v));
  if (many) {
    list.push({ name: "time", title: "Time per step, ms", lines: each(r => r.stat.step_ms), floor: 0, format: x => `${number(x)} ms` });
  } else if (first.systems.length) {
    // The colours go to those that take the most; the rest is grey.
    const total = first.timing.map(t => t.reduce((s, v) => s + v, 0)), rank = total.map(t => total.filter(u => u > t).length);
    list.push({ name: "time", title: "Time per system", stack: first.systems.map((label, k) => ({ values: first.timing[k], label, color: SYSTEMS[rank[k]] || "#9aa1ab" })),
      floor: 0, format: x => `${number(x)} ms` });
  }
  if (some("residual")) list.push({ name: "residual", title: "Residual", lines: each(r => r.stat.residual), log: true, least: 1e-16, format: x => number(x, 2) });
  if (some("coupling")) list.push({ name: "coupling", title: "Coupling iterations", lines: each(r => r.stat.coupling), floor: 0, step: true, format: x => number(x) });
  if (some("kinetic")) {
    const total = r => r.stat.kinetic.map((k, f) => k + r.stat.potential[f]);
    const lines = many ? each(total) : [
      { values: first.stat.kinetic, color: SERIES[0], label: "kinetic" }, { values: first.stat.potential, color: SERIES[1], label: "potential" },
      { values: total(first), color: SERIES[2], label: "total" }];
    list.push({ name: "energy", title: many ? "Energy, total" : "Energy", lines, format: x => `${number(x)} J` });
  }
  if (some("joint_error") && recordings.some(r => r.joints.length || r.stat.joint_error.some(v => v > 0))) {
    list.push({ name: "joint_error", title: "Joint error", lines: each(r => r.stat.joint_error), log: true, least: 1e-9, format: metres });
  } else if (some("penetration")) {
    list.push({ name: "penetration", title: "Penetration", lines: each(r => r.stat.penetration), log: true, least: 1e-9, format: metres });
  }
  for (const d of list) d.reading = d.lines ? reading(d.lines, d.format) : f => `${number(d.stack.reduce((s, l) => s + l.values[f], 0))} ms`;
  return list;
}

class Plot {
  constructor(parent, definition, recordings, seek) {
    Object.assign(this, definition, { recordings });
    const box = document.createElement("div");
    box.className = "plot";
    box.innerHTML = `<header><b></b><output></output></header><canvas></canvas><div class="hand"></div>`;
    box.querySelector("b").textContent = definition.title;
    this.output = box.querySelector("output");
    this.canvas = box.querySelector("canvas");
    this.hand = box.querySelector(".hand");
    this.dots = (definition.lines || []).map(line => {
      const dot = document.createElement("i");
      dot.style.background = line.color;
      this.hand.append(dot);
      return dot;
    });
    parent.append(box);
    this.box = box;
    const drag = event => {
      const r = this.canvas.getBoundingClientRect();
      seek((event.clientX - r.left) / r.width);
    };
    this.canvas.addEventListener("pointerdown", event => { if (event.pointerType !== "touch") this.canvas.setPointerCapture(event.pointerId); drag(event); });
    this.canvas.addEventListener("pointermove", event => { if (event.buttons) drag(event); });
    this.measure();
  }

  /** Takes it off the page. */
  remove() { this.box.remove(); }

  /** Puts it before all others. */
  first() { this.box.parentElement.prepend(this.box); }

  /** Least and greatest value of the axis. */
  measure() {
    let low = Infinity, high = -Infinity;
    const frames = Math.max(...this.recordings.map(r => r.frames));
    const see = v => { if (v === v && isFinite(v) && (!this.log || v > 0)) { low = Math.min(low, v); high = Math.max(high, v); } };
    if (this.stack) for (let f = 0; f < frames; f++) see(this.stack.reduce((s, l) => s + l.values[f], 0));
    else for (const line of this.lines) line.values.forEach(see);
    if (!(high >= low)) [low, high] = this.log ? [1e-12, 1] : [0, 1];
    if (this.stack) {
      // One slow step (the first touches cold memory) must not flatten the rest.
      const sums = Array.from({ length: frames }, (_, f) => this.stack.reduce((s, l) => s + l.values[f], 0)).sort((a, b) => a - b);
      high = Math.min(high, 1.6 * sums[Math.floor(0.98 * (frames - 1))]) || 1;
    }
    if (!this.log && this.lines && this.recordings.length > 1) {
      // Nor must one run that flies apart.
      const all = Float64Array.from(this.lines.flatMap(l => Array.from(l.values)).filter(v => isFinite(v))).sort();
      const [few, most] = [0.1, 0.9].map(q => all[Math.floor(q * (all.length - 1))] ?? 0), room = most - few || Math.abs(most) || 1;
      [low, high] = [Math.max(low, few - room), Math.min(high, most + room)];
    }
    if (this.log) {
      // Below this is rounding noise; it is drawn at the bottom.
      low = 10 ** Math.floor(Math.log10(Math.max(low, this.least)) + 1e-9);
      high = Math.max(high, low);
      high = 10 ** Math.ceil(Math.log10(high) + 1e-9);
      if (low === high) high = low * 10;
    } else {
      if (this.floor !== undefined) low = Math.min(this.floor, low);
      const pad = 0.06 * (high - low || Math.abs(high) || 1);
      high += pad;
      if (this.floor === undefined) low -= pad;
    }
    this.low = low;
    this.high = high;
  }

  y(value, height) {
    const s = this.log ? Math.log(Math.max(value, this.low) / this.low) / Math.log(this.high / this.low) : (value - this.low) / (this.high - this.low);
    return height - 2 - Math.min(Math.max(s, -0.05), 1.05) * (height - 14);
  }

  x(frame, frames, width) { return frames > 1 ? frame / (frames - 1) * width : 0; }

  draw() {
    const ratio = Math.min(devicePixelRatio || 1, 2), w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    if (!w || !h) return;
    this.canvas.width = w * ratio;
    this.canvas.height = h * ratio;
    const g = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    g.scale(ratio, ratio);
    g.font = "10px system-ui, sans-serif";
    const marks = this.marks();
    this.rules(g, w, h, marks, style.getPropertyValue("--line"));
    if (this.stack) this.drawStack(g, w, h);
    else for (const line of this.lines) this.drawLine(g, line, w, h);
    this.scale(g, h, marks, style.getPropertyValue("--soft"), style.getPropertyValue("--paper"));
    this.labels(g, w, style.getPropertyValue("--soft"), style.getPropertyValue("--paper"));
  }

  /** Values worth a line, with their text. */
  marks() {
    if (this.log) {
      const from = Math.round(Math.log10(this.low)), to = Math.round(Math.log10(this.high)), every = Math.ceil((to - from) / 4), marks = [];
      for (let e = from; e <= to; e += every) marks.push([10 ** e, `1e${e}`.replace("-", "−")]);
      return marks;
    }
    const raw = (this.high - this.low) / 3, base = 10 ** Math.floor(Math.log10(raw)), marks = [];
    const step = [1, 2, 5, 10].map(m => m * base).find(s => s >= raw) || raw;
    for (let k = Math.ceil(this.low / step); k * step <= this.high; k++) {
      // Enough digits to tell neighbours apart.
      marks.push([k * step, number(k * step, Math.min(Math.max(3, 1 + Math.ceil(Math.log10(Math.abs(k) + 1))), 9))]);
    }
    return marks;
  }

  rules(g, w, h, marks, color) {
    g.strokeStyle = color;
    for (const [value] of marks) {
      const y = Math.round(this.y(value, h)) + 0.5;
      g.beginPath(); g.moveTo(0, y); g.lineTo(w, y); g.stroke();
    }
  }

  /** Numbers on top of the curves, with a rim so that they can be read. */
  scale(g, h, marks, color, rim) {
    g.lineWidth = 3;
    g.lineJoin = "round";
    g.strokeStyle = rim;
    g.fillStyle = color;
    for (const [value, text] of marks) {
      const y = Math.round(this.y(value, h)) - 3;
      g.strokeText(text, 1, y); g.fillText(text, 1, y);
    }
  }

  drawStack(g, w, h) {
    const frames = this.recordings[0].frames, sums = new Float32Array(frames);
    g.globalAlpha = 0.92;
    for (const layer of this.stack) {
      g.fillStyle = layer.color;
      g.beginPath();
      for (let f = 0; f < frames; f++) g.lineTo(this.x(f, frames, w), this.y(sums[f] + layer.values[f], h));
      for (let f = frames - 1; f >= 0; f--) { g.lineTo(this.x(f, frames, w), this.y(sums[f], h)); sums[f] += layer.values[f]; }
      g.fill();
    }
    g.globalAlpha = 1;
  }

  drawLine(g, line, w, h) {
    const { values } = line, frames = Math.max(...this.recordings.map(r => r.frames));
    g.strokeStyle = line.color;
    g.lineWidth = 1.5;
    g.lineJoin = "round";
    g.beginPath();
    let pen = false, before = 0;
    for (let f = 0; f < values.length; f++) {
      const v = values[f];
      if (!(v === v)) { pen = false; continue; }
      const x = this.x(f, frames, w), y = this.y(v, h);
      if (pen && this.step) g.lineTo(x, before);
      if (pen) g.lineTo(x, y); else g.moveTo(x, y);
      pen = true;
      before = y;
    }
    g.stroke();
  }

  /** Names of the lines, or of the systems that take the most. */
  labels(g, w, soft, paper) {
    let list = this.lines ? (this.lines.length > 1 ? [...this.lines] : []) : [...this.stack];
    if (this.stack) {
      const sum = l => l.values.reduce((s, v) => s + v, 0);
      list = list.sort((a, b) => sum(b) - sum(a)).slice(0, 4);
    }
    // As many as fit, the most important first; drawn from the right.
    let room = w - 44;
    list = list.filter(({ label }) => (room -= g.measureText(label).width + 18) > 0);
    let x = w;
    g.textAlign = "right";
    for (const { label, color } of list.reverse()) {
      const width = g.measureText(label).width;
      g.fillStyle = paper; g.globalAlpha = 0.75; g.fillRect(x - width - 14, 0, width + 16, 13); g.globalAlpha = 1;
      g.fillStyle = soft; g.fillText(label, x, 10);
      g.fillStyle = color; g.fillRect(x - width - 11, 3, 8, 8);
      x -= width + 18;
    }
    g.textAlign = "left";
  }

  /** Moves the cursor: elements over the drawing, so that nothing is drawn again. */
  cursor(frame) {
    const frames = Math.max(...this.recordings.map(r => r.frames)), h = this.canvas.clientHeight;
    if (!h) return;
    const x = this.x(frame, frames, this.canvas.clientWidth - 1);
    this.hand.style.transform = `translateX(${x}px)`;
    this.dots.forEach((dot, i) => {
      const { values } = this.lines[i], v = values[Math.min(Math.round(frame), values.length - 1)];
      dot.style.transform = v === v ? `translateY(${this.y(v, h)}px)` : "translateY(-99px)";
    });
    const text = this.reading(Math.min(Math.round(frame), this.recordings[0].frames - 1));
    if (text !== this.text) this.output.textContent = this.text = text;
  }
}
