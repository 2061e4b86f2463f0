// Renderer, light, ground, camera. One canvas shows every run: a viewport each, one camera for all.

/** Where things happen: centre and radius of the moving bodies over the whole run, strays left out. */
function boundsOf(recording) {
  const axes = [[], [], []];
  let size = 0.1;
  const frameStep = Math.max(1, Math.floor(recording.frames / 30));
  for (let b = 0; b < recording.count; b++) {
    const info = recording.bodies[b];
    const parts = info.parts.filter(p => p.form !== "plane");
    if (!parts.length && info.kind === "fixed") continue;
    if (info.kind === "fixed") continue;
    for (const p of parts) if (p.form !== "mesh") size = Math.max(size, Math.max(...p.size));
    for (let f = 0; f < recording.frames; f += frameStep) {
      for (let k = 0; k < 3; k++) {
        const v = recording.position[k][f * recording.count + b];
        if (v === v) axes[k].push(v);
      }
    }
  }
  const centre = [], half = [];
  for (let k = 0; k < 3; k++) {
    const list = Float32Array.from(axes[k]).sort();
    const at = q => list.length ? list[Math.floor(q * (list.length - 1))] : 0;
    const low = at(0.01), high = at(0.99);
    centre.push((low + high) / 2);
    half.push((high - low) / 2 + size);
  }
  let radius = Math.max(0.3, Math.hypot(...half));
  if (recording.info.camera) {
    // Where the scene says what to look at, things that flew far beyond it do not set the scale.
    const { eye, target } = recording.info.camera, distance = Math.hypot(...eye.map((c, k) => c - target[k]));
    if (radius > 1.5 * distance) { radius = distance; centre.splice(0, 3, ...target); }
  }
  return { centre, half, radius, shade: shadeOf(recording, centre, radius), floor: floorOf(recording, centre[2] - 1.5 * radius) };
}

/** How far shadows are drawn around the centre: what stands still casts them too, unless it is huge. */
function shadeOf(recording, centre, radius) {
  let reach = 1.15 * radius;
  const pose = new Float32Array(7);
  recording.bodies.forEach((body, b) => {
    if (body.kind !== "fixed" || !recording.pose(0, b, pose)) return;
    for (const part of body.parts) {
      if (part.form === "plane" || part.form === "mesh") continue;
      reach = Math.max(reach, Math.hypot(pose[0] - centre[0], pose[1] - centre[1], pose[2] - centre[2]) + Math.hypot(...part.position) + Math.hypot(...part.size));
    }
  });
  return Math.min(reach, 3 * radius);
}

/** The lowest that anything reaches, strays below `least` left out: a scene without a floor gets a grid there. */
function floorOf(recording, least) {
  let floor = Infinity;
  const pose = new Float32Array(7), up = new THREE.Vector3(), local = new THREE.Vector3(), turn = new THREE.Quaternion();
  const radius = recording.meshes.map(m => m.vertices.reduce((far, v) => Math.max(far, Math.hypot(...v)), 0));
  const frameStep = Math.max(1, Math.floor(recording.frames / 30));
  recording.bodies.forEach((body, b) => {
    for (let f = 0; body.parts.length && f < recording.frames; f += frameStep) {
      if (!recording.pose(f, b, pose)) continue;
      up.set(0, 0, 1).applyQuaternion(turn.set(-pose[3], -pose[4], -pose[5], pose[6]));
      for (const part of body.parts) {
        const [x, y, z, w] = part.rotation;
        local.copy(up).applyQuaternion(turn.set(-x, -y, -z, w));
        const down = part.form === "plane" ? 0 : part.form === "mesh" ? radius[part.mesh] :
          Math.abs(local.x) * part.size[0] + Math.abs(local.y) * part.size[1] + Math.abs(local.z) * part.size[2];
        const height = pose[2] + up.x * part.position[0] + up.y * part.position[1] + up.z * part.position[2] - down;
        if (height > least) floor = Math.min(floor, height);
      }
      if (body.kind === "fixed") break;
    }
  });
  return floor;
}

