// The page itself: opens the recordings, keeps the time, listens to people.

const $ = id => document.getElementById(id);
const opened = performance.now();

class App {
  constructor(recordings) {
    this.recordings = recordings;
    this.main = $("app");
    this.frames = Math.max(...recordings.map(r => r.frames));
    this.longest = recordings.find(r => r.frames === this.frames);
    this.frame = 0;
    this.speed = 1;
    this.mode = "material";
    this.show = { contacts: false, forces: false };
    this.selected = null;
    this.stage = new Stage($("view"));
    this.layers = recordings.map((recording, i) => {
      const track = this.stage.addTrack(recording);
      track.cables = new CableLayer(track);
      const bodies = new BodyLayer(this.stage, track);
      return { track, recording, bodies, cables: track.cables, forces: new ForceLayer(this.stage, track), index: i };
    });
    this.plots = plotDefinitions(recordings).map(d => this.plotOf(d, recordings));
    this.picked = [];
    this.writeHeading();
    this.bind();
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }

  plotOf(definition, recordings) {
    return new Plot($("plots"), definition, recordings, s => this.seek(s * (this.frames - 1)));
  }

  /** Plots of what is selected stand before the others. */
  plotSelected() {
    for (const plot of this.picked) plot.remove();
    this.plots = this.plots.filter(plot => !this.picked.includes(plot));
    const what = this.selected;
    this.picked = what ? plotsOf(what.layer.recording, what.kind, what.id).map(d => this.plotOf(d, [what.layer.recording])) : [];
    for (const plot of [...this.picked].reverse()) plot.first();
    this.plots.unshift(...this.picked);
    $("plots").scrollLeft = 0;
    for (const plot of this.plots) plot.draw();
  }

  writeHeading() {
    const [first] = this.recordings, { info } = first, many = this.recordings.length > 1;
    $("title").textContent = info.scene.replaceAll("_", " ");
    const moving = first.bodies.filter(b => b.kind !== "fixed").length;
    const facts = [`${moving} ${moving === 1 ? "body" : "bodies"}`];
    if (first.joints.length) facts.push(`${first.joints.length} ${first.joints.length === 1 ? "joint" : "joints"}`);
    facts.push(`${number(first.time[first.frames - 1])} s`);
    facts.push(many ? `${this.recordings.length} solvers` : `solver ${info.solver}`);
    if (first.stride > 1) facts.push(`every ${first.stride}th step`);
    $("subtitle").textContent = facts.join(" · ");
    $("subtitle").title = info.about || "";
    if ($("report")) {
      const link = document.createElement("a");
      Object.assign(link, { href: "#report", textContent: "table and plots ↓" });
      $("subtitle").append(" · ", link);
    }
    if (many) {
      $("labels").replaceChildren(...this.recordings.map((r, i) => {
        const span = document.createElement("span"), dot = document.createElement("i");
        dot.style.background = SERIES[i % SERIES.length];
        span.append(dot, r.info.solver);
        return span;
      }));
    }
    const can = (id, yes) => { $(id).disabled = !yes; };
    can("contacts", this.recordings.some(r => r.contact));
    can("forces", this.recordings.some(r => r.joints.length));
    for (const option of $("mode").options) {
      if (option.value === "partition") option.disabled = !this.recordings.some(r => r.partition && r.partition.some(p => (p & 0xffff) !== 0xffff));
      if (option.value === "load") option.disabled = !this.recordings.some(r => r.load && r.joints.length);
    }
    $("scrub").max = this.frames - 1;
  }

