// Shaders for machines without a graphics card, where every vertex, varying and pixel is paid for by the processor. They
// draw what the materials of three.js draw (Lambert under a sky and a sun, one hard shadow), with the light worked out at
// the vertices, in the screen's colour space, so that a pixel is one shadow lookup and one mix.

const PLAIN_LIGHT = `
uniform vec3 sunAlong, sunColor, skyColor, earthColor; uniform mat4 directionalShadowMatrix[1]; uniform float shadowLift;
varying vec3 litColor, darkColor, shadowAt;
// sRGB within 0.2 % by roots, which processors have.
vec3 screenColor(vec3 c) { vec3 a = sqrt(max(c, 0.0)), b = sqrt(a); return 0.585122381 * a + 0.783140355 * b - 0.368262736 * sqrt(b); }
void shine(vec3 tint, vec3 at, vec3 normal) {
  vec3 sky = mix(earthColor, skyColor, 0.5 * normal.z + 0.5);
  darkColor = screenColor(tint * sky);
  litColor = screenColor(tint * (sky + sunColor * max(dot(normal, sunAlong), 0.0)));
  shadowAt = (directionalShadowMatrix[0] * vec4(at + normal * shadowLift, 1.0)).xyz;
}
`;

// Beyond the map nothing is in shadow.
const PLAIN_SHADE = `
uniform highp sampler2D directionalShadowMap[1]; varying vec3 litColor, darkColor, shadowAt;
vec3 shade() {
  float near = texture2D(directionalShadowMap[0], shadowAt.xy).r;
  vec3 inside = abs(shadowAt - 0.5);
  return near < shadowAt.z - 0.0006 && max(inside.x, max(inside.y, inside.z)) < 0.5 ? darkColor : litColor;
}
`;

/** Replaces what three.js would compile; its uniforms for lights and shadows stay. */
function plainly(material, uniforms, vertexShader, fragmentShader) {
  material.onBeforeCompile = shader => {
    Object.assign(shader.uniforms, uniforms);
    Object.assign(shader, { vertexShader, fragmentShader });
  };
  // By default three.js tells programs apart by the text of onBeforeCompile, which is the same for all of ours.
  material.customProgramCacheKey = () => vertexShader + fragmentShader;
  return material;
}

/** Bodies from the texture. */
function plainBodies(material, texture, light) {
  return plainly(material, { bodies: { value: texture }, ...light }, `${BODY_SHADER}${PLAIN_LIGHT}attribute vec4 edge; varying vec4 face;
void main() {
  vec4 turn = bodyTexel(1), middle = bodyTexel(0);
  vec3 at = middle.w * (turned(turn, position) + middle.xyz);
  gl_Position = projectionMatrix * (viewMatrix * vec4(at, 1.0));
  face = edge;
  shine(bodyTexel(2).rgb, at, turned(turn, normal));
}`, `${PLAIN_SHADE}${EDGE_SHADER}varying vec4 face;
void main() {
  gl_FragColor = vec4(shade() * (1.0 - 0.14 * boxEdge(face)), 1.0);
}`);
}

/** Depth alone, for the shadow map. */
function plainDepth(material, texture) {
  return plainly(material, { bodies: { value: texture } }, `${BODY_SHADER}
void main() {
  vec4 middle = bodyTexel(0);
  gl_Position = projectionMatrix * (viewMatrix * vec4(middle.w * (turned(bodyTexel(1), position) + middle.xyz), 1.0));
}`, "void main() { gl_FragColor = vec4(1.0); }");
}

/** The ground, `gridTone` as dark on its lines, mixed into the sky by hand: nothing is blended. */
function plainGround(material, uniforms, light) {
  return plainly(material, { ...uniforms, ...light }, `${PLAIN_LIGHT}varying vec2 gridAt; uniform vec3 diffuse;
void main() {
  vec4 at = modelMatrix * vec4(position, 1.0);
  gl_Position = projectionMatrix * (viewMatrix * at);
  gridAt = position.xy;
  shine(diffuse, at.xyz, normalize(mat3(modelMatrix) * normal));
}`, `${PLAIN_SHADE}${GRID_SHADER}${SKY_SHADER}varying vec2 gridAt;
uniform vec3 gridTone; uniform float gridSize, gridReach;
void main() {
  float lines = gridLines(gridAt / gridSize);
  gl_FragColor = vec4(mix(shade() * mix(vec3(1.0), gridTone, lines), skyAt(), smoothstep(0.12, 1.0, length(gridAt) / gridReach)), 1.0);
}`);
}

const SKY_SHADER = `
uniform vec3 skyTop, skyLow; uniform float skyHeight;
vec3 skyAt() { return mix(skyLow, skyTop, gl_FragCoord.y / skyHeight); }
`;

/** The sky behind everything: a triangle over the whole picture, drawn last where nothing else was. */
function plainSky(light) {
  const material = plainly(new THREE.MeshBasicMaterial({ depthWrite: false }), light,
    "void main() { gl_Position = vec4(position.xy, 1.0, 1.0); }", `${SKY_SHADER}void main() { gl_FragColor = vec4(skyAt(), 1.0); }`);
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array([-1, -1, 0, 3, -1, 0, -1, 3, 0]), 3));
  const sky = new THREE.Mesh(geometry, material);
  sky.frustumCulled = false;
  sky.renderOrder = 2;
  return sky;
}
