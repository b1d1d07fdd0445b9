// Numbers and labels as text.

const SI = ["", "k", "M", "G", "T", "P", "E"];
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function trimmed(v: number, digits: number): string {
  return String(Number(v.toPrecision(digits)));
}

// For axes, legends, cards: four digits and a suffix.
export function short(v: number, digits = 4): string {
  if (!Number.isFinite(v)) return Number.isNaN(v) ? "NaN" : v > 0 ? "+Inf" : "−Inf";
  const size = Math.abs(v);
  if (size < 1e-4 && size > 0) return v.toExponential(2).replace("-", "−");
  if (size < 1000) return trimmed(v, digits).replace("-", "−");
  const step = Math.min(Math.floor(Math.log10(size) / 3 + 1e-9), SI.length - 1);
  const scaled = v / 1000 ** step;
  if (Math.abs(scaled) >= 1e4) return v.toExponential(2).replace("-", "−");
  return trimmed(scaled, digits).replace("-", "−") + SI[step];
}

export function bytes(v: number): string {
  let step = 0;
  while (v >= 1024 && step < BINARY.length - 1) {
    v /= 1024;
    step++;
  }
  return `${trimmed(v, v >= 1000 ? 4 : 3)} ${BINARY[step]}`;
}

export function count(v: number): string {
  return v.toLocaleString("en-US").replaceAll(",", "\u202f");
}

export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function seconds(v: number): string {
  if (v < 1e-3) return `${trimmed(v * 1e6, 3)} µs`;
  if (v < 1) return `${trimmed(v * 1e3, 3)} ms`;
  return v < 120 ? `${trimmed(v, 3)} s` : `${trimmed(v / 60, 3)} min`;
}

export type Labels = Record<string, string>;

const PLAIN_METRIC = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const PLAIN_LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

export function quote(text: string): string {
  return `"${text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"')}"`;
}

export function labelPair(name: string, value: string, op = "="): string {
  return `${PLAIN_LABEL.test(name) ? name : quote(name)}${op}${quote(value)}`;
}

// metric{a="b"}, as PromQL would read it.
export function seriesName(labels: Labels, without: ReadonlySet<string> = new Set()): string {
  const pairs = Object.keys(labels).filter((name) => name !== "__name__" && !without.has(name)).sort();
  const metric = without.has("__name__") ? "" : (labels["__name__"] ?? "");
  const plain = metric === "" || PLAIN_METRIC.test(metric);
  const inner = pairs.map((name) => labelPair(name, labels[name]!));
  if (!plain) inner.unshift(quote(metric));
  if (inner.length === 0) return plain && metric ? metric : "{}";
  return `${plain ? metric : ""}{${inner.join(", ")}}`;
}

export function selector(metric: string, matchers: [string, string][]): string {
  const labels: Labels = { __name__: metric };
  for (const [name, value] of matchers) labels[name] = value;
  return seriesName(labels);
}

// What all series have in common, if there are several: the legend says it once.
export function commonLabels(all: Labels[]): Set<string> {
  const common = new Set<string>();
  const first = all[0];
  if (!first || all.length < 2) return common;
  for (const [name, value] of Object.entries(first)) if (all.every((labels) => labels[name] === value)) common.add(name);
  return common;
}