  bind() {
    const click = (id, act) => $(id).addEventListener("click", act);
    click("play", () => this.toggle());
    click("back", () => this.stepBy(-1));
    click("forth", () => this.stepBy(1));
    click("home", () => this.stage.home());
    click("theme", () => this.setTheme(this.theme === "dark" ? "light" : "dark"));
    click("contacts", () => this.setShow("contacts", !this.show.contacts));
    click("forces", () => this.setShow("forces", !this.show.forces));
    click("curves", () => this.setPlots($("plots").hidden));
    $("scrub").addEventListener("input", event => this.seek(Number(event.target.value)));
    $("speed").addEventListener("change", event => { this.speed = Number(event.target.value); });
    $("mode").addEventListener("change", event => this.setMode(event.target.value));
    addEventListener("keydown", event => this.key(event));
    addEventListener("resize", () => this.relayout());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", event => this.setTheme(event.matches ? "dark" : "light"));
    let down = null;
    $("view").addEventListener("pointerdown", event => { down = [event.clientX, event.clientY]; });
    $("view").addEventListener("pointerup", event => {
      // A click, not the end of a drag.
      if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 5) this.pick(event);
      down = null;
    });
  }

  key(event) {
    if (event.target.tagName === "SELECT" || event.metaKey || event.ctrlKey || event.altKey) return;
    const speeds = [...$("speed").options].map(o => Number(o.value)), now = speeds.indexOf(this.speed);
    const setSpeed = i => { this.speed = speeds[Math.min(Math.max(i, 0), speeds.length - 1)]; $("speed").value = String(this.speed); };
    const modes = [...$("mode").options].filter(o => !o.disabled).map(o => o.value);
    const keys = {
      " ": () => this.toggle(), ArrowLeft: () => this.stepBy(event.shiftKey ? -10 : -1), ArrowRight: () => this.stepBy(event.shiftKey ? 10 : 1),
      Home: () => this.seek(0), End: () => this.seek(this.frames - 1), "-": () => setSpeed(now - 1), "+": () => setSpeed(now + 1), "=": () => setSpeed(now + 1),
      c: () => this.setMode(modes[(modes.indexOf(this.mode) + 1) % modes.length]), f: () => this.setShow("contacts", !this.show.contacts),
      j: () => this.setShow("forces", !this.show.forces), p: () => this.setPlots($("plots").hidden), h: () => this.stage.home(),
      t: () => this.setTheme(this.theme === "dark" ? "light" : "dark"), Escape: () => this.select(null),
    };
    const act = keys[event.key] || keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    this.stage.applyTheme(theme === "dark");
    for (const plot of this.plots) plot.draw();
    this.changed = true;
  }

  setMode(mode) {
    this.mode = $("mode").value = mode;
    const [r] = this.recordings, legend = $("legend");
    const top = mode === "speed" ? `${number(r.topSpeed, 2)} m/s` : `${number(r.topLoad, 2)} N`;
    legend.hidden = mode !== "speed" && mode !== "load";
    if (!legend.hidden) {
      const stops = RAMPS[mode].map(c => `rgb(${c})`).join(", ");
      legend.innerHTML = `${mode === "speed" ? "Speed" : "Largest joint force"}<div class="ramp" style="background:linear-gradient(90deg, ${stops})"></div>` +
        `<div class="ends"><span>0</span><span>${top}</span></div>`;
    }
    this.changed = true;
  }

  setShow(what, on) {
    if ($(what).disabled) return;
    this.show[what] = on;
    $(what).setAttribute("aria-pressed", on);
    this.changed = true;
  }

  setPlots(on) {
    $("plots").hidden = !on;
    $("curves").setAttribute("aria-pressed", on);
    this.relayout();
  }

  relayout() {
    this.stage.resize();
    for (const plot of this.plots) plot.draw();
    document.querySelectorAll("#labels span").forEach((span, i) => {
      const v = this.stage.viewport(i);
      span.style.left = `${v.x + v.w / 2}px`;
      span.style.bottom = `${this.stage.height - v.y - v.h + 14}px`;
    });
    this.changed = true;
  }

  toggle(on = !this.playing) {
    if (on && this.frame >= this.frames - 1) this.frame = 0;
    this.playing = on;
    this.main.dataset.playing = on;
    this.last = performance.now();
    if (!on) this.frame = Math.round(this.frame);
    if (on !== !!this.stage.playing) this.stage.setPlaying(on);
    this.changed = true;
  }

  seek(frame) {
    this.toggle(false);
    this.frame = Math.min(Math.max(Math.round(frame), 0), this.frames - 1);
    this.changed = true;
  }

  stepBy(n) { this.seek(Math.round(this.frame) + n); }

  advance(now) {
    const elapsed = Math.min(now - this.last, 250) / 1000;
    this.last = now;
    const perFrame = this.frames > 1 ? this.longest.duration / (this.frames - 1) : 1;
    this.frame += elapsed * this.speed / perFrame;
    if (this.frame >= this.frames - 1) { this.frame = this.frames - 1; this.toggle(false); }
    this.changed = true;
  }

  tick(now) {
    requestAnimationFrame(t => this.tick(t));
    if (this.playing) { this.stage.adapt(now - this.last); this.advance(now); }
    if (!this.changed && !this.stage.dirty) return;
    if (this.changed) this.update();
    this.stage.render();
    this.rendered = (this.rendered || 0) + 1;
  }

  update() {
    this.changed = false;
    for (const layer of this.layers) {
      const frame = Math.min(this.frame, layer.recording.frames - 1), selected = this.selectedIn(layer);
      layer.bodies.update(frame);
      layer.cables.update(frame);
      layer.forces.update(frame, layer.bodies, this.show);
      // Colours that do not change with time are painted once.
      const key = this.mode === "material" ? `material ${selected}` : `${this.mode} ${Math.round(frame)} ${selected}`;
      if (layer.painted !== key) {
        layer.bodies.paint(this.mode, frame, selected);
        layer.cables.paint(this.mode, frame, selected);
        layer.painted = key;
      }
    }
    const f = Math.round(this.frame);
    $("scrub").value = f;
    const clock = `${this.longest.time[f].toFixed(2)} s<span class="frames"> · ${f + 1}/${this.frames}</span>`;
    if (clock !== this.clock) $("clock").innerHTML = this.clock = clock;
    if (!$("plots").hidden) for (const plot of this.plots) plot.cursor(this.frame);
    this.inspect();
  }

  selectedIn(layer) { return this.selected && this.selected.layer === layer && this.selected.kind === "body" ? this.selected.id : -1; }

  pick(event) {
    const box = $("view").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    for (const layer of this.layers) {
      const v = this.stage.viewport(layer.index);
      if (x < v.x || x >= v.x + v.w || y < v.y || y >= v.y + v.h) continue;
      const ray = new THREE.Raycaster();
      ray.setFromCamera(new THREE.Vector2(2 * (x - v.x) / v.w - 1, 1 - 2 * (y - v.y) / v.h), this.stage.camera);
      return this.select(this.meet(ray, layer, x, y));
    }
  }

  /** What a ray meets: a joint close to the pointer if joints are shown, else the first body or cable. */
  meet(raycaster, layer, x, y) {
    if (this.show.forces) {
      const joint = this.jointAt(layer, x, y);
      if (joint >= 0) return { kind: "joint", id: joint, layer };
    }
    const body = layer.bodies.hit(raycaster.ray);
    const [tube] = raycaster.intersectObjects(layer.cables.tubes.map(t => t.mesh), false);
    if (tube && (!body || tube.distance < body.distance)) {
      const { links } = tube.object.userData;
      return { kind: "body", id: links[layer.cables.linkOf(Math.floor(tube.face.a / TUBE_SIDES), links.length)], layer };
    }
    return body && { kind: "body", id: body.body, layer };
  }

  /** The joint drawn within a few pixels of the pointer, or −1. */
  jointAt(layer, x, y) {
    const v = this.stage.viewport(layer.index), p = [0, 0, 0], at = new THREE.Vector3();
    let best = 12, found = -1;
    layer.recording.joints.forEach((_, j) => {
      if (!layer.forces.anchor(j, layer.bodies, p)) return;
      at.set(...p).project(this.stage.camera);
      const distance = Math.hypot(v.x + (at.x + 1) / 2 * v.w - x, v.y + (1 - at.y) / 2 * v.h - y);
      if (at.z < 1 && distance < best) [best, found] = [distance, j];
    });
    return found;
  }

  select(what) {
    this.selected = what || null;
    this.plotSelected();
    this.changed = true;
  }

  inspect() {
    const card = $("inspector");
    card.hidden = !this.selected;
    if (!this.selected) return;
    const { kind, id, layer } = this.selected, r = layer.recording, f = Math.min(Math.round(this.frame), r.frames - 1);
    const rows = kind === "body" ? this.bodyRows(r, f, id) : this.jointRows(r, f, id);
    const name = kind === "body" ? r.bodies[id].name : r.joints[id].name;
    const what = kind === "body" ? `${r.bodies[id].kind} body` : `${r.joints[id].kind} joint`;
    const text = [name, what, ...rows.flat()].join("|");
    if (text === this.card) return;
    this.card = text;
    const title = document.createElement("h2"), about = document.createElement("p"), list = document.createElement("dl"), close = document.createElement("button");
    title.textContent = name;
    about.textContent = what;
    Object.assign(close, { className: "close", textContent: "✕", title: "Close (Esc)", onclick: () => this.select(null) });
    for (const [key, value] of rows) {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = key;
      dd.textContent = value;
      list.append(dt, dd);
    }
    card.replaceChildren(close, title, about, list);
  }

  bodyRows(r, f, b) {
    const i = f * r.count + b, at = k => number(r.position[k][i]);
    const rows = [["position", `${at(0)}, ${at(1)}, ${at(2)} m`], ["speed", `${number(r.speed(f, b))} m/s`]];
    if (r.bodies[b].mass > 0) rows.unshift(["mass", `${number(r.bodies[b].mass)} kg`]);
    if (r.partition && (r.partition[i] & 0xffff) !== 0xffff) rows.push(["partition", String(r.partition[i] & 0xffff)]);
    const joints = r.jointsOf(b);
    if (joints.length) rows.push(["joints", String(joints.length)]);
    if (joints.length && r.load) rows.push(["joint force", `${number(Math.max(...joints.map(j => r.loadOf(f, j))))} N`]);
    return rows;
  }

  jointRows(r, f, j) {
    const name = b => b === null ? "world" : r.bodies[b].name, [a, b] = r.joints[j].bodies;
    const rows = [["from", name(a)], ["to", name(b)]];
    if (r.load) rows.push(["force", `${number(r.loadOf(f, j))} N`], ["torque", `${number(r.load[3][f * r.joints.length + j])} N·m`]);
    return rows;
  }
}

