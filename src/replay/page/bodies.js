// Bodies: every part of every body in one buffer and one draw call. The parts' places in their bodies are baked in; where
// the bodies are and what colour they have is a small texture that the vertex shader reads. (Instancing was tried: without
// a graphics card each instance costs 0.05 ms, whatever its size.)

/** Unit geometries, rounder when there are few of them. */
function unitGeometry(form, count, software) {
  const round = software ? (count > 100 ? 8 : count > 40 ? 12 : 24) : count > 2000 ? 16 : count > 400 ? 24 : 36;
  switch (form) {
    case "box": return new THREE.BoxGeometry(2, 2, 2);
    case "sphere": return new THREE.SphereGeometry(1, round, Math.round(round * 0.6));
    case "cylinder": return new THREE.CylinderGeometry(1, 1, 2, round);
    default: return new THREE.ConeGeometry(1, 2, round);
  }
}

/** A mesh of the recording, with flat faces. */
function meshGeometry(mesh) {
  const corners = new Float32Array(mesh.triangles.length * 9);
  mesh.triangles.forEach((t, i) => t.forEach((v, k) => corners.set(mesh.vertices[v], 9 * i + 3 * k)));
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(corners, 3));
  geometry.computeVertexNormals();
  return geometry;
}

/** Texels a body has (position and presence, rotation, colour) and texels in a row of the texture. */
const TEXELS = 3, ROW = 768;

const BODY_SHADER = `
attribute float body; uniform highp sampler2D bodies;
vec4 bodyTexel(int k) { int i = int(body + 0.5) * ${TEXELS} + k; return texelFetch(bodies, ivec2(i % ${ROW}, i / ${ROW}), 0); }
vec3 turned(vec4 q, vec3 v) { return v + 2.0 * cross(q.xyz, cross(q.xyz, v) + q.w * v); }
`;

// A thin line along the edges of boxes, so that a stack shows its bricks, gone where a box is a few pixels wide. `face` is
// where we are on our face and the half sizes of that face.
const EDGE_SHADER = `
float boxEdge(vec4 face) {
  vec2 d = face.zw - abs(face.xy), w = fwidth(face.xy);
  float blur = max(max(w.x, w.y), 1e-6), fine = clamp(0.25 * min(face.z, face.w) / blur, 0.0, 1.0);
  return fine * (1.0 - smoothstep(0.6, 1.8, min(d.x, d.y) / blur));
}
`;

/** Lets a material of three.js take poses and colours from the texture. */
function readBodies(material, texture) {
  material.onBeforeCompile = shader => {
    shader.uniforms.bodies = { value: texture };
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", `#include <common>${BODY_SHADER}attribute vec4 edge; varying vec3 bodyTint; varying vec4 face;`)
      .replace("#include <beginnormal_vertex>", "#include <beginnormal_vertex>\nobjectNormal = turned(bodyTexel(1), objectNormal);")
      .replace("#include <begin_vertex>", "#include <begin_vertex>\nvec4 bodyAt = bodyTexel(0); transformed = bodyAt.w * (turned(bodyTexel(1), transformed) + bodyAt.xyz);\n" +
        "bodyTint = bodyTexel(2).rgb; face = edge;");
    shader.fragmentShader = shader.fragmentShader
      .replace("#include <common>", "#include <common>\nvarying vec3 bodyTint; varying vec4 face;")
      .replace("#include <color_fragment>", "#include <color_fragment>\ndiffuseColor.rgb *= bodyTint * (1.0 - 0.28 * boxEdge(face));")
      .replace("void main() {", `${EDGE_SHADER}void main() {`);
  };
  return material;
}

class BodyLayer {
  constructor(stage, track) {
    const { recording } = track;
    this.recording = recording;
    this.grounds = [];
    this.parts = [];
    this.poses = new Float32Array(7 * recording.count);
    this.present = new Uint8Array(recording.count);
    const cabled = new Set(track.cables ? track.cables.members : []);
    recording.bodies.forEach((body, b) => {
      if (cabled.has(b)) return;
      for (const part of body.parts) {
        const local = new THREE.Matrix4().compose(
          new THREE.Vector3(...part.position), new THREE.Quaternion(...part.rotation), new THREE.Vector3(...part.size));
        if (part.form === "plane") this.grounds.push({ body: b, local, mesh: stage.addGround(track) });
        else {
          // What is large in the picture is rounder than what there are many of.
          const large = Math.max(...part.size) > 0.04 * stage.bounds.radius ? " large" : "";
          this.parts.push({ body: b, local, form: part.form, size: part.size, key: part.form === "mesh" ? `mesh ${part.mesh}` : part.form + large, number: part.mesh });
        }
      }
    });
    if (!this.grounds.length && isFinite(stage.bounds.floor)) {
      // Not part of the simulation: something for shadows to fall on, so that depth can be read.
      const grid = stage.addGround(track);
      grid.matrix.makeTranslation(stage.bounds.centre[0], stage.bounds.centre[1], stage.bounds.floor);
    }
    const height = Math.max(1, Math.ceil(recording.count * TEXELS / ROW));
    this.texels = new Float32Array(4 * ROW * height);
    this.texture = new THREE.DataTexture(this.texels, ROW, height, THREE.RGBAFormat, THREE.FloatType);
    this.geometries = this.unitGeometries(stage.software);
    const plain = stage.software, look = new THREE.MeshLambertMaterial(), depth = new THREE.MeshDepthMaterial();
    this.mesh = new THREE.Mesh(this.bake(), plain ? plainBodies(look, this.texture, stage.light) : readBodies(look, this.texture));
    this.mesh.customDepthMaterial = plain ? plainDepth(depth, this.texture) : readBodies(depth, this.texture);
    this.mesh.castShadow = this.mesh.receiveShadow = true;
    this.mesh.frustumCulled = false;
    track.scene.add(this.mesh);
  }

