// All GLSL shaders. PLACE does the same as place() in projections.js.

export const PLACE = `
struct Frame { mat3 rotation; float unfold; int projection; vec2 scale; vec2 pan; };
uniform Frame u_now;

struct Place { vec2 at; float facing; float beyond; };

vec3 shape(int projection, float s, float c) {
  if (projection == 0) {
    float up = sign(s) * log((1.0 + abs(s)) / max(c, 1e-20));
    return vec3(1.0, up, 3.14159265);
  }
  float theta = asin(clamp(0.8660254 * s, -1.0, 1.0));
  float t2 = theta * theta;
  float t6 = t2 * t2 * t2;
  float slope = 1.340264 - 0.243318 * t2 + t6 * (0.006251 + 0.034164 * t2);
  float up = theta * (1.340264 - 0.081106 * t2 + t6 * (0.000893 + 0.003796 * t2));
  return vec3(1.1547005 * cos(theta) / slope, up, 1.3173628);
}

Place place(Frame f, vec3 v) {
  if (f.projection == 2) return Place(v.xy, 1.0, 0.0);
  if (f.unfold == 0.0) return Place(v.yz, v.x, 0.0);
  float c = length(v.xy);
  float longitude = c > 0.0 ? atan(v.y, v.x) : 0.0;
  float k = 1.0 - f.unfold;
  float across = k < 1e-4 ? longitude : sin(k * longitude) / k;
  vec3 map = shape(f.projection, v.z, c);
  vec2 at = vec2(
    across * mix(c, map.x, f.unfold),
    mix(v.z, clamp(map.y, -map.z, map.z), f.unfold * f.unfold));
  return Place(at, cos(k * longitude), abs(map.y) > map.z + 1e-4 ? 1.0 : 0.0);
}

vec4 toClip(Frame f, vec2 at) { return vec4((at - f.pan) * f.scale, 0.0, 1.0); }
const vec4 NOWHERE = vec4(2.0, 2.0, 2.0, 1.0);
`;

export const POINTS_VERTEX = `#version 300 es
precision highp float;
${PLACE}
layout(location = 0) in vec2 a_now;
layout(location = 1) in vec4 a_paint;
layout(location = 2) in vec2 a_before;
uniform Frame u_before;
uniform float u_arrived; // 1.0, or less on the way from another embedding
uniform float u_side;
uniform float u_size;
uniform float u_alpha;
uniform vec3 u_ground;
out vec4 v_color;
out float v_size;

// Vector of a code: octahedral coordinates on the sphere, or a position in the plane.
vec3 open(int projection, vec2 code) {
  if (projection == 2) return vec3(code, 0.0);
  float z = 1.0 - abs(code.x) - abs(code.y);
  vec2 fold = (1.0 - abs(code.yx)) * vec2(code.x < 0.0 ? -1.0 : 1.0, code.y < 0.0 ? -1.0 : 1.0);
  return normalize(vec3(z >= 0.0 ? code : fold, z));
}

void main() {
  vec3 at = open(u_now.projection, a_now);
  bool bothRound = u_now.projection != 2 && u_before.projection != 2;
  if (u_arrived < 1.0 && bothRound) at = normalize(mix(open(u_before.projection, a_before), at, u_arrived) + 1e-6);
  Place p = place(u_now, u_now.rotation * at);
  if (a_paint.a == 0.0 || p.facing * u_side < 0.0) {
    gl_Position = NOWHERE;
    gl_PointSize = 1.0;
    return;
  }
  bool dim = a_paint.a < 0.5;
  float alpha = dim ? 0.16 * u_alpha : u_alpha;
  alpha *= 1.0 - p.beyond * u_now.unfold;
  if (a_paint.a > 0.9) alpha = sqrt(alpha);
  vec3 color = dim ? mix(a_paint.rgb, u_ground, 0.55) : a_paint.rgb;
  v_size = max(u_size, 1.5);
  alpha *= min(1.0, u_size * u_size / (v_size * v_size));
  v_color = vec4(color * alpha, alpha);
  gl_Position = toClip(u_now, p.at);
  if (u_arrived < 1.0 && !bothRound) {
    Place q = place(u_before, u_before.rotation * open(u_before.projection, a_before));
    gl_Position = mix(toClip(u_before, q.at), gl_Position, u_arrived);
  }
  gl_PointSize = v_size;
}`;

export const POINTS_FRAGMENT = `#version 300 es
precision highp float;
in vec4 v_color;
in float v_size;
out vec4 color;

void main() {
  float r = length(gl_PointCoord - 0.5) * v_size;
  float cover = v_size < 1.8 ? 1.0 : clamp(0.5 * v_size - r + 0.35, 0.0, 1.0);
  if (cover == 0.0) discard;
  color = v_color * cover;
}`;

// The globe, or the sheet of the map: a mesh in the frame of the view.
export const BODY_VERTEX = `#version 300 es
precision highp float;
${PLACE}
layout(location = 0) in vec3 a_position;
out float v_facing;
out float v_shade;

void main() {
  Place p = place(u_now, a_position);
  v_facing = p.facing;
  v_shade = mix(a_position.x, 1.0, u_now.unfold);
  gl_Position = toClip(u_now, p.at);
}`;

export const BODY_FRAGMENT = `#version 300 es
precision highp float;
uniform float u_side;
uniform vec3 u_center;
uniform vec3 u_edge;
uniform float u_alpha;
in float v_facing;
in float v_shade;
out vec4 color;

void main() {
  if (v_facing * u_side < 0.0) discard;
  vec3 body = mix(u_edge, u_center, sqrt(clamp(v_shade, 0.0, 1.0)));
  color = vec4(body * u_alpha, u_alpha);
}`;

// Lines as ribbons of soft-edged quads, four corners per segment.
export const LINES_VERTEX = `#version 300 es
precision highp float;
${PLACE}
layout(location = 0) in vec3 a_from;
layout(location = 1) in vec3 a_to;
layout(location = 2) in vec2 a_corner;
uniform float u_side;
uniform float u_width;
uniform vec2 u_viewport;
out float v_across;

void main() {
  Place p = place(u_now, u_now.rotation * a_from);
  Place q = place(u_now, u_now.rotation * a_to);
  bool away = min(p.facing * u_side, q.facing * u_side) < -1e-3;
  // A segment over the seam of the map would cross the whole sheet.
  bool torn = u_now.unfold > 0.0 && length(p.at - q.at) > 1.0;
  if (away || torn || p.beyond * q.beyond > 0.0) {
    gl_Position = NOWHERE;
    return;
  }
  vec2 a = toClip(u_now, p.at).xy * u_viewport * 0.5;
  vec2 b = toClip(u_now, q.at).xy * u_viewport * 0.5;
  vec2 along = b - a;
  along = length(along) > 1e-5 ? normalize(along) : vec2(1.0, 0.0);
  float reach = 0.5 * u_width + 1.0;
  v_across = a_corner.y * reach;
  vec2 at = mix(a, b, a_corner.x) + vec2(-along.y, along.x) * v_across;
  gl_Position = vec4(at / u_viewport * 2.0, 0.0, 1.0);
}`;

export const LINES_FRAGMENT = `#version 300 es
precision highp float;
uniform float u_width;
uniform vec4 u_color;
in float v_across;
out vec4 color;

void main() {
  float cover = clamp(0.5 * u_width + 0.5 - abs(v_across), 0.0, 1.0);
  float alpha = u_color.a * cover;
  color = vec4(u_color.rgb * alpha, alpha);
}`;
