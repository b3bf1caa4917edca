import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { decode, fromBase64, unfoldOctahedron } from "../src/data/decode.js";
import { fileName, keyLines, toCsv } from "../src/ui/export.js";
import { date, field, number } from "../src/ui/format.js";
import { find, meant, rowsOf } from "../src/data/search.js";
import { combine, fromMask, fromRows, NOTHING } from "../src/state/selection.js";

function payload(header, arrays) {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  const pad = (part) => Buffer.concat([part, Buffer.alloc((8 - (part.length % 8)) % 8)]);
  return deflateSync(Buffer.concat([pad(Buffer.concat([length, text])), ...arrays.map((array) => pad(Buffer.from(array.buffer)))]));
}

test("a payload decodes to positions and columns", async () => {
  const bytes = payload(
    {
      version: 3, n: 2, title: "T", options: {},
      embeddings: [
        { name: "E", kind: "sphere", home: { globe: [2, 0, 0] }, positions: { dtype: "int16", offset: 0, length: 4 } },
        { name: "F", kind: "plane", home: { half: [1, 1] }, positions: { dtype: "int16", offset: 0, length: 4 } },
      ],
      columns: [
        { name: "kind", kind: "category", labels: ["a", "b"], colors: { dark: ["#0A0b0C", "#FF0000"] }, dtype: "uint8", offset: 8, length: 2 },
        { name: "size", kind: "number", classes: null, colors: {}, dtype: "float64", offset: 16, length: 2 },
      ],
    },
    [new Int16Array([0, 0, 32767, 0]), new Uint8Array([2, 0]), new Float64Array([0.5, NaN])],
  );
  const { n, embeddings, columns } = await decode(bytes);
  assert.equal(n, 2);
  assert.deepEqual(embeddings[0].home, { globe: [2, 0, 0] });
  assert.deepEqual([...embeddings[0].positions], [0, 0, 1, 1, 0, 0]);
  assert.deepEqual([...embeddings[1].positions], [0, 0, 0, 1, 0, 0]);
  assert.deepEqual(columns[0].colors, { dark: [[10, 11, 12], [255, 0, 0]] });
  assert.deepEqual(columns.map((column) => [0, 1].map((row) => field(column, row))), [["b", "missing"], ["0.5", "missing"]]);
});

test("another version is refused", async () => {
  await assert.rejects(decode(payload({ version: 1 }, [])), /version 1/);
});

test("the lower half of the octahedron unfolds to unit vectors below", () => {
  const [x, y, z] = unfoldOctahedron(new Int16Array([32767, 32767]));
  assert.deepEqual([Math.abs(x), Math.abs(y), z], [0, 0, -1]);
  const v = unfoldOctahedron(new Int16Array([-20000, 30000]));
  assert.ok(Math.abs(Math.hypot(...v) - 1) < 1e-6 && v[0] < 0 && v[1] > 0 && v[2] < 0);
});

test("base64 may be wrapped in white space", () => {
  assert.deepEqual([...fromBase64("\n AQID \n")], [1, 2, 3]);
});

test("numbers read well", () => {
  assert.deepEqual([1234567, 0.1 + 0.2, -2.5, 1e-9, NaN, Infinity].map((x) => number(x)), ["1234567", "0.3", "−2.5", "1e-9", "missing", "∞"]);
});

const column = { name: "cell", kind: "category", codes: Uint8Array.of(1, 2, 0, 3, 2), labels: ["B cell", "T cell", "<b>"] };

test("search ignores case, and puts whole matches first, then beginnings", () => {
  const labels = (columns, text) => find({ columns, n: 5 }, text).map(({ label }) => label);
  assert.deepEqual(labels([column], " T C"), ["T cell"]);
  assert.deepEqual(find({ columns: [column], n: 5 }, "CELL").map(({ code }) => code), [1, 2]);
  const names = { name: "n", kind: "category", labels: ["abc", "bcd", "bc"], codes: [] };
  assert.deepEqual(labels([names], "bc"), ["bc", "bcd", "abc"]);
  assert.deepEqual(meant(find({ columns: [names], n: 5 }, "BC")).map(({ label }) => label), ["bc"]);
  assert.equal(meant(find({ columns: [names], n: 5 }, "b")).length, 3);
  assert.deepEqual(labels([column], "  "), []);
  assert.deepEqual([...rowsOf(find({ columns: [column], n: 5 }, "cell"), 5)], [1, 1, 0, 0, 1]);
});

test("search finds numbers, days and rows", () => {
  const ids = { name: "id", kind: "number", values: Float64Array.of(471100, 3, 3, NaN, 0.1) };
  const share = { name: "share", kind: "number", values: Float32Array.of(0.1, 0, 0, 0, 0) };
  const days = { name: "day", kind: "date", values: Float64Array.of(0, 86400000, 86400000 + 3600000, NaN, 5e12) };
  const dataset = { columns: [ids, share, days], n: 5 };
  const rows = (text) => find(dataset, text).map((match) => [match.source, match.rows]);
  assert.deepEqual(rows("471100"), [["id", [0]]]);
  assert.deepEqual(rows("3"), [["id", [1, 2]], ["", [3]]]);
  assert.deepEqual(rows("0.1"), [["id", [4]], ["share", [0]]]);
  assert.deepEqual(rows("1970-01-02"), [["day", [1, 2]]]);
  assert.deepEqual(rows("5"), []); // no such row
});

test("dates read as days, with a time where there is one", () => {
  assert.deepEqual([0, 86400000 * 1.5, NaN, 1e18].map((x) => date(x)), ["1970-01-01", "1970-01-02 12:00", "missing", "out of range"]);
});

test("selections combine", () => {
  const a = fromRows([3, 1], 5);
  assert.deepEqual([...a.rows], [1, 3]);
  const b = fromMask(Uint8Array.of(0, 1, 1, 0, 0));
  assert.deepEqual([...combine(a, b, "add").rows], [1, 2, 3]);
  assert.deepEqual([...combine(a, b, "replace").rows], [1, 2]);
  assert.equal(combine(a, NOTHING, "add"), a);
});

test("CSV quotes, leaves missing cells empty and disarms formulas", () => {
  const odd = { name: 'a,"b"', kind: "category", codes: Uint8Array.of(1, 2, 0), labels: ["=1+1", "x\ny"] };
  const numbers = { name: "v", kind: "number", values: Float32Array.of(0.1, -2, NaN) };
  assert.equal(toCsv([odd, numbers], [0, 1, 2]), 'row,"a,""b""",v\r\n0,\'=1+1,0.1\r\n1,"x\ny",-2\r\n2,,\r\n');
});

test("file names hold no paths", () => {
  assert.equal(fileName("../My: Größe", "png"), "my-größe.png");
  assert.equal(fileName("///", "png"), "mercat.png");
});

test("a key lists as many classes as it has lines, and spends one on the rest only if that is two or more", () => {
  const codes = [1, 2, 3, 4, 0];
  assert.deepEqual(keyLines(codes, 9), { listed: codes, rest: 0 });
  assert.deepEqual(keyLines(codes, 5), { listed: codes, rest: 0 });
  assert.deepEqual(keyLines(codes, 4), { listed: [1, 2, 3], rest: 2 });
  assert.deepEqual(keyLines(codes, 1), { listed: [], rest: 5 });
  assert.deepEqual(keyLines(codes, -2), { listed: [], rest: 5 });
});