/** What tests ask the page. Small on purpose. */
function testInterface(app) {
  const layer = i => app.layers[i || 0];
  const settle = () => { app.update(); app.stage.render(); };
  return {
    ready: true,
    app,
    scriptAt: opened,
    sinceNavigation: performance.now(),
    frames: app.frames,
    bodies: app.recordings.map(r => r.count),
    setFrame(f) { app.seek(f); settle(); },
    setMode(mode) { app.setMode(mode); settle(); },
    setShow(what, on) { app.setShow(what, on); settle(); },
    setTheme(theme) { app.setTheme(theme); settle(); },
    select(kind, id) { app.select({ kind, id, layer: layer(0) }); settle(); return $("inspector").innerText; },
    drawn(i) { return new Set([...layer(i).bodies.drawn(), ...layer(i).cables.members]).size; },
    /** Where a body is drawn (x y z, qx qy qz qw), as the graphics card reads it. */
    pose(b, i) { const t = layer(i).bodies.texels, at = 4 * TEXELS * b; return [...t.subarray(at, at + 3), ...t.subarray(at + 4, at + 8)]; },
    colors(i) {
      const { texels, recording } = layer(i).bodies, all = [];
      for (let b = 0; b < recording.count; b++) all.push(Array.from(texels.subarray(4 * (TEXELS * b + 2), 4 * (TEXELS * b + 2) + 3)));
      return all;
    },
    cableColors(i) { return layer(i).cables.tubes.map(t => Array.from(t.mesh.geometry.attributes.color.array.subarray(0, 3))); },
    pick(x, y) { app.pick({ clientX: x, clientY: y }); settle(); return $("inspector").hidden ? "" : $("inspector").innerText; },
    /** Where on the page a body or joint of the first run is. */
    where(kind, id) {
      const { bodies, forces } = layer(0), p = Array.from(bodies.poses.subarray(7 * id, 7 * id + 3)), v = app.stage.viewport(0);
      if (kind === "joint") forces.anchor(id, bodies, p);
      const at = new THREE.Vector3(...p).project(app.stage.camera);
      return [v.x + (at.x + 1) / 2 * v.w, v.y + (1 - at.y) / 2 * v.h];
    },
    arrows(i) { const { contacts, loads } = layer(i).forces; return { contacts: contacts.shaft.count, loads: loads.shaft.count }; },
    plot(name, line = 0) {
      const p = app.plots.find(q => q.name === name);
      const source = p && (p.lines || p.stack)[line];
      return source ? { values: Array.from(source.values), low: p.low, high: p.high, text: p.text || "" } : null;
    },
    get plots() { return app.plots.map(p => p.name); },
    calls() { return app.stage.renderer.info.render.calls; },
    /** Plays for some seconds and tells how many pictures were drawn per second. */
    async measure(seconds) {
      app.seek(0); app.toggle(true);
      const start = performance.now(), before = app.rendered || 0;
      await new Promise(done => setTimeout(done, 1000 * seconds));
      const fps = ((app.rendered || 0) - before) / ((performance.now() - start) / 1000);
      const scale = app.stage.scale;
      app.toggle(false);
      return { fps, scale };
    },
  };
}

async function main() {
  try {
    const texts = [...document.querySelectorAll('script[type="application/x-turnbuckle-recording"]')].map(s => s.textContent);
    const recordings = await Promise.all(texts.map(decodeRecording));
    const decoded = performance.now();
    if (!recordings.length || !recordings[0].frames) throw new Error("the recording has no frame");
    const app = new App(recordings);
    $("app").dataset.state = "ready";
    app.stage.setPlaying(false);
    app.relayout();
    app.update();
    app.stage.render();
    window.turnbuckle = testInterface(app);
    window.turnbuckle.decodedAt = decoded;
    requestAnimationFrame(t => app.tick(t));
    if (!/[#&]still\b/.test(location.hash)) app.toggle(true);
  } catch (error) {
    $("message").textContent = `The replay could not be shown: ${error.message}`;
    console.error(error);
  }
}

main();
