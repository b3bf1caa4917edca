// Thumbnails as raw pixels (mercat/viewer/_images.py), drawn on a canvas: nothing is loaded.
import { h } from "../ui/dom.js";

const SHOWN = 120; // pixels of the longer side on a card, for small pictures in whole multiples

export function createImages({ width, height, channels, pixels }) {
  const area = width * height;

  function paint(row) {
    const data = new Uint8ClampedArray(4 * area);
    const start = row * area * channels;
    for (let i = 0; i < area; i++) {
      const at = start + i * channels;
      for (let c = 0; c < 3; c++) data[4 * i + c] = pixels[at + (channels < 3 ? 0 : c)];
      data[4 * i + 3] = channels === 4 ? pixels[at + 3] : 255;
    }
    return new ImageData(data, width, height);
  }

  return {
    /** A canvas with the picture of a row. */
    element(row) {
      const canvas = h("canvas", { class: "thumbnail", width, height, role: "img", "aria-label": "Picture of this point" });
      const side = Math.max(width, height);
      const scale = side <= SHOWN ? Math.max(1, Math.floor(SHOWN / side)) : SHOWN / side;
      canvas.style.width = `${width * scale}px`;
      canvas.style.height = `${height * scale}px`;
      if (scale > 1) canvas.style.imageRendering = "pixelated";
      canvas.getContext("2d").putImageData(paint(row), 0, 0);
      return canvas;
    },
  };
}
