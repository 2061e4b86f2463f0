// What the viewer uses of three.js; build.sh turns it into three.bundle.js.
export {
  BoxGeometry, BufferAttribute, BufferGeometry, Color, ConeGeometry, CylinderGeometry,
  DataTexture, DirectionalLight, DoubleSide, DynamicDrawUsage, FloatType, HemisphereLight, InstancedBufferAttribute, InstancedMesh,
  Matrix4, Mesh, MeshBasicMaterial, MeshDepthMaterial, MeshLambertMaterial, NearestFilter,
  NeutralToneMapping, BasicShadowMap, PCFShadowMap, PerspectiveCamera,
  PlaneGeometry, Quaternion, Raycaster, REVISION, RGBAFormat, Scene, SphereGeometry, Vector2, Vector3, WebGLRenderer,
} from "three";
export { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
