// The panels, in order. To add one, write a file with a function
//   createPanel({ dataset, store, model, actions }) -> { element, update(state, changed) }
// and name it here. changed: the keys of the state and of the model (scheme, shown, names) that changed; null
// stands for all (touched() in store.js asks it).
import { createColumnsPanel } from "./columns.js";
import { createComparePanel } from "./compare.js";
import { createPinsPanel } from "./pins.js";
import { createSelectionPanel } from "./selection.js";
import { createTablePanel } from "./table.js";

/** On the right, or on narrow screens in a sheet. */
export const RAIL = [createColumnsPanel, createSelectionPanel, createComparePanel, createPinsPanel];

/** Below the map. */
export const DRAWER = [createTablePanel];