  unitGeometries(software) {
    const counts = new Map(), geometries = new Map();
    for (const { key } of this.parts) counts.set(key, (counts.get(key) || 0) + 1);
    for (const { key, form, number } of this.parts) {
      if (geometries.has(key)) continue;
      const geometry = form === "mesh" ? meshGeometry(this.recording.meshes[number]) : unitGeometry(form, counts.get(key), software);
      geometries.set(key, { position: geometry.attributes.position.array, normal: geometry.attributes.normal.array, index: geometry.index?.array });
    }
    return geometries;
  }

  /** One geometry of all parts, each in the frame of its body. */
  bake() {
    let vertices = 0, corners = 0;
    for (const { key } of this.parts) {
      const { position, index } = this.geometries.get(key);
      vertices += position.length / 3;
      corners += index ? index.length : position.length / 3;
    }
    const position = new Float32Array(3 * vertices), normal = new Float32Array(3 * vertices), body = new Float32Array(vertices), index = new Uint32Array(corners);
    const edge = new Float32Array(4 * vertices);
    let v = 0, c = 0;
    for (const part of this.parts) {
      const unit = this.geometries.get(part.key), n = unit.position.length / 3, m = part.local.elements;
      // Normals go with the inverse transpose: columns divided by their squared lengths.
      const shrink = [0, 4, 8].map(k => 1 / (m[k] ** 2 + m[k + 1] ** 2 + m[k + 2] ** 2));
      if (unit.index) for (let i = 0; i < unit.index.length; i++) index[c++] = v + unit.index[i];
      else for (let i = 0; i < n; i++) index[c++] = v + i;
      for (let i = 0; i < n; i++, v++) {
        const x = unit.position[3 * i], y = unit.position[3 * i + 1], z = unit.position[3 * i + 2];
        const a = unit.normal[3 * i] * shrink[0], b = unit.normal[3 * i + 1] * shrink[1], d = unit.normal[3 * i + 2] * shrink[2];
        for (let k = 0; k < 3; k++) {
          position[3 * v + k] = m[k] * x + m[4 + k] * y + m[8 + k] * z + m[12 + k];
          normal[3 * v + k] = m[k] * a + m[4 + k] * b + m[8 + k] * d;
        }
        const length = Math.hypot(normal[3 * v], normal[3 * v + 1], normal[3 * v + 2]) || 1;
        for (let k = 0; k < 3; k++) normal[3 * v + k] /= length;
        body[v] = part.body;
        if (part.form === "box") {
          const away = [0, 1, 2].findIndex(k => Math.abs(unit.normal[3 * i + k]) > 0.5), [k, l] = [(away + 1) % 3, (away + 2) % 3];
          edge.set([unit.position[3 * i + k] * part.size[k], unit.position[3 * i + l] * part.size[l], part.size[k], part.size[l]], 4 * v);
        } else edge.set([0, 0, 1e6, 1e6], 4 * v);
      }
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(position, 3));
    geometry.setAttribute("normal", new THREE.BufferAttribute(normal, 3));
    geometry.setAttribute("body", new THREE.BufferAttribute(body, 1));
    geometry.setAttribute("edge", new THREE.BufferAttribute(edge, 4));
    geometry.setIndex(new THREE.BufferAttribute(index, 1));
    return geometry;
  }

  /** The bodies that are in the picture. */
  drawn() {
    return new Set([...this.grounds, ...this.parts].map(p => p.body).filter(b => this.texels[4 * TEXELS * b + 3] === 1));
  }

