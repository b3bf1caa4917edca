// The view in Python: { rotation: [longitude, latitude, roll], globe: [zoom, x, y], map: [...],
// flat: [...] }, the last for planar embeddings.
import { fromCenter, toCenter } from "../geometry/rotation.js";

export const VIEW_KEYS = ["rotation", "globe", "map", "flat"];

export function toView({ rotation, globe, map, flat }) {
  return { rotation: toCenter(rotation), globe: [...globe], map: [...map], flat: [...flat] };
}

export function fromView({ rotation, globe, map, flat }) {
  return { rotation: fromCenter(rotation), globe: [...globe], map: [...map], flat: [...flat] };
}
