// Forces as arrows: length grows with the square root of the force, so that small ones can still be seen, and ends at
// twice the length of the force that 98 of 100 stay below, so that a blow does not cross the sky.

class ArrowLayer {
  constructor(scene, color, most, unit) {
    const material = new THREE.MeshBasicMaterial({ color });
    this.unit = unit;
    this.shaft = new THREE.InstancedMesh(new THREE.CylinderGeometry(1, 1, 1, 6).translate(0, 0.5, 0), material, Math.max(1, most));
    this.head = new THREE.InstancedMesh(new THREE.ConeGeometry(1, 1, 10).translate(0, 0.5, 0), material, Math.max(1, most));
    for (const mesh of [this.shaft, this.head]) {
      mesh.frustumCulled = false;
      mesh.count = 0;
      mesh.visible = false;
      scene.add(mesh);
    }
  }

  show(visible) { this.shaft.visible = this.head.visible = visible; }

  begin() { this.used = 0; }

  /** An arrow from (x, y, z) along (fx, fy, fz); `top` is the force that gets the full length. */
  add(x, y, z, fx, fy, fz, top) {
    const size = Math.hypot(fx, fy, fz), length = this.unit * Math.min(Math.sqrt(size / top), 2);
    if (!(length > 0.02 * this.unit) || this.used >= this.shaft.instanceMatrix.count) return;
    const { matrix = (this.matrix = new THREE.Matrix4()), turn = (this.turn = new THREE.Quaternion()) } = this;
    const from = (this.from ||= new THREE.Vector3()), along = (this.along ||= new THREE.Vector3()), scale = (this.scale ||= new THREE.Vector3());
    const width = this.unit * 0.022, head = Math.min(0.35 * length, 0.16 * this.unit);
    along.set(fx, fy, fz).divideScalar(size);
    turn.setFromUnitVectors(ArrowLayer.UP, along);
    this.shaft.setMatrixAt(this.used, matrix.compose(from.set(x, y, z), turn, scale.set(width, length - head, width)));
    from.addScaledVector(along, length - head);
    this.head.setMatrixAt(this.used++, matrix.compose(from, turn, scale.set(3 * width, head, 3 * width)));
  }

  end() {
    for (const mesh of [this.shaft, this.head]) {
      mesh.count = this.used;
      mesh.instanceMatrix.needsUpdate = true;
    }
  }
}
ArrowLayer.UP = new THREE.Vector3(0, 1, 0);

/** Contact forces, joint forces and the joints themselves. */
class ForceLayer {
  constructor(stage, track) {
    const { recording, scene } = track, unit = 0.22 * stage.bounds.radius;
    this.recording = recording;
    const most = recording.contact ? Math.max(0, ...Array.from({ length: recording.frames }, (_, f) => recording.contact.start[f + 1] - recording.contact.start[f])) : 0;
    this.contacts = new ArrowLayer(scene, 0x2f9e6e, most, unit);
    this.loads = new ArrowLayer(scene, 0xd9482b, recording.joints.length, unit);
    this.topContact = this.measureContacts();
    const knob = new THREE.InstancedMesh(new THREE.SphereGeometry(1, 10, 8), new THREE.MeshBasicMaterial({ color: 0xd9482b }), Math.max(1, recording.joints.length));
    knob.frustumCulled = false;
    knob.visible = false;
    knob.count = recording.joints.length;
    knob.userData.joints = true;
    this.knobs = knob;
    this.knobSize = 0.006 * stage.bounds.radius;
    scene.add(knob);
  }

  measureContacts() {
    const { contact } = this.recording, sizes = [];
    if (!contact) return 1;
    const total = contact.point[0].length, step = Math.max(1, Math.floor(total / 4000));
    for (let i = 0; i < total; i += step) sizes.push(Math.hypot(contact.force[0][i], contact.force[1][i], contact.force[2][i]));
    return sizes.sort((a, b) => a - b)[Math.floor(0.98 * (sizes.length - 1))] || 1;
  }

  /** World position of a joint, from the poses that were just drawn. */
  anchor(joint, bodies, out) {
    const info = this.recording.joints[joint], b = info.bodies[0] ?? info.bodies[1];
    if (b === null || b === undefined) { out[0] = info.anchor[0]; out[1] = info.anchor[1]; out[2] = info.anchor[2]; return true; }
    if (!bodies.present[b]) return false;
    const m = this.scratch ||= new Float32Array(16), [x, y, z] = info.anchor;
    poseMatrix(bodies.poses, 7 * b, m);
    for (let k = 0; k < 3; k++) out[k] = m[k] * x + m[4 + k] * y + m[8 + k] * z + m[12 + k];
    return true;
  }

  update(frame, bodies, show) {
    const f = Math.round(frame), { recording } = this, p = [0, 0, 0];
    this.contacts.show(show.contacts);
    if (show.contacts && recording.contact) {
      const { start, point, force } = recording.contact;
      this.contacts.begin();
      for (let i = start[f]; i < start[f + 1]; i++) {
        this.contacts.add(point[0][i], point[1][i], point[2][i], force[0][i], force[1][i], force[2][i], this.topContact);
      }
      this.contacts.end();
    }
    this.loads.show(show.forces);
    this.knobs.visible = show.forces;
    if (!show.forces) return;
    const n = recording.joints.length, matrix = new THREE.Matrix4();
    this.loads.begin();
    for (let j = 0; j < n; j++) {
      const here = this.anchor(j, bodies, p), r = here ? this.knobSize : 0;
      this.knobs.setMatrixAt(j, matrix.makeScale(r, r, r).setPosition(p[0], p[1], p[2]));
      if (here && recording.load) {
        const i = f * n + j, [x, y, z] = recording.load;
        this.loads.add(p[0], p[1], p[2], x[i], y[i], z[i], recording.topLoad);
      }
    }
    this.loads.end();
    this.knobs.instanceMatrix.needsUpdate = true;
    this.knobs.boundingSphere = null;
  }
}