/** Is there no graphics card behind WebGL? Then every triangle and pixel is paid for by the processor. */
function drawsInSoftware() {
  const gl = document.createElement("canvas").getContext("webgl2"), info = gl && gl.getExtension("WEBGL_debug_renderer_info");
  const name = info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

// Lines of both grids at once, the coarse one ten times as wide and stronger; gone where they would be closer than pixels.
const GRID_SHADER = `
float gridLines(vec2 p) {
  vec4 q = vec4(p, 0.1 * p), w = max(fwidth(p), 1e-5).xyxy * vec4(1.1, 1.1, 0.11, 0.11);
  vec4 l = (1.0 - min(abs(fract(q - 0.5) - 0.5) / w, 1.0)) * clamp(0.6 / w - 1.0, 0.0, 1.0);
  return max(0.55 * max(l.x, l.y), max(l.z, l.w));
}
`;

/** Draws a grid on a material of three.js and lets it fade away from the middle. */
function gridGround(material, uniforms) {
  material.onBeforeCompile = shader => {
    Object.assign(shader.uniforms, uniforms);
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", "#include <common>\nvarying vec2 gridAt;")
      .replace("#include <begin_vertex>", "#include <begin_vertex>\ngridAt = position.xy;");
    shader.fragmentShader = shader.fragmentShader
      .replace("#include <common>", `#include <common>\nvarying vec2 gridAt; uniform vec3 gridColor; uniform float gridSize, gridReach;${GRID_SHADER}`)
      .replace("#include <color_fragment>", "#include <color_fragment>\nfloat lines = gridLines(gridAt / gridSize);\n" +
        "diffuseColor.rgb = mix(diffuseColor.rgb, gridColor, lines);\n" +
        "diffuseColor.a = 1.0 - smoothstep(0.12, 1.0, length(gridAt) / gridReach);");
  };
}

class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.software = drawsInSoftware();
    // A canvas one can see through has to be blended into the page: without a graphics card the sky is drawn instead.
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: !this.software, alpha: !this.software, powerPreference: "high-performance" });
    this.light = Object.fromEntries(["sunAlong", "sunColor", "skyColor", "earthColor", "skyTop", "skyLow"].map(n => [n, { value: new THREE.Vector3() }]));
    Object.assign(this.light, { shadowLift: { value: 0 }, skyHeight: { value: 1 } });
    this.renderer.setClearColor(0, 0);
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = this.software ? THREE.BasicShadowMap : THREE.PCFShadowMap;
    this.camera = new THREE.PerspectiveCamera(36, 1, 0.05, 2000);
    this.camera.up.set(0, 0, 1);
    this.controls = new THREE.OrbitControls(this.camera, canvas);
    this.controls.enableDamping = false;
    this.controls.zoomToCursor = true;
    this.controls.addEventListener("change", () => { this.dirty = true; });
    this.tracks = [];
    this.scale = 1;
    this.dirty = true;
  }

  addTrack(recording, camera) {
    const scene = new THREE.Scene();
    const track = { recording, scene, sky: new THREE.HemisphereLight(0xffffff, 0xffffff, 1), sun: new THREE.DirectionalLight(0xffffff, 2) };
    track.sky.position.set(0, 0, 1);
    scene.add(track.sky, track.sun, track.sun.target);
    if (this.software) scene.add(plainSky(this.light));
    this.tracks.push(track);
    if (!this.bounds) {
      this.bounds = boundsOf(recording);
      this.start = recording.info.camera;
      this.home();
    }
    this.aimSun(track);
    return track;
  }

  aimSun(track) {
    const { centre, radius, shade: reach } = this.bounds, sun = track.sun;
    sun.target.position.set(...centre);
    const away = 2 * Math.max(radius, 0.75 * reach);
    sun.position.set(centre[0] - 0.5 * away, centre[1] - 0.62 * away, centre[2] + 1.15 * away);
    Object.assign(sun.shadow.camera, { left: -reach, right: reach, top: reach, bottom: -reach, near: 0.05 * away, far: 1.5 * away + 2 * reach });
    sun.shadow.mapSize.setScalar(this.software ? 768 : 2048);
    sun.shadow.bias = -0.0006;
    sun.shadow.normalBias = radius * 0.0025;
    sun.shadow.radius = 3;
    sun.castShadow = true;
    this.light.sunAlong.value.copy(sun.position).sub(sun.target.position).normalize();
    this.light.shadowLift.value = sun.shadow.normalBias;
  }

  /** Looks at everything. */
  home() {
    const { centre, radius } = this.bounds;
    if (this.start) {
      this.camera.position.set(...this.start.eye);
      this.controls.target.set(...this.start.target);
      this.camera.fov = this.start.fov;
      // What was framed for a wide picture must also fit a narrow one.
      const narrow = Math.min(1, (this.aspect || 1) / 1.4);
      this.camera.position.sub(this.controls.target).divideScalar(narrow).add(this.controls.target);
    } else {
      const aspect = Math.min(1, this.aspect || 1), distance = 0.86 * radius / Math.tan(this.camera.fov * Math.PI / 360) / aspect;
      const direction = new THREE.Vector3(0.62, -1, 0.46).normalize();
      this.controls.target.set(...centre);
      this.camera.position.set(...centre).addScaledVector(direction, distance);
    }
    this.camera.near = radius * 0.01;
    this.camera.far = radius * 200;
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.dirty = true;
  }

  /** Takes colours from the style sheet, so that page and stage agree. */
  applyTheme(dark) {
    const style = getComputedStyle(document.documentElement);
    const color = name => new THREE.Color(style.getPropertyValue(name).trim());
    this.dark = dark;
    for (const track of this.tracks) {
      track.sky.color.set(dark ? 0xc9d8ec : 0xf1f6ff);
      track.sky.groundColor.set(dark ? 0x6a6058 : 0xc4b5a3);
      track.sky.intensity = dark ? 1.5 : 1.85;
      track.sun.color.set(dark ? 0xfff0dc : 0xfff3e2);
      track.sun.intensity = dark ? 2.4 : 2.25;
      for (const ground of track.grounds || []) {
        ground.material.color.copy(color("--ground"));
        const { grid, tone } = ground.material.userData, screen = color("--ground").convertLinearToSRGB();
        grid.value.copy(color("--grid"));
        tone.value.copy(color("--grid")).convertLinearToSRGB();
        tone.value.setRGB(tone.value.r / screen.r, tone.value.g / screen.g, tone.value.b / screen.b);
      }
      this.shineLike(track, color);
    }
    this.dirty = true;
  }

  /** Tells the shaders of `software.js` what the lights of three.js are. Lambert's 1/π is in the colours. */
  shineLike({ sky, sun }, color) {
    const put = (name, c, times) => this.light[name].value.set(c.r, c.g, c.b).multiplyScalar(times);
    put("skyColor", sky.color, sky.intensity / Math.PI);
    put("earthColor", sky.groundColor, sky.intensity / Math.PI);
    put("sunColor", sun.color, sun.intensity / Math.PI);
    for (const [name, from] of [["skyTop", "--sky-top"], ["skyLow", "--sky-low"]]) put(name, color(from).convertLinearToSRGB(), 1);
  }

  /** A plane without end, with a grid that fades into the sky. */
  addGround(track) {
    const { radius, centre } = this.bounds;
    const spacing = 10 ** Math.round(Math.log10(radius / 4)), reach = 9 * radius + Math.hypot(centre[0], centre[1]);
    const grid = { value: new THREE.Color() }, uniforms = { gridColor: grid, gridTone: { value: new THREE.Color() }, gridSize: { value: spacing }, gridReach: { value: reach } };
    const material = new THREE.MeshLambertMaterial({ transparent: !this.software, depthWrite: true });
    material.userData.grid = grid;
    material.userData.tone = uniforms.gridTone;
    if (this.software) plainGround(material, uniforms, this.light); else gridGround(material, uniforms);
    const ground = new THREE.Mesh(new THREE.PlaneGeometry(2 * reach, 2 * reach), material);
    ground.receiveShadow = true;
    ground.renderOrder = this.software ? 1 : -1;
    ground.matrixAutoUpdate = false;
    track.scene.add(ground);
    (track.grounds ||= []).push(ground);
    return ground;
  }

  resize() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const ratio = Math.min(devicePixelRatio || 1, 2) * this.scale;
    if (width === this.width && height === this.height && ratio === this.ratio) return;
    Object.assign(this, { width, height, ratio });
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(width, height, false);
    this.light.skyHeight.value = height * ratio;
    const before = this.aspect;
    this.aspect = this.columns() ? width / this.columns() / (height / this.rows()) : 1;
    this.camera.aspect = this.aspect || 1;
    this.camera.updateProjectionMatrix();
    if (!before && this.bounds) this.home();
    this.dirty = true;
  }

  columns() {
    const runs = this.tracks.length;
    return this.width / this.height < 0.8 ? (runs > 3 ? 2 : 1) : runs === 4 ? 2 : Math.min(runs, runs > 9 ? 4 : 3);
  }
  rows() { return Math.ceil(this.tracks.length / this.columns()) || 1; }

  /** Fine for a still picture; while playing, as fine as the machine allows. */
  setPlaying(playing) {
    this.playing = playing;
    this.scale = playing ? this.playScale || 1 : this.software ? 1.5 : 1;
    this.resize();
  }

  /** Slow machines draw fewer pixels and shadows while playing. */
  adapt(milliseconds) {
    this.pace = 0.8 * (this.pace || 16) + 0.2 * milliseconds;
    this.slow = this.pace > 30 ? (this.slow || 0) + 1 : 0;
    if (this.slow < 5) return;
    this.slow = 0;
    this.shadowPace = Math.min((this.shadowPace || 2) + 1, 6);
    if (this.scale <= 0.45) return;
    this.playScale = this.scale = Math.max(0.45, this.scale * 0.75);
    this.resize();
  }

  /** The part of the canvas (CSS pixels, from the top left) a run is drawn in. */
  viewport(index) {
    const columns = this.columns(), w = this.width / columns, h = this.height / this.rows();
    return { x: (index % columns) * w, y: Math.floor(index / columns) * h, w, h };
  }

  render() {
    const { renderer } = this;
    // Without a graphics card shadows follow some pictures only while playing; they cost as much as all the rest.
    this.turn = ((this.turn || 0) + 1) % (this.shadowPace || 2);
    renderer.shadowMap.autoUpdate = !(this.software && this.playing) || this.turn === 0;
    renderer.setScissorTest(this.tracks.length > 1);
    this.tracks.forEach((track, i) => {
      const v = this.viewport(i), bottom = this.height - v.y - v.h;
      renderer.setViewport(v.x, bottom, v.w, v.h);
      renderer.setScissor(v.x, bottom, v.w, v.h);
      renderer.render(track.scene, this.camera);
    });
    this.dirty = false;
  }
}
