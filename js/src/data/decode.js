// Decode the bytes written by mercat/viewer/_encode.py to embeddings and columns.
//
// The payload is deflated: a 4-byte header length, a JSON header, zeros up to a multiple of 8,
// then arrays, little-endian, at offsets that are multiples of 8.
import { hex } from "../draw/color.js";
import { createGenes } from "./genes.js";
import { createImages } from "./images.js";
import { createNeighbors } from "./neighbors.js";
import { createUncertainty } from "./uncertainty.js";

const VERSION = 3;
const ARRAYS = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, float32: Float32Array, float64: Float64Array,
};

export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** Unit vectors from octahedral coordinates, two 16-bit integers per point. */
export function unfoldOctahedron(codes) {
  const n = codes.length / 2;
  const out = new Float32Array(3 * n);
  for (let i = 0; i < n; i++) {
    const u = codes[2 * i] / 32767;
    const v = codes[2 * i + 1] / 32767;
    const z = 1 - Math.abs(u) - Math.abs(v);
    const x = z >= 0 ? u : (1 - Math.abs(v)) * (u < 0 ? -1 : 1);
    const y = z >= 0 ? v : (1 - Math.abs(u)) * (v < 0 ? -1 : 1);
    const length = Math.hypot(x, y, z);
    out[3 * i] = x / length;
    out[3 * i + 1] = y / length;
    out[3 * i + 2] = z / length;
  }
  return out;
}

/** Positions in the plane from two 16-bit integers per point, as vectors with third component 0. */
export function spreadPlane(codes) {
  const n = codes.length / 2;
  const out = new Float32Array(3 * n);
  for (let i = 0; i < n; i++) {
    out[3 * i] = codes[2 * i] / 32767;
    out[3 * i + 1] = codes[2 * i + 1] / 32767;
  }
  return out;
}

/** { name, kind, home, regions, codes, positions }; positions, three numbers per point, are computed on first use. */
function readEmbedding({ name, kind, home, regions = [], positions }, read) {
  const codes = read(positions);
  let vectors = null;
  return {
    name, kind, home, regions, codes,
    get positions() {
      return (vectors ??= kind === "plane" ? spreadPlane(codes) : unfoldOctahedron(codes));
    },
  };
}

const readColors = (colors) => Object.fromEntries(
  Object.entries(colors).map(([theme, list]) => [theme, list.map((color) => hex(color.slice(1)))]),
);

function readGenes(genes, n, read) {
  if (!genes) return null;
  const { names, starts, gaps, values, colors } = genes;
  return createGenes({ names, starts: read(starts), gaps: read(gaps), values: read(values), colors: readColors(colors) }, n);
}

function readNeighbors(neighbors, read) {
  if (!neighbors) return null;
  const { starts, rows, torn } = neighbors;
  return createNeighbors({ starts: read(starts), rows: read(rows), torn: torn.map(read) });
}

function readUncertainty(entry, read) {
  if (!entry) return null;
  const codes = read(entry.alternative);
  return createUncertainty({ axes: read(entry.axes), alternative: unfoldOctahedron(codes), codes });
}

function readColumn(column, read) {
  const data = read(column);
  const { name, kind, role = null } = column;
  const colors = readColors(column.colors);
  if (kind === "category") return { name, kind, role, colors, codes: data, labels: column.labels };
  return { name, kind, role, colors, values: data, classes: column.classes ?? null };
}

/**
 * An inflated payload as { n, title, options, embeddings, labels, columns, genes, neighbors, uncertainty,
 * images, column(index) }. labels: indices of the columns whose classes are named on the map, or null.
 */
function parse(buffer) {
  const headerLength = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headerLength)));
  if (header.version !== VERSION) {
    throw new Error(`Payload version ${header.version} is not supported (expected ${VERSION}).`);
  }
  const start = 8 * Math.ceil((4 + headerLength) / 8);
  const read = ({ dtype, offset, length }) => new ARRAYS[dtype](buffer, start + offset, length);
  const columns = header.columns.map((column) => readColumn(column, read));
  const genes = readGenes(header.genes, header.n, read);
  return {
    n: header.n,
    title: header.title,
    options: header.options,
    embeddings: header.embeddings.map((embedding) => readEmbedding(embedding, read)),
    labels: header.labels ?? null,
    columns,
    genes,
    neighbors: readNeighbors(header.neighbors, read),
    uncertainty: readUncertainty(header.places, read),
    images: header.images && createImages({ ...header.images, pixels: read(header.images.pixels) }),
    /** Column by index; those after the last column are genes. */
    column: (index) => columns[index] ?? (genes && index >= columns.length ? genes.column(index - columns.length) : undefined),
  };
}

export async function decode(bytes) {
  return parse(await inflate(bytes));
}
