// What colour a body has, by mode.

const RAMPS = {
  speed: [[38, 70, 133], [46, 134, 171], [94, 190, 160], [235, 200, 92], [226, 90, 60]],
  load: [[92, 107, 122], [96, 146, 168], [222, 190, 110], [226, 120, 62], [190, 40, 48]],
};

/** sRGB of a ramp at s in 0..1. */
function ramp(stops, s) {
  const x = Math.min(Math.max(s, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(x), stops.length - 2), t = x - i;
  return stops[i].map((c, k) => c + t * (stops[i + 1][k] - c));
}

const LINEAR = Float32Array.from({ length: 256 }, (_, i) => {
  const c = i / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
});

/** Numbers that follow each other get colours far apart (golden angle), none too dark or pale. */
function partitionColor(index) {
  if (index === 0xffff) return [168, 168, 164];
  const hue = (index * 137.508 + 14) % 360, l = index % 3 === 0 ? 0.52 : index % 3 === 1 ? 0.62 : 0.44;
  const a = 0.58 * Math.min(l, 1 - l);
  return [0, 8, 4].map(n => {
    const k = (n + hue / 30) % 12;
    return 255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  });
}

/** sRGB (0..255) of a body. */
function bodyColor(recording, mode, frame, body) {
  const info = recording.bodies[body];
  if (mode === "partition" && recording.partition) {
    return partitionColor(recording.partition[frame * recording.count + body] & 0xffff);
  }
  if (mode === "speed") return info.kind === "fixed" ? [168, 168, 164] : ramp(RAMPS.speed, recording.speed(frame, body) / recording.topSpeed);
  if (mode === "load") {
    let most = 0;
    for (const j of recording.jointsOf(body)) most = Math.max(most, recording.loadOf(frame, j));
    return info.kind === "fixed" || !recording.jointsOf(body).length ? [168, 168, 164] : ramp(RAMPS.load, most / recording.topLoad);
  }
  return info.color;
}
