// Drawing order: rows a golden-ratio step apart, so that no category is on top because it
// comes last, and the first m points are a representative sample.

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

export function drawOrder(n) {
  let step = Math.max(1, Math.round(n * 0.6180339887498949));
  while (gcd(step, n) !== 1) step++;
  const order = new Uint32Array(n);
  for (let k = 0, row = 0; k < n; k++) {
    order[k] = row;
    row = (row + step) % n;
  }
  return order;
}