  update(frame) {
    const { recording, poses, present, texels } = this, pose = new Float32Array(7);
    for (let b = 0; b < recording.count; b++) {
      const here = recording.pose(frame, b, pose), at = 4 * TEXELS * b;
      present[b] = here ? 1 : 0;
      poses.set(pose, 7 * b);
      texels[at + 3] = present[b];
      if (!here) { texels.fill(0, at, at + 3); continue; }
      for (let k = 0; k < 3; k++) texels[at + k] = pose[k];
      for (let k = 0; k < 4; k++) texels[at + 4 + k] = pose[3 + k];
    }
    this.texture.needsUpdate = true;
    const matrix = (this.matrix ||= new THREE.Matrix4());
    for (const { mesh, body, local } of this.grounds) {
      mesh.visible = !!present[body];
      if (!mesh.visible) continue;
      poseMatrix(poses, 7 * body, matrix.elements);
      mesh.matrix.multiplyMatrices(matrix, local);
      mesh.matrixWorldNeedsUpdate = true;
    }
  }

  paint(mode, frame, selected) {
    const f = Math.round(frame);
    for (let b = 0; b < this.recording.count; b++) {
      const color = bodyColor(this.recording, mode, f, b), lift = b === selected ? 0.45 : 0;
      for (let k = 0; k < 3; k++) {
        const linear = LINEAR[Math.round(color[k])];
        this.texels[4 * (TEXELS * b + 2) + k] = linear + lift * (HIGHLIGHT[k] - linear);
      }
    }
    this.texture.needsUpdate = true;
  }

  /** The body a ray meets first, and how far away. */
  hit(ray) {
    let best = { distance: Infinity, body: -1 };
    const matrix = new THREE.Matrix4(), origin = new THREE.Vector3(), direction = new THREE.Vector3();
    for (const part of this.parts) {
      if (!this.present[part.body]) continue;
      poseMatrix(this.poses, 7 * part.body, matrix.elements);
      matrix.multiply(part.local).invert();
      // The direction is not normalised in the part's frame, so distances stay those of the world.
      origin.copy(ray.origin).applyMatrix4(matrix);
      direction.copy(ray.direction).transformDirection(matrix).multiplyScalar(stretch(ray.direction, matrix.elements));
      const distance = hitPart(part.form, this.geometries.get(part.key), origin, direction);
      if (distance < best.distance) best = { distance, body: part.body };
    }
    return best.body < 0 ? null : best;
  }
}

const HIGHLIGHT = [1.2, 0.7, 0.2];

/** Length of a direction after a matrix, without its translation. */
function stretch(d, m) {
  return Math.hypot(m[0] * d.x + m[4] * d.y + m[8] * d.z, m[1] * d.x + m[5] * d.y + m[9] * d.z, m[2] * d.x + m[6] * d.y + m[10] * d.z);
}

/** Distance to a unit form: balls and meshes exactly, the rest by the box around them. */
function hitPart(form, geometry, o, d) {
  if (form === "sphere") {
    const a = d.dot(d), b = o.dot(d), root = b * b - a * (o.dot(o) - 1);
    return root < 0 || b > 0 ? Infinity : (-b - Math.sqrt(root)) / a;
  }
  if (form === "mesh") return hitTriangles(geometry.position, o, d);
  let near = 0, far = Infinity;
  for (const k of ["x", "y", "z"]) {
    const s = (-1 - o[k]) / d[k], t = (1 - o[k]) / d[k];
    near = Math.max(near, Math.min(s, t));
    far = Math.min(far, Math.max(s, t));
  }
  return near <= far ? near : Infinity;
}

function hitTriangles(corners, o, d) {
  let best = Infinity;
  const a = new THREE.Vector3(), u = new THREE.Vector3(), v = new THREE.Vector3(), p = new THREE.Vector3(), q = new THREE.Vector3();
  for (let i = 0; i < corners.length; i += 9) {
    a.fromArray(corners, i);
    u.fromArray(corners, i + 3).sub(a);
    v.fromArray(corners, i + 6).sub(a);
    const det = u.dot(p.crossVectors(d, v)), s = a.subVectors(o, a).dot(p) / det, t = d.dot(q.crossVectors(a, u)) / det;
    if (s >= 0 && t >= 0 && s + t <= 1) { const r = v.dot(q) / det; if (r > 0 && r < best) best = r; }
  }
  return best;
}

/** Column-major matrix of a pose (x y z, qx qy qz qw) at `at`. */
function poseMatrix(p, at, m) {
  const x = p[at + 3], y = p[at + 4], z = p[at + 5], w = p[at + 6];
  m[0] = 1 - 2 * (y * y + z * z); m[1] = 2 * (x * y + z * w); m[2] = 2 * (x * z - y * w); m[3] = 0;
  m[4] = 2 * (x * y - z * w); m[5] = 1 - 2 * (x * x + z * z); m[6] = 2 * (y * z + x * w); m[7] = 0;
  m[8] = 2 * (x * z + y * w); m[9] = 2 * (y * z - x * w); m[10] = 1 - 2 * (x * x + y * y); m[11] = 0;
  m[12] = p[at]; m[13] = p[at + 1]; m[14] = p[at + 2]; m[15] = 1;
}

