// The view as Python sees it: { rotation: [longitude, latitude, roll], globe: [zoom, x, y], map: [...] }.
import { fromCenter, toCenter } from "../geometry/rotation.js";

export const VIEW_KEYS = ["rotation", "globe", "map"];

export function toView({ rotation, globe, map }) {
  return { rotation: toCenter(rotation), globe: [...globe], map: [...map] };
}

export function fromView({ rotation, globe, map }) {
  return { rotation: fromCenter(rotation), globe: [...globe], map: [...map] };
}
