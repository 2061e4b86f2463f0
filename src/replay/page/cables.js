// Cables: a smooth tube through the middles of their links, rebuilt for each frame.

const TUBE_SIDES = 8, TUBE_STEPS = 3;

class CableLayer {
  constructor(track) {
    this.recording = track.recording;
    this.members = [];
    this.tubes = [];
    const cables = new Map();
    this.recording.bodies.forEach((body, b) => {
      if (!body.cable) return;
      if (!cables.has(body.cable.cable)) cables.set(body.cable.cable, []);
      cables.get(body.cable.cable).push({ b, order: body.cable.order, radius: body.cable.radius });
    });
    for (const links of cables.values()) {
      if (links.length < 2) continue;
      links.sort((a, b) => a.order - b.order);
      this.members.push(...links.map(l => l.b));
      this.tubes.push(this.build(links, track.scene));
    }
  }

  /** How far a link reaches along its y axis: the tube begins and ends there. */
  static reach(body) {
    let reach = 0;
    for (const p of body.parts) {
      const along = p.form === "cylinder" || p.form === "box" ? p.size[1] : 0;
      reach = Math.max(reach, Math.abs(p.position[1]) + along);
    }
    return reach;
  }

  build(links, scene) {
    const rings = (links.length + 1) * TUBE_STEPS + 1;
    const geometry = new THREE.BufferGeometry();
    for (const name of ["position", "normal", "color"]) {
      geometry.setAttribute(name, new THREE.BufferAttribute(new Float32Array(3 * rings * TUBE_SIDES), 3).setUsage(THREE.DynamicDrawUsage));
    }
    const index = [];
    for (let r = 0; r + 1 < rings; r++) {
      for (let s = 0; s < TUBE_SIDES; s++) {
        const a = r * TUBE_SIDES + s, b = r * TUBE_SIDES + (s + 1) % TUBE_SIDES;
        index.push(a, b, a + TUBE_SIDES, b, b + TUBE_SIDES, a + TUBE_SIDES);
      }
    }
    geometry.setIndex(index);
    const mesh = new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ vertexColors: true, side: THREE.DoubleSide }));
    mesh.castShadow = mesh.receiveShadow = true;
    mesh.frustumCulled = false;
    mesh.userData.links = links.map(l => l.b);
    scene.add(mesh);
    const last = links[links.length - 1];
    return { mesh, links, rings, points: new Float32Array(3 * (links.length + 2)),
      ends: [CableLayer.reach(this.recording.bodies[links[0].b]), CableLayer.reach(this.recording.bodies[last.b])] };
  }

  update(frame) {
    const pose = new Float32Array(7);
    for (const tube of this.tubes) {
      const { links, points, ends } = tube, n = links.length;
      for (let i = 0; i < n; i++) {
        if (!this.recording.pose(frame, links[i].b, pose)) pose.fill(0);
        points.set(pose.subarray(0, 3), 3 * (i + 1));
        if (i !== 0 && i !== n - 1) continue;
        // The outer end of the link: along its y axis, away from its neighbour.
        const [, , , x, y, z, w] = pose, axis = [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)];
        const at = i === 0 ? 0 : 3 * (n + 1), reach = ends[i === 0 ? 0 : 1];
        tube.outer ||= [];
        tube.outer[i === 0 ? 0 : 1] = { at, axis, reach, from: Array.from(pose.subarray(0, 3)), near: i === 0 ? 2 : n - 1 };
      }
      for (const { at, axis, reach, from, near } of tube.outer) {
        const q = points.subarray(3 * near, 3 * near + 3);
        const away = axis[0] * (from[0] - q[0]) + axis[1] * (from[1] - q[1]) + axis[2] * (from[2] - q[2]) < 0 ? -1 : 1;
        for (let k = 0; k < 3; k++) points[at + k] = from[k] + away * reach * axis[k];
      }
      this.sweep(tube);
    }
  }

  /** Rings along a Catmull–Rom curve; the frame is carried along without twist. */
  sweep({ mesh, points, links, rings }) {
    const position = mesh.geometry.attributes.position.array, normal = mesh.geometry.attributes.normal.array;
    const last = points.length / 3 - 1, radius = links[0].radius;
    const at = (i, k) => points[3 * Math.min(Math.max(i, 0), last) + k];
    const p = new THREE.Vector3(), t = new THREE.Vector3(), u = new THREE.Vector3(), v = new THREE.Vector3();
    for (let r = 0; r < rings; r++) {
      const x = Math.min(r / TUBE_STEPS, last), i = Math.min(Math.floor(x), last - 1), s = x - i;
      const point = k => {
        const a = at(i - 1, k), b = at(i, k), c = at(i + 1, k), d = at(i + 2, k);
        return [b + 0.5 * s * (c - a + s * (2 * a - 5 * b + 4 * c - d + s * (3 * (b - c) + d - a))),
          0.5 * (c - a) + s * (2 * a - 5 * b + 4 * c - d) + 1.5 * s * s * (3 * (b - c) + d - a)];
      };
      const [x0, dx] = point(0), [y0, dy] = point(1), [z0, dz] = point(2);
      p.set(x0, y0, z0);
      t.set(dx, dy, dz).normalize();
      if (r === 0) u.set(Math.abs(t.z) < 0.9 ? 0 : 1, 0, Math.abs(t.z) < 0.9 ? 1 : 0);
      u.addScaledVector(t, -u.dot(t)).normalize();
      v.crossVectors(t, u);
      for (let side = 0; side < TUBE_SIDES; side++) {
        const angle = 2 * Math.PI * side / TUBE_SIDES, c = Math.cos(angle), d = Math.sin(angle), o = 3 * (r * TUBE_SIDES + side);
        normal[o] = c * u.x + d * v.x; normal[o + 1] = c * u.y + d * v.y; normal[o + 2] = c * u.z + d * v.z;
        position[o] = p.x + radius * normal[o]; position[o + 1] = p.y + radius * normal[o + 1]; position[o + 2] = p.z + radius * normal[o + 2];
      }
    }
    mesh.geometry.attributes.position.needsUpdate = mesh.geometry.attributes.normal.needsUpdate = true;
    mesh.geometry.boundingSphere = null;
  }

  paint(mode, frame, selected) {
    const f = Math.round(frame);
    for (const { mesh, links, rings } of this.tubes) {
      const out = mesh.geometry.attributes.color.array;
      for (let r = 0; r < rings; r++) {
        const b = links[this.linkOf(r, links.length)].b;
        const color = bodyColor(this.recording, mode, f, b);
        for (let s = 0; s < TUBE_SIDES; s++) {
          // A gentle two-strand twist, so that a turning cable is seen to turn.
          const strand = mode === "material" ? 1 - 0.14 * (((s + r) >> 1) & 1) : 1;
          for (let k = 0; k < 3; k++) out[3 * (r * TUBE_SIDES + s) + k] = strand * LINEAR[Math.round(color[k])] + (b === selected && k === 0 ? 0.4 : 0);
        }
      }
      mesh.geometry.attributes.color.needsUpdate = true;
    }
  }

  linkOf(ring, count) { return Math.min(Math.max(Math.round(ring / TUBE_STEPS) - 1, 0), count - 1); }
}
