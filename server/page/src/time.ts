// Durations, moments and the time range that all queries of the page share.

const UNITS: [string, number][] = [
  ["y", 365 * 86400e3],
  ["w", 7 * 86400e3],
  ["d", 86400e3],
  ["h", 3600e3],
  ["m", 60e3],
  ["s", 1e3],
  ["ms", 1],
];

// "1h30m", "90s", "3600" (seconds) → ms; null if it is none.
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1000) || null;
  if (!/^((\d+)(y|w|d|h|ms|m|s))+$/.test(trimmed)) return null;
  let total = 0;
  for (const [, n, unit] of trimmed.matchAll(/(\d+)(y|w|d|h|ms|m|s)/g)) total += Number(n) * UNITS.find((u) => u[0] === unit)![1];
  return total || null;
}

export function formatDuration(ms: number): string {
  if (ms <= 0) return "0s";
  let rest = Math.round(ms);
  let text = "";
  for (const [unit, size] of UNITS) {
    if (unit === "w" && rest % size !== 0) continue; // 10d, not 1w3d
    if (unit === "y" && rest % size !== 0) continue;
    const n = Math.floor(rest / size);
    if (n > 0) text += n + unit;
    rest -= n * size;
  }
  return text;
}

// Two units at most, for reading.
export function roughly(ms: number): string {
  const parts = formatDuration(Math.max(1, Math.round(ms / (ms > 10e3 ? 1e3 : 1)) * (ms > 10e3 ? 1e3 : 1))).match(/\d+[a-z]+/g) ?? [];
  return parts.slice(0, 2).join(" ");
}

const two = (n: number): string => String(n).padStart(2, "0");

let utc = localStorage.getItem("varve-utc") === "1";
export const isUtc = (): boolean => utc;
export function setUtc(on: boolean): void {
  utc = on;
  localStorage.setItem("varve-utc", on ? "1" : "0");
}

interface Parts {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

export function partsOf(ms: number, inUtc = utc): Parts {
  const d = new Date(ms);
  return inUtc
    ? { year: d.getUTCFullYear(), month: d.getUTCMonth() + 1, day: d.getUTCDate(), hour: d.getUTCHours(), minute: d.getUTCMinutes(), second: d.getUTCSeconds() }
    : { year: d.getFullYear(), month: d.getMonth() + 1, day: d.getDate(), hour: d.getHours(), minute: d.getMinutes(), second: d.getSeconds() };
}

export function formatTime(ms: number, inUtc = utc): string {
  const p = partsOf(ms, inUtc);
  return `${p.year}-${two(p.month)}-${two(p.day)} ${two(p.hour)}:${two(p.minute)}:${two(p.second)}`;
}

export function formatDay(ms: number): string {
  return formatTime(ms).slice(0, 10);
}

// "2026-11-30", "2026-11-30 13:41[:05]" (in the page's zone), RFC 3339, or Unix seconds; null if it is none.
export function parseTime(text: string, inUtc = utc): number | null {
  const trimmed = text.trim();
  if (/^\d{9,}(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1000);
  const m = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.exec(trimmed);
  if (!m) return null;
  if (m[7]) {
    const ms = Date.parse(trimmed.replace(" ", "T"));
    return Number.isNaN(ms) ? null : ms;
  }
  const [year, month, day, hour, minute, second] = m.slice(1, 7).map((part) => Number(part ?? 0)) as [number, number, number, number, number, number];
  const ms = inUtc ? Date.UTC(year, month - 1, day, hour, minute, second) : new Date(year, month - 1, day, hour, minute, second).getTime();
  return Number.isNaN(ms) ? null : ms;
}

// end === null: until now, moving along.
export interface Range {
  length: number; // ms
  end: number | null;
}

export interface Span {
  from: number;
  to: number;
}

export function spanOf(range: Range, now = Date.now()): Span {
  const to = range.end ?? now;
  return { from: to - range.length, to };
}

export function describeRange(range: Range): string {
  if (range.end === null) return `Last ${spelled(range.length)}`;
  const { from, to } = spanOf(range);
  const a = formatTime(from), b = formatTime(to);
  return a.slice(0, 10) === b.slice(0, 10) ? `${a} – ${b.slice(11)}` : `${a.slice(0, 16)} – ${b.slice(0, 16)}`;
}

const WORDS: Record<string, string> = { y: "year", w: "week", d: "day", h: "hour", m: "minute", s: "second" };

export function spelled(ms: number): string {
  const text = formatDuration(ms);
  const m = /^(\d+)([ywdhms])$/.exec(text);
  if (!m) return text;
  return `${m[1]} ${WORDS[m[2]!]}${m[1] === "1" ? "" : "s"}`;
}

const STEPS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * 1000);

// A round step that gives at most about `points` of them.
export function niceStep(length: number, points: number): number {
  const wanted = length / Math.max(points, 10);
  return STEPS.find((step) => step >= wanted) ?? Math.ceil(wanted / 604800e3) * 604800e3;
}
