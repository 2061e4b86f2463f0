// Reads a recording: the same bytes that Recording::to_bytes writes (src/replay/format.rs).

const ABSENT = -2147483648;

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes, length) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const out = new Uint8Array(length);
  for (let at = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return out;
    out.set(value, at);
    at += value.length;
  }
}

/** Joins byte planes and sums differences along rows, as often as they were taken. */
function readTable(block, bytes) {
  const { rows, columns, width, order } = block;
  const n = rows * columns;
  const values = new Int32Array(n);
  for (let plane = 0; plane < width; plane++) {
    const from = plane * n, shift = 8 * plane;
    for (let i = 0; i < n; i++) values[i] |= bytes[from + i] << shift;
  }
  for (let k = 0; k < order; k++) {
    for (let i = columns; i < n; i++) values[i] = (values[i] + values[i - columns]) | 0;
  }
  return values;
}

// Plain loops: `from` with a function is several times slower, and these are millions of numbers.
const asFloat = table => new Float32Array(table.buffer);
const asShort = table => new Int16Array(table);
function asHalf(table) {
  for (let i = 0; i < table.length; i++) table[i] <<= 16;
  return new Float32Array(table.buffer);
}
function asMetres(table, quantum) {
  const out = new Float32Array(table.length);
  for (let i = 0; i < table.length; i++) out[i] = table[i] === ABSENT ? NaN : table[i] * quantum;
  return out;
}

async function decodeRecording(text) {
  const file = bytesOfBase64(text.trim());
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const magic = String.fromCharCode(...file.subarray(0, 8));
  if (magic !== "TURNBKLE" || view.getUint32(8, true) > 1) throw new Error("this page cannot read its recording");
  const raw = await inflate(file.subarray(20), Number(view.getBigUint64(12, true)));
  const headerLength = new DataView(raw.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + headerLength)));
  const tables = {};
  let at = 4 + headerLength;
  for (const block of header.blocks) {
    const size = block.rows * block.columns * block.width;
    tables[block.name] = readTable(block, raw.subarray(at, at + size));
    at += size;
  }
  return new Recording(header, tables);
}

class Recording {
  constructor(header, tables) {
    Object.assign(this, header);
    this.count = header.bodies.length;
    this.position = ["px", "py", "pz"].map(k => asMetres(tables[k], header.quantum));
    this.rotation = ["qx", "qy", "qz", "qw"].map(k => asShort(tables[k]));
    this.partition = tables.partition || null;
    this.load = tables.lt ? ["lx", "ly", "lz", "lt"].map(k => asHalf(tables[k])) : null;
    const stats = asFloat(tables.stats), width = header.stats.length;
    this.stat = {};
    header.stats.forEach((name, k) => {
      this.stat[name] = Float32Array.from({ length: header.frames }, (_, f) => stats[f * width + k]);
    });
    const timings = asFloat(tables.timings), systems = header.systems.length;
    this.timing = header.systems.map((_, k) => Float32Array.from({ length: header.frames }, (_, f) => timings[f * systems + k]));
    if (tables.contact_count) this.readContacts(tables, header.contact_quantum);
    this.time = this.stat.time;
    this.duration = header.frames ? this.time[header.frames - 1] - this.time[0] : 0;
    this.measureSpeeds();
  }

  readContacts(tables, quantum) {
    const start = new Uint32Array(this.frames + 1);
    for (let f = 0; f < this.frames; f++) start[f + 1] = start[f] + tables.contact_count[f];
    const point = ["cx", "cy", "cz"].map(k => asMetres(asShort(tables[k]), quantum));
    this.contact = { start, point, force: ["cfx", "cfy", "cfz"].map(k => asHalf(tables[k])) };
  }

  /** Pose of a body at a frame that may lie between two; written into `out` (x y z, qx qy qz qw). False if absent. */
  pose(frame, body, out) {
    const f = Math.min(Math.floor(frame), this.frames - 1), s = frame - f, n = this.count;
    const i = f * n + body;
    for (let k = 0; k < 3; k++) out[k] = this.position[k][i];
    if (!(out[0] === out[0])) return false;
    for (let k = 0; k < 4; k++) out[3 + k] = this.rotation[k][i];
    const j = i + n;
    if (s > 0 && f + 1 < this.frames && this.position[0][j] === this.position[0][j]) {
      for (let k = 0; k < 3; k++) out[k] += s * (this.position[k][j] - out[k]);
      for (let k = 0; k < 4; k++) out[3 + k] += s * (this.rotation[k][j] - out[3 + k]);
    }
    const norm = Math.hypot(out[3], out[4], out[5], out[6]) || 1;
    for (let k = 3; k < 7; k++) out[k] /= norm;
    return true;
  }

  /** Speed by central differences of positions: there is no table of velocities to carry. */
  speed(frame, body) {
    const n = this.count, a = Math.max(0, frame - 1), b = Math.min(this.frames - 1, frame + 1);
    const dt = this.time[b] - this.time[a];
    const d = k => this.position[k][b * n + body] - this.position[k][a * n + body];
    const v = dt > 0 ? Math.hypot(d(0), d(1), d(2)) / dt : 0;
    return v === v ? v : 0;
  }

  loadOf(frame, joint) {
    if (!this.load) return 0;
    const i = frame * this.joints.length + joint;
    return Math.hypot(this.load[0][i], this.load[1][i], this.load[2][i]);
  }

  /** Top speed and load that nearly all samples stay below: the ends of the colour ramps. */
  measureSpeeds() {
    const speeds = [], loads = [];
    const frameStep = Math.max(1, Math.floor(this.frames / 40));
    for (let f = 0; f < this.frames; f += frameStep) {
      for (let b = 0; b < this.count; b++) if (this.bodies[b].kind !== "fixed") speeds.push(this.speed(f, b));
      for (let j = 0; j < this.joints.length; j++) loads.push(this.loadOf(f, j));
    }
    const top = list => list.sort((a, b) => a - b)[Math.floor(0.99 * (list.length - 1))] || 0;
    this.topSpeed = Math.max(top(speeds), 1e-3);
    this.topLoad = Math.max(top(loads), 1e-3);
  }

  /** The joints of each body. */
  jointsOf(body) {
    if (!this.adjacency) {
      this.adjacency = this.bodies.map(() => []);
      this.joints.forEach((joint, j) => joint.bodies.forEach(b => b !== null && this.adjacency[b].push(j)));
    }
    return this.adjacency[body];
  }
}
